// cgroup v2, also where it is only mounted beside v1 (/sys/fs/cgroup/unified). A directory is made
// for an attempt, its processes are put in, killed together and the directory is removed. Any
// thread. Where cgroups are missing or not ours, make() says so and the process tag does the work.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "common/base/error.h"
#include "common/io/unique_fd.h"

namespace muster::process {

// Where the v2 tree is mounted; nothing: nowhere.
std::optional<std::filesystem::path> cgroup2_root();
// The directory of this process in it.
Result<std::filesystem::path> own_cgroup();

// Of the container that this process is in, as its own files show it: memory.events of cgroup v2,
// memory.oom_control where memory is a controller of v1 (Linux,
// Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/memory.rst). 0 where there is neither.
// Outside of a container it may be anybody's count.
std::uint64_t container_oom_kills();

class Cgroup {
 public:
  // Makes it (parents must be there) or takes it over when it exists.
  static Result<Cgroup> make(const std::filesystem::path& path);

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  // Open for writing "0" by a child between fork and exec: that puts the writer in.
  [[nodiscard]] int procs_fd() const { return procs_.get(); }
  // The directory: what clone3 takes to make a child right in the group.
  [[nodiscard]] int dir_fd() const { return dir_.get(); }
  // Readable as POLLPRI when `populated` changes.
  [[nodiscard]] int events_fd() const { return events_.get(); }
  Result<void> add(pid_t pid) const;
  // SIGKILL to all in it and below, also those just being forked: cgroup.kill, or a loop over
  // cgroup.procs before Linux 5.14.
  Result<void> kill() const;
  [[nodiscard]] std::uint32_t count() const;
  Result<bool> empty() const;
  // Somebody removed it. Only an empty one can be removed, but what its processes started before
  // that may live on elsewhere.
  [[nodiscard]] bool gone() const;
  // 0 where the memory controller is not in this tree.
  [[nodiscard]] std::uint64_t oom_kills() const;
  // It and the (empty) groups that the ranks made below it.
  Result<void> remove() const;

 private:
  Cgroup(std::filesystem::path path, io::UniqueFd dir, io::UniqueFd procs, io::UniqueFd events)
      : path_(std::move(path)),
        dir_(std::move(dir)),
        procs_(std::move(procs)),
        events_(std::move(events)) {}
  std::filesystem::path path_;
  io::UniqueFd dir_;
  io::UniqueFd procs_;
  io::UniqueFd events_;
};

// Groups stand as <base>/<job>.<attempt>, the base is a node's own and made with its first group.
// Nothing of it is left when the last run has ended, whoever ended it: worker, agent or client.
inline constexpr const char* kBasePrefix = "muster-";
// Whose it is: a word of its agent's, kept with the directory and gone with it. Nothing: nobody has
// said so, or this kernel keeps none (before Linux 5.7).
void note_owner(const std::filesystem::path& base, const std::string& owner);
std::optional<std::string> owner_of(const std::filesystem::path& base);
// Makes both; a base that goes at this moment, with another run's group, is made again.
Result<void> make_run_group(const std::filesystem::path& group);
// Removes the group with the groups that ranks made below it, then the base if it is one and is
// empty. What is not there is no error; a group with processes in it is.
Result<void> remove_run_group(const std::filesystem::path& group);
// Kills what is in it first, and waits for its end. TimedOut: still there (uninterruptible sleep).
Result<void> discard_run_group(const std::filesystem::path& group, int timeout_ms);

}  // namespace muster::process
