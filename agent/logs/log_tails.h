// LogTails reads the logs of one run as they grow: those of its ranks, of its auxiliary processes,
// and the copies that ScriptLogs makes. It finds steps and success patterns, publishes how far each
// log is read, and gathers what a rank's log shows of the rank's end. A RunWatch owns it; only the
// watch thread uses it.
//
// All files are in the run directory, on the node's own disk. One pass reads at most
// RankReader::kRoundBytes of each log. Logs whose end is waited for are read first.
//
//   - Changes come from inotify, by the file's name; those of a renamed file ("rank-0.log.1",
//     "rank-0.log-20261126") count for the log. While the directory is not watched, logs are read
//     every WatchOptions::unnotified_scan. poll() also finds that a renamed log has no writer left.
//   - A rank's end: the log is read to its present end, then RankEndings gets the ending.
//   - A log ends when the run is swept and it was read to its end after that.
//
// Errors: a log that cannot be read is reported once for each log, and read again at the next poll.
// What was read before the error counts. An end of a node's script does not wait for a copy that
// cannot be read.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/logs/published_run.h"
#include "agent/logs/rank_reader.h"
#include "agent/logs/watch_tools.h"
#include "agent/logs/watcher.h"

namespace muster::agent {

// What is done with a rank's end after its log was read. RunWatch implements it.
class RankEndings {
 public:
  virtual ~RankEndings() = default;
  // True: an answer must wait for another watcher, which marks the rank's log as changed later.
  [[nodiscard]] virtual bool wait() const = 0;
  virtual void explain(RankEnding ending) = 0;
  // The last step: the answer is complete.
  virtual void report(const RankEnding& ending) = 0;
};

// One log. FileWatch makes it; from then on only the watch thread uses it.
struct LogTail {
  LogTail(LogName of, std::filesystem::path log, std::shared_ptr<LogFile> log_file,
          const std::shared_ptr<const Patterns>& patterns)
      : name(std::move(of)),
        path(std::move(log)),
        file(log_file),
        reader(std::move(log_file), patterns) {}

  const LogName name;
  const std::filesystem::path path;
  const std::shared_ptr<LogFile> file;
  RankReader reader;
  OncePerCause trouble;
  bool unread = true;  // it may have bytes that were not read

  enum class Process : std::uint8_t { Lives, Ended, Answered } process = Process::Lives;
  bool failed = false;  // the process, once it has ended
  bool final = false;   // read to its end after the sweep

  // A log that is a copy of a file elsewhere. ScriptLogs sets its state.
  struct Copy {
    std::uint32_t rank = 0;  // of the training
    //   Follows -> EndDue (a rank has ended) -> EndUnderWay (copying what it left) -> Follows
    //   each of them -> Complete: the copy will not grow any more
    enum class State : std::uint8_t { Follows, EndDue, EndUnderWay, Complete } state = {};
    [[nodiscard]] bool end_waits() const {
      return state == State::EndDue || state == State::EndUnderWay;
    }
  };
  std::optional<Copy> copy;
};

class LogTails final : public Watcher {
 public:
  LogTails(WatchTools& tools, std::shared_ptr<PublishedRun> run, RankEndings& endings,
           std::filesystem::path dir, std::vector<std::unique_ptr<LogTail>> tails);

  // Adds a log; it is read before the others.
  LogTail& add(std::unique_ptr<LogTail> tail);
  // The script's end may have waited for its ranks' logs.
  void wake_endings();
  // Reports trouble with a log, once for each log.
  void trouble(LogTail& tail, const Error& error);
  // The rank of a run that has a single one, the node's script; else the lowest.
  [[nodiscard]] LogTail* first_rank() const;
  [[nodiscard]] std::vector<std::shared_ptr<LogFile>> files() const;
  // False: the kernel does not report changes of the logs' directory.
  [[nodiscard]] bool watched() const { return watched_; }

  bool pass(BootTime now) override;
  [[nodiscard]] BootTime next_due() const override;
  void changed(std::string_view name) override;
  void poll(const Now& now) override;
  void ended(RankNo rank, bool failed) override;
  void swept(BootTime now) override;

 private:
  bool read(LogTail& tail, BootTime now);
  void publish(const LogTail& tail);
  void take_steps(const LogTail& tail, RankReader::Round round, BootTime now);
  bool counts(const LogTail& tail, bool has_steps);
  // A script's end may have waited for this copy. True: the script's log is to be read again.
  bool wake_script(const LogTail& tail);
  void answer(LogTail& tail);
  void watch_dir();

  WatchTools& tools_;
  const std::shared_ptr<PublishedRun> run_;
  RankEndings& endings_;
  const std::filesystem::path dir_;
  const DirListener listener_;
  std::vector<std::unique_ptr<LogTail>> tails_;  // auxiliary logs first
  std::map<std::string, LogTail*, std::less<>> by_file_;
  std::size_t ranks_ = 0;
  bool watched_ = false;  // changes of the directory are reported
  bool swept_ = false;
  BootTime polled_at_{};
  OncePerCause first_step_, replaced_;
  // Whose steps count for a node's script: a rank of the training, or -1 for the script's own log.
  std::optional<std::int64_t> reporting_;
};

}  // namespace muster::agent
