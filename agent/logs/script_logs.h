// ScriptLogs follows the files into which a node's script writes the output of the training's
// ranks. Each file is copied into the run directory (script_log_copy.h), and LogTails reads the
// copy like any log. The steps and the evidence in it count for the script, the node's only rank.
// A RunWatch owns it; only the watch thread uses it, and scan threads copy.
//
//   - A copy begins anew at each poll, and when a rank has ended. While the kernel does not report
//     changes of the logs, it begins every WatchOptions::unnotified_scan.
//   - A rank's end waits until what its file had is copied and read. A copy that hangs delays
//     nothing.
//   - After the sweep a copy that does not become complete within WatchOptions::last_scan is given
//     up: its log ends, and the rest is left out. The same holds for a copy that begins after the
//     sweep: RunWatch calls swept() once more.
//   - A copy has open files of a file system that may hang. So a scan thread destroys it.
//
// Errors: one of each log is reported, and the copy is tried again at the next poll.
#pragma once

#include <memory>
#include <vector>

#include "agent/logs/log_tails.h"
#include "agent/logs/scans.h"
#include "agent/logs/script_log_copy.h"
#include "agent/logs/watch_tools.h"
#include "agent/logs/watcher.h"

namespace muster::agent {

class ScriptLogs final : public Watcher, public std::enable_shared_from_this<ScriptLogs> {
 public:
  ScriptLogs(WatchTools& tools, std::shared_ptr<PublishedRun> run, LogTails& tails)
      : tools_(tools), run_(std::move(run)), tails_(tails) {}

  // `tail` is the log that the copy becomes; tail.copy names the rank.
  void follow(std::unique_ptr<LogTail> tail, std::shared_ptr<ScriptLogCopy> copy);

  bool pass(BootTime now) override;
  [[nodiscard]] BootTime next_due() const override;
  void poll(const Now& now) override;
  void ended(RankNo rank, bool failed) override;
  void swept(BootTime now) override;
  [[nodiscard]] bool end_waits() const override;
  [[nodiscard]] bool explain(RankEnding& ending) override;

 private:
  struct Source {
    Source(Scans& scans, LogTail& log, std::shared_ptr<ScriptLogCopy> copies)
        : tail(log), copy(std::move(copies)), scan(scans, copy->path()) {}
    ~Source();
    Source(const Source&) = delete;
    Source& operator=(const Source&) = delete;
    [[nodiscard]] LogTail::Copy::State& state() const { return tail.copy->state; }
    [[nodiscard]] bool complete() const { return state() == LogTail::Copy::State::Complete; }
    LogTail& tail;
    std::shared_ptr<ScriptLogCopy> copy;  // shared with the work that copies
    Scan scan;
    BootTime given_up_at = BootTime::max();  // after the sweep
  };
  // When all copies begin anew, as nothing reports changes.
  [[nodiscard]] BootTime next_copies() const;
  void start(Source& source);
  void take(Source& source, bool last, ScriptLogCopy::Round round);
  static void complete(Source& source);

  WatchTools& tools_;
  const std::shared_ptr<PublishedRun> run_;
  LogTails& tails_;
  std::vector<std::unique_ptr<Source>> sources_;  // only grows
  BootTime copied_at_{};                          // when all copies were due at last
  bool swept_ = false;
};

}  // namespace muster::agent
