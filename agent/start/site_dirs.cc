#include "agent/start/site_dirs.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <deque>
#include <string>

#include "common/io/unique_fd.h"

namespace muster::agent {
namespace {

namespace fs = std::filesystem;

constexpr int kLinksMost = 40;   // as the kernel
constexpr int kTriesMost = 100;  // others may make and remove the same directories
constexpr int kPathOnly = O_PATH | O_NOFOLLOW | O_CLOEXEC;

class Walk {
 public:
  Walk(const fs::path& path, const UserEntry& owner) : path_(path), owner_(owner) {
    put_in_front(path.lexically_normal());
  }

  Result<void> run() {
    if (auto there = go_to_root(); !there) return there;
    while (!parts_.empty()) {
      const std::string part = parts_.front();
      parts_.pop_front();
      if (auto gone = step(part); !gone) return gone;
    }
    return {};
  }

 private:
  [[nodiscard]] std::string doing() const {
    return fmt::format("making directory '{}'", path_.string());
  }
  [[nodiscard]] std::unexpected<Error> failed(const std::string& part, int error) const {
    auto result = fail_errno(fmt::format("{}: '{}' on the way", doing(), part), error);
    if (error == EROFS || error == EPERM || error == EACCES)
      result.error().code = ErrorCode::NotAllowed;
    if (error == ENOTDIR || error == ELOOP || error == ENAMETOOLONG)
      result.error().code = ErrorCode::InvalidArgument;
    return result;
  }

  void put_in_front(const fs::path& path) {
    auto at = parts_.begin();
    for (const fs::path& part : path) {
      if (part.empty() || part == "/" || part == ".") continue;
      at = std::next(parts_.insert(at, part.string()));
    }
  }

  Result<void> go_to_root() {
    at_.reset(::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!at_) return failed("/", errno);
    return {};
  }

  Result<void> step(const std::string& part) {
    io::UniqueFd next;
    struct stat there{};
    for (int tries = 0; !next; ++tries) {
      next.reset(::openat(at_.get(), part.c_str(), kPathOnly));
      if (next) break;
      if (errno != ENOENT || tries == kTriesMost) return failed(part, errno);
      if (::mkdirat(at_.get(), part.c_str(), 0755) == 0) {
        if (auto given = give(part); !given) return given;
      } else if (errno != EEXIST) {
        return failed(part, errno);
      }
    }
    if (::fstat(next.get(), &there) != 0) return failed(part, errno);
    if (S_ISLNK(there.st_mode)) return follow(next, there, part);
    if (!S_ISDIR(there.st_mode))
      return fail(ErrorCode::InvalidArgument,
                  fmt::format("{}: a file of that name is there", doing()));
    at_ = std::move(next);
    return {};
  }

  // What is given away is the directory that was made, or another empty name's new directory of
  // root: never a file, and never what a link leads to.
  Result<void> give(const std::string& part) const {
    const io::UniqueFd made(
        ::openat(at_.get(), part.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!made || ::fchown(made.get(), owner_.uid, owner_.gid) != 0)
      return fail_errno(fmt::format("{}: giving it to user '{}'", doing(), owner_.name), errno);
    return {};
  }

  Result<void> follow(const io::UniqueFd& link, const struct stat& there, const std::string& part) {
    if (there.st_uid != 0 && there.st_uid != ::geteuid())
      return fail(
          ErrorCode::NotAllowed,
          fmt::format("{}: user '{}' may not make it, and '{}' on the way is a link of user "
                      "{}: the agent runs as root and follows only links of root; make the "
                      "directory yourself, or name it without the link",
                      doing(), owner_.name, part, there.st_uid));
    if (++links_ > kLinksMost) return failed(part, ELOOP);
    std::array<char, PATH_MAX> target{};
    const ssize_t length = ::readlinkat(link.get(), "", target.data(), target.size());
    if (length <= 0) return failed(part, length < 0 ? errno : ENOENT);
    const fs::path to(std::string(target.data(), static_cast<std::size_t>(length)));
    put_in_front(to);
    return to.is_absolute() ? go_to_root() : Result<void>();
  }

  const fs::path& path_;
  const UserEntry& owner_;
  std::deque<std::string> parts_;
  io::UniqueFd at_;
  int links_ = 0;
};

}  // namespace

Result<void> make_dirs_of_site(const fs::path& path, const UserEntry& owner) {
  return Walk(path, owner).run();
}

}  // namespace muster::agent
