// RunReporting lets the watch (agent/logs/watch.h) follow one run, and says how long a fact of the
// run waits for what the watch finds. The run's Host::Entry owns it. Plain value; the agent's loop
// guards it with the entries (Host::Impl::entries).
//
// - An exit waits at most 1 s for its evidence or last step. It waits only milliseconds if machine
//   and file system work normally. Later evidence does not change a fact that was sent.
// - A good exit whose success is looked for decides the job. It waits until 10 s pass in which
//   nothing of the run's logs is read. Then it is reported, and its success is unknown.
// - A sweep waits at most 15 s for the last scan of the run's checkpoints.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "agent/core/exit_wait.h"
#include "agent/core/reconcile.h"
#include "agent/logs/watch.h"
#include "agent/run/run_view.h"
#include "common/base/once_per_cause.h"

namespace muster::agent {

class RunReporting {
 public:
  // Tells the watch what is new of the run. `view` is the run's directory, `seen` what the agent
  // knows of it. Idempotent. Returns lines for the agent's log.
  std::vector<std::string> update(Watch& watch, const RunKey& run, const RunView& view,
                                  const RunSeen& seen, BootTime now);
  // The watch has read the rank's log to its end.
  void end_read(std::uint32_t rank);
  // The watch has scanned the checkpoints after the sweep.
  void last_scan();
  // The run is forgotten.
  void close(Watch& watch, const RunKey& run);

  // False: the fact waits. `known`: the evidence of this rank is in the mark file.
  [[nodiscard]] bool ready(std::uint32_t rank, bool known, BootTime now) const;
  // True: the success of this exit is looked for, and the watch has not answered. If the exit is
  // ready nevertheless, its fact says that the success is unknown.
  [[nodiscard]] bool success_unknown(std::uint32_t rank, bool known) const;
  [[nodiscard]] bool scanned(BootTime now) const { return scan_until_ <= now; }
  // The next time at which a wait may be over, as of the last update(): update it again then.
  [[nodiscard]] std::optional<BootTime> due() const { return due_; }
  // True: a heartbeat has no room for its checkpoints, and that was not reported yet.
  bool trimmed() { return trimmed_.first(); }

 private:
  enum class Following : std::uint8_t {
    No,       // again at add_again_
    Yes,      // the watch follows it
    Swept,    // and knows that no process of the run is left
    Refused,  // the order is wrong: never
  };
  [[nodiscard]] bool follows() const {
    return following_ == Following::Yes || following_ == Following::Swept;
  }
  std::string add(Watch& watch, const RunKey& run, const RunView& view, const RunSeen& seen,
                  BootTime now);
  std::vector<std::string> follow_script_logs(Watch& watch, const RunKey& run, const RunSeen& seen);
  void tell_ends(Watch& watch, const RunKey& run, const RunView& view, const RunSeen& seen,
                 BootTime now);
  [[nodiscard]] std::optional<BootTime> next(const RunView& view, BootTime now) const;
  [[nodiscard]] ExitWait wait_for(const ExitSeen& exit, const v1::NodeLaunch& order, BootTime now,
                                  std::uint64_t read) const;

  Following following_ = Following::No;
  BootTime add_again_{};
  OncePerCause refused_, trimmed_;
  std::size_t script_logs_ = 0;              // number of its script's logs that the watch follows
  std::set<std::uint32_t> ended_;            // ranks whose end was sent to the watch
  std::map<std::uint32_t, ExitWait> exits_;  // ranks whose logs are read to their end
  std::optional<BootTime> due_;
  BootTime scan_until_{};  // the fact of the sweep waits until then
};

}  // namespace muster::agent
