// What ranks leave behind: everything that they started and that left its process group. All of it
// is killed, and it is proven that nothing is left, before the worker says "swept":
//   1. descendants: the worker is their subreaper, so each of them becomes its child in the end;
//      none is left when waitid says ECHILD. This finds also what has emptied its environment.
//   2. where the attempt has a cgroup: the cgroup is empty. Else, and when somebody has removed the
//      cgroup: no process carries the process tag (something that a rank asked a daemon to start).
// step() is called again after each SIGCHLD (children reaped first) and whenever fd() is readable.
// Never blocks; never gives up.
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
  // `since`: start time of the worker, before which nobody carries the process tag.
  static Result<Leftovers> start(std::string process_tag, const process::Cgroup* cgroup,
                                 std::uint64_t since);
  // True: nothing is left.
  Result<bool> step();
  [[nodiscard]] int fd() const { return epoll_.get(); }
  [[nodiscard]] std::uint32_t killed() const {
    return static_cast<std::uint32_t>(killed_.size()) + (sweep_ ? sweep_->killed() : 0);
  }

 private:
  Leftovers(std::string process_tag, const process::Cgroup* cgroup, std::uint64_t since,
            io::UniqueFd epoll, io::UniqueFd timer)
      : process_tag_(std::move(process_tag)),
        cgroup_(cgroup),
        since_(since),
        epoll_(std::move(epoll)),
        timer_(std::move(timer)) {}
  bool kill_children();  // true: there were some
  Result<bool> cgroup_empty();
  void scan_again_soon();
  std::string process_tag_;
  const process::Cgroup* cgroup_;
  std::uint64_t since_;
  io::UniqueFd epoll_;
  io::UniqueFd timer_;
  std::optional<process::ProcessTagSweep> sweep_;
  std::set<pid_t> killed_;
};

}  // namespace muster::worker
