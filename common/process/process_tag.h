// Finds processes by a variable in their environment (/proc/PID/environ) and sweeps them. How
// muster proves that nothing of an attempt is left without cgroups and without being root: a
// process that left its session, its group and its parent still has its environment.
// A process between fork and exec has its parent's, so it is found too. One in the middle of its
// exec has none for a moment:
// that is seen (`unsettled`) and looked at again, never taken for clean. Any thread; reads /proc;
// vanishing processes are no errors, a look that could not be had (no descriptors, no memory) is
// one: nothing is known then.
// Cannot see: a process that emptied its environment and left the session of its rank, or whose
// session has neither its leader nor a carrier any more (the worker finds both as its descendants),
// or one of another user when we are not root. One of our own user may close its environment to us
// (PR_SET_DUMPABLE, a set-user-id program): see Family.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "common/io/unique_fd.h"
#include "common/process/identity.h"
#include "common/process/pidfd.h"

namespace muster::process {

// How a process is judged that does not show the process tag. One in a session of the family is of
// the
// run, whatever its environment says, when the session is known for the run's: by its leader (a
// zombie holds its number, too), by a carrier in it, or by a member that the look before this one
// found. The number of a leader that is gone may be a stranger's. Further, of one whose
// environment is closed to us though its user is the run's: with a parent in such a session it is
// of the run. With a parent who takes in no orphans of ours, or older than the run: it is a
// stranger. Else it is not known. Without a family nobody is judged: for a caller to whom every
// such process is a stranger (the worker, once it has no descendants).
struct Family {
  uid_t user = ::getuid();      // whose the run's processes are
  std::set<ProcessId> leaders;  // of sessions: the ranks, and every carrier that is found
  // start time of the run's first process; 0: not known, and all are strangers
  std::uint64_t since = 0;
  // numbers of their sessions that the look before this one found members of
  std::set<pid_t> known_sessions{};
};

struct ProcessTagScan {
  std::vector<ProcessId> found;  // living; the caller itself and zombies are not among them
  std::uint32_t unsettled = 0;   // in the middle of an exec: look again
  std::vector<pid_t> closed;     // of the run's user, not to be looked into, and maybe of the run
  std::set<pid_t> sessions;      // of those found
};
// Processes with NAME=value, the whole value. `since`: start time (ProcessId) of the process that
// gave the process tag out, if known: what is older cannot carry it, so that a stranger who hangs
// in his
// exit does not keep us waiting.
Result<ProcessTagScan> scan_process_tag(std::string_view name, std::string_view value,
                                        std::uint64_t since = 0, const Family* family = nullptr);

// Kills them all, until two successive scans find none. For a loop that may not block: step(), then
// wait until fd() is readable
// (epoll, asio), step() again, until Done. Owned by one strand. Never gives up by itself: a process
// in uninterruptible sleep keeps it waiting, because "swept" must be true.
class ProcessTagSweep {
 public:
  enum class Progress : std::uint8_t { Waiting, Done };

  static Result<ProcessTagSweep> start(std::string name, std::string value, std::uint64_t since = 0,
                                       std::optional<Family> family = std::nullopt);
  Result<Progress> step();
  [[nodiscard]] int fd() const { return epoll_.get(); }
  // Processes that it waits for without having killed them: whether they are of the run is not
  // known.
  [[nodiscard]] const std::vector<pid_t>& waits_for() const { return closed_; }
  [[nodiscard]] std::uint32_t killed() const { return static_cast<std::uint32_t>(killed_.size()); }

 private:
  ProcessTagSweep(std::string name, std::string value, std::uint64_t since,
                  std::optional<Family> family, io::UniqueFd epoll, io::UniqueFd timer)
      : name_(std::move(name)),
        value_(std::move(value)),
        since_(since),
        family_(std::move(family)),
        epoll_(std::move(epoll)),
        timer_(std::move(timer)) {}
  std::string name_;
  std::string value_;
  std::uint64_t since_;
  std::optional<Family> family_;
  std::vector<pid_t> closed_;
  // holds timer_ and a pidfd for each process that was killed and has not gone yet
  io::UniqueFd epoll_;
  io::UniqueFd timer_;
  std::vector<io::UniqueFd> waiting_;
  std::set<ProcessId> killed_;
};

// The same, blocking, for tests and tools: the number killed; TimedOut with what is left.
Result<std::uint32_t> sweep_process_tag(const std::string& name, const std::string& value,
                                        int timeout_ms);

}  // namespace muster::process
