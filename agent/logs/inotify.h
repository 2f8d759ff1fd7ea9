// Inotify wraps the agent's one inotify instance: the kernel reports changed files in watched
// directories. ChangedFiles (changed_files.h) owns it. Only the watch thread calls it, except
// ask(), which any thread may call.
//
//   - An owner of watches is a number that the caller chooses. If several owners watch one
//     directory, each of them is notified.
//   - The kernel cannot report changes of network file systems, and watches may be used up. In
//     these cases the owner scans the directory from time to time.
//   - Adding a watch resolves the directory's path, which hangs if its file system hangs. ask()
//     does this half on any thread. took() then registers the result on the watch thread.
//   - The agent has only one instance because a user has 128 of them
//     (fs.inotify.max_user_instances) for all programs together. Without an instance works() is
//     false, watch() always returns No, and everything else continues.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"
#include "common/io/unique_fd.h"

namespace muster::agent {

class Inotify {
 public:
  using Owner = std::uint64_t;
  Inotify() = default;  // works() is false
  // Errors: ResourceExhausted if the user has no instance left or this process has no descriptor
  // left. `init` replaces inotify_init1.
  static Result<Inotify> make(const std::function<int(int flags)>& init = {});
  [[nodiscard]] bool works() const { return fd_ != nullptr; }
  // When the descriptor is readable, call drain(). -1: it never is.
  [[nodiscard]] int fd() const { return fd_ ? fd_->get() : -1; }

  // Watches a directory. Idempotent. With `writes` every write counts (logs), and a link at that
  // name is not followed. Otherwise a file counts when it is closed, renamed or removed (writing a
  // checkpoint takes minutes).
  //   - No: the directory does not exist, or there is no instance.
  //   - NoneLeft: the user's watches are used up.
  //   - New: changes before this call were not reported.
  enum class Watching { No, NoneLeft, Already, New };
  Watching watch(const std::string& dir, Owner owner, bool writes);

  // The same for directories of jobs, in two halves. `instance` comes from handle(); if it is null,
  // every answer is No.
  using Instance = std::shared_ptr<const io::UniqueFd>;
  struct Asked {
    std::string dir;
    int watch = -1;
    int error = 0;
  };
  [[nodiscard]] Instance handle() const { return fd_; }
  // Any thread may call it. Blocks.
  static std::vector<Asked> ask(const Instance& instance, const std::set<std::string>& dirs);
  // Also returns New if another directory now has that name. Another owner may have removed the
  // watch before it is registered here: after each New, scan again and ask again.
  Watching took(const Asked& asked, Owner owner);
  // Gives back the watches that were added for an owner that no longer exists.
  void refuse(const std::vector<Asked>& asked);

  void forget(Owner owner);
  // Keeps only these directories of the owner.
  void keep(Owner owner, const std::set<std::string>& dirs);
  // Calls `changed` with the owner and the file name of each change. An empty name means that
  // anything may have changed. Never blocks.
  void drain(const std::function<void(Owner, std::string_view)>& changed);

 private:
  explicit Inotify(io::UniqueFd fd) : fd_(std::make_shared<const io::UniqueFd>(std::move(fd))) {}
  struct Watched {
    std::string dir;
    std::set<Owner> owners;
  };
  void drop(int watch, Owner owner);
  Instance fd_;  // shared with the threads in ask(): open until the last of them returns
  std::map<int, Watched> watches_;
  std::map<std::string, int> by_dir_;
};

}  // namespace muster::agent
