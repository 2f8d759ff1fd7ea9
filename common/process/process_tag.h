// Finds processes by a variable in their environment (/proc/PID/environ) and sweeps them. The
// agent's host and the worker own the sweeps. The scan may run on any thread; a sweep belongs to
// one strand.
//
// With this muster proves that nothing of an attempt is left, without cgroups and without being
// root. A process that left its session, its group and its parent still has its environment.
//
// How the scan works:
// - A process between fork and exec has its parent's environment, so the scan finds it too.
// - A process in the middle of its exec has no environment for a moment. The scan reports it as
//   `unsettled` and the sweep scans again; it is never taken for clean.
// - A process that vanishes is no error. A check that was not possible (no descriptors, no memory)
//   is an error, because then nothing is known.
//
// Everybody may put any variable into the environment of his own processes. So the tag counts only
// with a user of the run (TagUsers): a process of another user that carries it is a stranger,
// unless it is in a session of the run, or an ancestor is.
//
// The scan cannot find these processes:
// - A process that emptied its environment and left the session of its rank, or whose session has
//   neither its leader nor a carrier of the tag any more. The worker finds both as its descendants.
// - A process of another user, when we are not root.
//
// A process of our own user may close its environment to us (PR_SET_DUMPABLE, a set-user-id
// program): see Family.
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

// The rules for a process that does not show the process tag. Without a family the scan judges no
// such process. That is for a caller for which all of them are strangers (the worker, once it has
// no descendants).
//
// A process in a session of the run is of the run, whatever its environment contains. One of these
// must prove that the session is the run's:
// - its leader (a zombie keeps its number, too);
// - a carrier of the tag in it;
// - a member that the previous scan found.
// The number of a leader that is gone may be a stranger's.
//
// A process of the run's user whose environment is closed to us is judged by its ancestors as well:
// - It is of the run if it or an ancestor is in a session of the run.
// - It is a stranger if it is older than the run, or if an ancestor is that takes in no orphans of
//   the run.
// - Otherwise it is not known.
struct Family {
  uid_t user = ::getuid();      // the user of the run's processes
  std::set<ProcessId> leaders;  // of sessions: the ranks, and every carrier that is found
  // start time of the run's first process; 0: not known, and all are strangers
  std::uint64_t since = 0;
  // numbers of their sessions in which the previous scan found members
  std::set<pid_t> known_sessions{};
};

// For whose processes the tag counts: by their real user.
struct TagUsers {
  // the run's own user, if it is another one than that of this process
  std::optional<uid_t> run{};
  // False: no record says who the run's user is. Then nobody knows whether a carrier of another
  // user is of the run. It is not killed, and it is reported (`closed`).
  bool known = true;

  [[nodiscard]] bool contain(uid_t user) const { return user == ::geteuid() || user == run; }
};

struct ProcessTagScan {
  std::vector<ProcessId> found;  // alive; without the caller itself and zombies
  std::uint32_t unsettled = 0;   // in the middle of an exec: scan again
  // Maybe of the run: of its user and unreadable, or carriers while nobody knows its user.
  std::vector<pid_t> closed;
  std::set<pid_t> sessions;  // sessions of the found ones
};
// Scans for processes with NAME=value (the whole value). `since` is the start time (ProcessId) of
// the process that gave out the process tag, if known. An older process cannot carry the tag, so a
// stranger that hangs in its exit does not keep us waiting.
Result<ProcessTagScan> scan_process_tag(std::string_view name, std::string_view value,
                                        std::uint64_t since = 0, const Family* family = nullptr,
                                        const TagUsers& users = {});

// Kills all processes with the tag, until two successive scans find none. One strand owns it.
//
// It is for a loop that may not block: call step(), wait until fd() is readable (epoll, asio), and
// call step() again until it returns Done. It never gives up by itself. A process in
// uninterruptible sleep keeps it waiting, because "swept" must be true.
class ProcessTagSweep {
 public:
  enum class Progress : std::uint8_t { Waiting, Done };

  static Result<ProcessTagSweep> start(std::string name, std::string value, std::uint64_t since = 0,
                                       std::optional<Family> family = std::nullopt,
                                       TagUsers users = {});
  Result<Progress> step();
  [[nodiscard]] int fd() const { return epoll_.get(); }
  // Processes that it waits for and has not killed, because it is not known whether they are of the
  // run.
  [[nodiscard]] const std::vector<pid_t>& waits_for() const { return closed_; }
  [[nodiscard]] std::uint32_t killed() const { return static_cast<std::uint32_t>(killed_.size()); }

 private:
  ProcessTagSweep(std::string name, std::string value, std::uint64_t since,
                  std::optional<Family> family, TagUsers users, io::UniqueFd epoll,
                  io::UniqueFd timer)
      : name_(std::move(name)),
        value_(std::move(value)),
        since_(since),
        family_(std::move(family)),
        users_(users),
        epoll_(std::move(epoll)),
        timer_(std::move(timer)) {}
  std::string name_;
  std::string value_;
  std::uint64_t since_;
  std::optional<Family> family_;
  TagUsers users_;
  std::vector<pid_t> closed_;
  // contains timer_ and a pidfd for each process that was killed and is not gone yet
  io::UniqueFd epoll_;
  io::UniqueFd timer_;
  std::vector<io::UniqueFd> waiting_;
  std::set<ProcessId> killed_;
};

// The same as a blocking call, for tests and tools. Returns the number of killed processes, or
// TimedOut with those that are left.
Result<std::uint32_t> sweep_process_tag(const std::string& name, const std::string& value,
                                        int timeout_ms, const TagUsers& users = {});

}  // namespace muster::process
