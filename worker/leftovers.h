// Leftovers kills every process that ranks leave behind, and proves that none is left before the
// worker writes Swept. Supervisor owns it. It runs on the worker's one thread, never blocks and
// never gives up.
//
// It covers all processes that ranks started and that left their process group. The proof has two
// steps:
//   - Descendants: the worker is their subreaper, so each of them finally becomes its child. None
//     is left when waitid returns ECHILD. This also finds a process that has emptied its
//     environment.
//   - If the attempt has a cgroup, the cgroup must be empty. Without a cgroup, or if it was
//     removed, no process may carry the process tag (a rank may have asked a daemon to start one).
//
// Call step() after each SIGCHLD (children reaped first) and whenever fd() is readable.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "common/base/error.h"
#include "common/io/unique_fd.h"
#include "common/process/cgroup.h"
#include "common/process/process_tag.h"

namespace muster::worker {

class Leftovers {
 public:
  // `since` is the start time of the worker. No older process carries the process tag.
  static Result<Leftovers> start(std::string process_tag, const process::TagUsers& users,
                                 const process::Cgroup* cgroup, std::uint64_t since);
  // Returns true if no process is left.
  Result<bool> step();
  [[nodiscard]] int fd() const { return epoll_.get(); }

 private:
  Leftovers(std::string process_tag, const process::TagUsers& users, const process::Cgroup* cgroup,
            std::uint64_t since, io::UniqueFd epoll, io::UniqueFd timer)
      : process_tag_(std::move(process_tag)),
        users_(users),
        cgroup_(cgroup),
        since_(since),
        epoll_(std::move(epoll)),
        timer_(std::move(timer)) {}
  bool kill_children();  // returns true if there were some
  Result<bool> cgroup_empty();
  void scan_again_soon();
  std::string process_tag_;
  process::TagUsers users_;
  const process::Cgroup* cgroup_;
  std::uint64_t since_;
  io::UniqueFd epoll_;
  io::UniqueFd timer_;
  std::optional<process::ProcessTagSweep> sweep_;
  std::set<pid_t> killed_;
};

}  // namespace muster::worker
