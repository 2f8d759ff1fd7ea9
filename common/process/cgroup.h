// Functions and a handle for cgroup v2, also where it is only mounted next to v1
// (/sys/fs/cgroup/unified). The worker's supervisor and the agent's host own Cgroup objects; a
// group outlives its object until somebody removes it. Any thread.
//
// An attempt gets one directory. Its processes are put into it and killed together; then the
// directory is removed. Where cgroups are missing or not writable, make() returns an error, and
// muster uses the process tag instead.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "common/base/error.h"
#include "common/io/unique_fd.h"

namespace muster::process {

// Returns where the v2 tree is mounted, or nothing if it is not mounted.
std::optional<std::filesystem::path> cgroup2_root();
// Returns the directory of this process in that tree.
Result<std::filesystem::path> own_cgroup();

// Whether groups can be made below `path`: a directory of the v2 tree that this process may write,
// or a new one in such a directory. It makes none.
Result<void> check_group_parent(const std::filesystem::path& path);

// Returns the count of OOM kills in the container of this process, as its own files show it. The
// files are memory.events of cgroup v2, or memory.oom_control where memory is a controller of v1
// (Linux, Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/memory.rst).
//
// Returns 0 where neither file exists. Outside of a container the count may belong to anybody.
std::uint64_t container_oom_kills();

class Cgroup {
 public:
  // Creates the group (its parents must exist), or takes over an existing one.
  static Result<Cgroup> make(const std::filesystem::path& path);

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  // A child writes "0" to this descriptor between fork and exec; that puts the child into the
  // group.
  [[nodiscard]] int procs_fd() const { return procs_.get(); }
  // The directory's descriptor: clone3 takes it to start a child directly in the group.
  [[nodiscard]] int dir_fd() const { return dir_.get(); }
  // Becomes ready as POLLPRI when `populated` changes.
  [[nodiscard]] int events_fd() const { return events_.get(); }
  Result<void> add(pid_t pid) const;
  // Sends SIGKILL to all processes in the group and below it, also to those that are just being
  // forked. It uses cgroup.kill, or before Linux 5.14 a loop over cgroup.procs.
  Result<void> kill() const;
  [[nodiscard]] std::uint32_t count() const;
  Result<bool> empty() const;
  // True if somebody removed the group. Only an empty group can be removed, but processes that its
  // members started earlier may still run elsewhere.
  [[nodiscard]] bool gone() const;
  // Returns 0 where the memory controller is not in this tree.
  [[nodiscard]] std::uint64_t oom_kills() const;
  // Removes the group and the (empty) groups that the ranks made below it.
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

// Groups have the path <base>/<job>.<attempt>. The base belongs to one node and is made with its
// first group. Nothing of it is left when the last run has ended, whoever ended that run: worker,
// agent or client.
inline constexpr const char* kBasePrefix = "muster-";
// note_owner() stores a name that the base's agent chose for itself. The name is kept with the
// directory and goes with it. owner_of() returns nothing if no name is stored, or if this kernel
// stores none (before Linux 5.7).
void note_owner(const std::filesystem::path& base, const std::string& owner);
std::optional<std::string> owner_of(const std::filesystem::path& base);
// Creates base and group. If another run's end removes the base at this moment, it is created
// again.
Result<void> make_run_group(const std::filesystem::path& group);
// Removes the group and the groups that ranks made below it. Then it removes the base, if the
// directory above is one and is empty. A missing group is no error; a group with processes in it
// is.
Result<void> remove_run_group(const std::filesystem::path& group);
// Kills the processes in the group first and waits for their end. TimedOut: they are still there
// (uninterruptible sleep).
Result<void> discard_run_group(const std::filesystem::path& group, int timeout_ms);

}  // namespace muster::process
