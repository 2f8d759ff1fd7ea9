#include "common/io/remove_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

namespace muster::io {
namespace {

// A name is removed from the tree at each step, so this ends. It bounds what a process that fills
// the tree at the same time can do.
constexpr std::size_t kRoundsMost = 1'000'000;

class Removal {
 public:
  Removal(const Beneath& above, std::string name) : above_(above), name_(std::move(name)) {}

  Result<void> run() {
    if (::unlinkat(above_.fd(), name_.c_str(), 0) == 0 || errno == ENOENT) return {};
    // Linux reports EISDIR for a directory, POSIX allows EPERM.
    if (errno != EISDIR && errno != EPERM) return stays(name_, errno);
    top_ = open_dir(above_.fd(), name_);
    if (!top_) return stays(name_, errno);
    for (std::size_t round = 0; round < kRoundsMost && !empty(top_.get()); ++round) {
      if (!one_round()) break;
    }
    if (::unlinkat(above_.fd(), name_.c_str(), AT_REMOVEDIR) == 0 || errno == ENOENT) return {};
    const int error = errno;
    if (first_) return std::move(*first_);
    return stays(name_, error);
  }

 private:
  struct CloseDir {
    void operator()(DIR* dir) const { ::closedir(dir); }
  };

  std::unexpected<Error> stays(const std::string& name, int error) const {
    auto failed =
        fail_errno("removing '" + above_.at(name_).shown.string() + "': '" + name + "'", error);
    if (error == EBUSY || error == EXDEV)
      failed.error().message += "; something is mounted there: unmount it";
    return failed;
  }
  void note(const std::string& name, int error) {
    stay_.insert(name);
    if (!first_) first_ = Result<void>(stays(name, error));
  }

  // Without the right to read it there is no fchmod().
  [[nodiscard]] static bool opened_to_owner(int path_fd) {
    struct stat info{};
    return ::fstat(path_fd, &info) == 0 && info.st_uid == ::geteuid() &&
           ::chmod(("/proc/self/fd/" + std::to_string(path_fd)).c_str(), S_IRWXU) == 0;
  }

  // Never a link, and never what is mounted there. A directory of this user that is closed to its
  // owner is opened to him.
  [[nodiscard]] static UniqueFd open_dir(int dir, const std::string& name) {
    constexpr int kOpen = O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    UniqueFd fd(::openat(dir, name.c_str(), O_RDONLY | kOpen));
    if (!fd && errno == EACCES) {
      const UniqueFd closed(::openat(dir, name.c_str(), O_PATH | kOpen));
      if (!closed || !opened_to_owner(closed.get())) {
        errno = EACCES;
        return {};
      }
      fd = UniqueFd(::openat(dir, name.c_str(), O_RDONLY | kOpen));
    }
    if (!fd) return fd;
    struct stat in{};
    struct stat out{};
    if (::fstat(fd.get(), &in) != 0 || ::fstat(dir, &out) != 0) return {};
    if (in.st_dev != out.st_dev || mount_of(fd.get()) != mount_of(dir)) {
      errno = EXDEV;
      return {};
    }
    if ((in.st_mode & S_IRWXU) != S_IRWXU && in.st_uid == ::geteuid()) ::fchmod(fd.get(), S_IRWXU);
    return fd;
  }

  // A bind mount may be of the same device. 0: this kernel does not tell (before Linux 5.8).
  static std::uint64_t mount_of(int fd) {
    struct statx about{};
    const bool known = ::statx(fd, "", AT_EMPTY_PATH, STATX_MNT_ID, &about) == 0 &&
                       (about.stx_mask & STATX_MNT_ID) != 0;
    return known ? about.stx_mnt_id : 0;
  }

  // Names in a directory, at most some thousand at a time: it may have millions.
  static std::set<std::string> names(int dir) {
    constexpr std::size_t kMost = 4096;
    std::set<std::string> found;
    const int own = ::openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const std::unique_ptr<DIR, CloseDir> stream(own < 0 ? nullptr : ::fdopendir(own));
    if (stream == nullptr) {
      if (own >= 0) ::close(own);
      return found;
    }
    while (const dirent* entry = found.size() < kMost ? ::readdir(stream.get()) : nullptr) {
      const std::string_view name = entry->d_name;
      if (name != "." && name != "..") found.emplace(name);
    }
    return found;
  }
  static bool empty(int dir) { return names(dir).empty(); }

  // Removes a file or an empty directory. 0, or errno; ENOTEMPTY: a directory to go into.
  static int remove_one(int dir, const std::string& name) {
    if (::unlinkat(dir, name.c_str(), 0) == 0 || errno == ENOENT) return 0;
    if (errno != EISDIR && errno != EPERM) return errno;
    const int refused = errno;
    if (::unlinkat(dir, name.c_str(), AT_REMOVEDIR) == 0 || errno == ENOENT) return 0;
    return errno == ENOTDIR ? refused : errno == EEXIST ? ENOTEMPTY : errno;
  }

  // False: nothing can be removed any more.
  bool one_round() {
    bool progress = false;
    const auto done = [&](const std::string& name, int error) {
      if (error != 0) note(name, error);
      progress = progress || error == 0;
    };
    for (const std::string& name : names(top_.get())) {
      if (stay_.contains(name)) continue;
      const int error = remove_one(top_.get(), name);
      done(name, error == ENOTEMPTY ? move_up(top_, name) : error);
      // Without reading the top again: it may have millions of names.
      while (!moved_.empty()) {
        const std::string moved = std::move(moved_.back());
        moved_.pop_back();
        done(moved, hollow(moved));
      }
    }
    return progress;
  }

  // Gives a directory that is not empty a name of its own at the top. The kernel does not move what
  // something is mounted on (EBUSY). Returns 0 or errno.
  int move_up(const UniqueFd& from, const std::string& name) {
    for (;;) {
      const std::string to = ".gone-" + std::to_string(moves_++);
      int error = ::renameat(from.get(), name.c_str(), top_.get(), to.c_str()) == 0 ? 0 : errno;
      // A directory that its owner may not write cannot get another parent.
      if (error == EACCES && open_dir(from.get(), name))
        error = ::renameat(from.get(), name.c_str(), top_.get(), to.c_str()) == 0 ? 0 : errno;
      if (error == 0) moved_.push_back(to);
      // The name is taken: a job has made it.
      if (error != EEXIST && error != ENOTEMPTY && error != ENOTDIR) return error;
    }
  }

  // Removes what is in a directory at the top, and moves directories that are not empty to the top.
  int hollow(const std::string& name) {
    const UniqueFd dir = open_dir(top_.get(), name);
    if (!dir) return errno;
    int kept = 0;
    for (bool more = true; more && kept == 0;) {
      const auto found = names(dir.get());
      more = !found.empty();
      for (const std::string& one : found) {
        int error = remove_one(dir.get(), one);
        if (error == ENOTEMPTY) error = move_up(dir, one);
        if (error != 0) kept = error;
      }
    }
    if (kept != 0) return kept;
    const int error = remove_one(top_.get(), name);
    return error == ENOTEMPTY ? 0 : error;  // somebody has filled it again: the next round
  }

  const Beneath& above_;
  const std::string name_;
  UniqueFd top_;
  std::set<std::string> stay_;
  std::vector<std::string> moved_;  // to the top, and to be removed
  std::optional<Result<void>> first_;
  std::size_t moves_ = 0;
};

}  // namespace

Result<void> remove_tree(const Beneath& above, const std::string& name) {
  return Removal(above, name).run();
}

}  // namespace muster::io
