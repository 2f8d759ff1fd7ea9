// The kernel's word that files in watched directories have changed. One thread (the watch's).
// Directories are named by the owner's own numbers; a directory that several owners watch is told
// to each. Where the kernel cannot tell (network file systems, no watches left) the owner looks by
// itself now and then. To watch a directory is to look it up, which hangs where its file system
// does: that half (ask) runs on any thread, what it brought is taken (took) here. It is the only
// instance an agent has: a user has 128 of them (fs.inotify.max_user_instances) for all programs
// together. Without one works() is false, watch() always says No, and everything else goes on.
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
  // ResourceExhausted: the user has no instance left, or this process no descriptor. `init`:
  // inotify_init1.
  static Result<Inotify> make(const std::function<int(int flags)>& init = {});
  [[nodiscard]] bool works() const { return fd_ != nullptr; }
  // readable: call drain(); -1: never
  [[nodiscard]] int fd() const { return fd_ ? fd_->get() : -1; }

  // `writes`: every write counts (logs); else a file counts when it is closed, renamed or removed
  // (checkpoints are written for minutes). Idempotent. No: not there, or no instance. NoneLeft: the
  // user's watches are used up. New: what happened in it before this call was not told.
  enum class Watching { No, NoneLeft, Already, New };
  Watching watch(const std::string& dir, Owner owner, bool writes);

  // The same for directories of jobs in two halves. `instance`: handle()'s; nothing: every answer
  // is No.
  using Instance = std::shared_ptr<const io::UniqueFd>;
  struct Asked {
    std::string dir;
    int watch = -1;
    int error = 0;
  };
  [[nodiscard]] Instance handle() const { return fd_; }
  // any thread; blocking
  static std::vector<Asked> ask(const Instance& instance, const std::set<std::string>& dirs);
  // New as well when the directory of that name is another one than before. What is taken late may
  // have been given back by another owner in between: look and ask again after each New.
  Watching took(const Asked& asked, Owner owner);
  // What was asked for an owner that is gone.
  void refuse(const std::vector<Asked>& asked);

  void forget(Owner owner);
  // Keeps of the owner's directories only these.
  void keep(Owner owner, const std::set<std::string>& dirs);
  // Calls `changed(owner, name of the file)` for each change; an empty name: anything may have
  // changed. Never blocks.
  void drain(const std::function<void(Owner, std::string_view)>& changed);

 private:
  explicit Inotify(io::UniqueFd fd) : fd_(std::make_shared<const io::UniqueFd>(std::move(fd))) {}
  struct Watched {
    std::string dir;
    std::set<Owner> owners;
  };
  void drop(int watch, Owner owner);
  Instance fd_;  // shared with those that ask: open until the last of them is back
  std::map<int, Watched> watches_;
  std::map<std::string, int> by_dir_;
};

}  // namespace muster::agent
