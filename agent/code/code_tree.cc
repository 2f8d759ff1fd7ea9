#include "agent/code/code_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "agent/launch/nearest_file.h"
#include "common/base/controls.h"
#include "common/io/file.h"
#include "common/io/unique_fd.h"

namespace muster::agent {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kDepthMax = 128, kLinkMax = 4096, kLargestNamed = 10, kPiece = 1U << 20U;
constexpr auto kLeftOut = std::to_array<std::string_view>({".git", "__pycache__"});

struct CloseDir {
  void operator()(DIR* dir) const { ::closedir(dir); }
};

std::string size_text(std::uint64_t bytes) {
  return bytes >= 1U << 20U   ? fmt::format("{} MiB", bytes >> 20U)
         : bytes >= 1U << 10U ? fmt::format("{} KiB", bytes >> 10U)
                              : fmt::format("{} bytes", bytes);
}

class Copier {
 public:
  Copier(const TreeCopy& copy, const TreeLimits& limits)
      : copy_(copy), limits_(limits), source_(copy.source.lexically_normal()) {
    if (!source_.has_filename()) source_ = source_.parent_path();
  }

  Result<void> run() {
    const io::UniqueFd top(::open(copy_.source.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!top) return missing(errno);
    if (struct stat info{}; !copy_.left_out.empty() && ::stat(copy_.left_out.c_str(), &info) == 0)
      left_out_ = {info.st_dev, info.st_ino};
    if (auto measured = walk(top.get(), -1, "", 0); !measured) return measured;
    if (bytes_ > limits_.bytes) return too_big();
    copying_ = true;
    bytes_ = entries_ = 0;
    struct stat info{};
    if (::fstat(top.get(), &info) != 0) return failed("", "checking it", errno);
    if (::mkdir(copy_.target.c_str(), 0700) != 0) return failed("", "making its directory", errno);
    const io::UniqueFd target(
        ::open(copy_.target.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!target) return failed("", "opening its directory", errno);
    if (auto copied = walk(top.get(), target.get(), "", 0); !copied) return copied;
    return finish_dir(target.get(), info, "");
  }

 private:
  [[nodiscard]] std::string doing() const {
    return fmt::format("copying the code '{}'", copy_.source.string());
  }

  [[nodiscard]] std::unexpected<Error> failed(const std::string& name, const char* what,
                                              int error) const {
    const std::string where =
        name.empty() ? std::string() : fmt::format(": '{}'", without_controls(name));
    auto result = fail_errno(fmt::format("{}{}: {}", doing(), where, what), error);
    if (error == EACCES || error == EPERM) result.error().code = ErrorCode::NotAllowed;
    return result;
  }

  [[nodiscard]] std::unexpected<Error> missing(int error) const {
    const std::string source = without_controls(copy_.source.string());
    if (error == ENOTDIR)
      return fail(ErrorCode::InvalidArgument,
                  fmt::format("code.at: '{}' is not a directory", source));
    if (error != ENOENT) return failed("", "opening it", error);
    const std::string near = nearest_text(copy_.source);
    return fail(
        ErrorCode::NotFound,
        fmt::format(
            "code.at: '{}' is not there on this node{}; what only an image has cannot be patched",
            source,
            near.empty() ? "; name one that is, or put it on a file system that every node sees"
                         : near));
  }

  [[nodiscard]] std::unexpected<Error> too_big() const {
    std::string text = fmt::format(
        "{}: it has {}, at most {} can be copied for code.patches; move data and checkpoints out "
        "of it. The largest:",
        doing(), size_text(bytes_), size_text(limits_.bytes));
    for (const auto& [bytes, name] : largest_)
      text += fmt::format(" '{}' ({}),", without_controls(name), size_text(bytes));
    text.pop_back();
    return fail(ErrorCode::InvalidArgument, std::move(text));
  }

  void remember(std::uint64_t bytes, const std::string& name) {
    if (largest_.size() == kLargestNamed && bytes <= largest_.back().first) return;
    largest_.insert(std::ranges::upper_bound(largest_, bytes, std::greater{},
                                             &std::pair<std::uint64_t, std::string>::first),
                    {bytes, name});
    if (largest_.size() > kLargestNamed) largest_.pop_back();
  }

  // Without a target directory (`into` is -1) it only measures.
  Result<void> walk(int from, int into, const std::string& below, std::size_t depth) {
    if (depth > kDepthMax)
      return fail(ErrorCode::InvalidArgument,
                  fmt::format("{}: '{}' is more than {} directories deep", doing(),
                              without_controls(below), kDepthMax));
    const int again = ::openat(from, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (again < 0) return failed(below, "reading the directory", errno);
    const std::unique_ptr<DIR, CloseDir> dir(::fdopendir(again));
    if (!dir) {
      const int error = errno;
      ::close(again);
      return failed(below, "reading the directory", error);
    }
    while (true) {
      errno = 0;
      const dirent* entry = ::readdir(dir.get());
      if (entry == nullptr)
        return errno == 0 ? Result<void>() : failed(below, "reading the directory", errno);
      const std::string name(entry->d_name);
      if (name == "." || name == ".." || std::ranges::find(kLeftOut, name) != kLeftOut.end())
        continue;
      if (auto done = one(from, into, name, below.empty() ? name : below + "/" + name, depth);
          !done)
        return done;
    }
  }

  Result<void> one(int from, int into, const std::string& name, const std::string& path,
                   std::size_t depth) {
    if (++entries_ > limits_.entries)
      return fail(ErrorCode::InvalidArgument,
                  fmt::format("{}: it has more than {} files and directories; move data out of it",
                              doing(), limits_.entries));
    if (std::chrono::steady_clock::now() > limits_.until)
      return fail(
          ErrorCode::TimedOut,
          fmt::format("{}: it took too long, and had come to '{}'; is that file system slow?",
                      doing(), without_controls(path)));
    struct stat info{};
    if (::fstatat(from, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0)
      return errno == ENOENT ? Result<void>() : failed(path, "checking it", errno);
    if (S_ISDIR(info.st_mode)) return directory(from, into, name, path, depth, info);
    if (S_ISLNK(info.st_mode)) return copying_ ? link(from, into, name, path) : Result<void>();
    if (!S_ISREG(info.st_mode)) return {};
    if (copying_) return file(from, into, name, path);
    bytes_ += static_cast<std::uint64_t>(info.st_size);
    remember(static_cast<std::uint64_t>(info.st_size), path);
    return {};
  }

  Result<void> directory(int from, int into, const std::string& name, const std::string& path,
                         std::size_t depth, const struct stat& info) {
    if (std::pair(info.st_dev, info.st_ino) == left_out_) return {};
    const io::UniqueFd inner(
        ::openat(from, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!inner) return failed(path, "opening the directory", errno);
    if (!copying_) return walk(inner.get(), -1, path, depth + 1);
    if (::mkdirat(into, name.c_str(), 0700) != 0)
      return failed(path, "making the directory", errno);
    const io::UniqueFd made(
        ::openat(into, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!made) return failed(path, "opening the copy of the directory", errno);
    if (auto done = walk(inner.get(), made.get(), path, depth + 1); !done) return done;
    return finish_dir(made.get(), info, path);
  }

  [[nodiscard]] Result<void> finish_dir(int fd, const struct stat& info,
                                        const std::string& path) const {
    if (::fchmod(fd, (info.st_mode & 0777U) | 0700U) != 0)
      return failed(path, "setting the directory's mode", errno);
    return {};
  }

  Result<void> link(int from, int into, const std::string& name, const std::string& path) const {
    std::array<char, kLinkMax + 1> buffer{};
    const ssize_t got = ::readlinkat(from, name.c_str(), buffer.data(), buffer.size());
    if (got < 0) return failed(path, "reading the link", errno);
    if (static_cast<std::size_t>(got) > kLinkMax)
      return failed(path, "reading the link", ENAMETOOLONG);
    const std::string to = led(std::string(buffer.data(), static_cast<std::size_t>(got)), path);
    if (::symlinkat(to.c_str(), into, name.c_str()) != 0)
      return failed(path, "making the link", errno);
    return {};
  }

  // Returns the target of a link's copy. Only the text decides: the target itself is not read.
  [[nodiscard]] std::string led(const std::string& to, const std::string& path) const {
    const bool absolute = to.starts_with('/');
    const fs::path full =
        (absolute ? fs::path(to) : source_ / fs::path(path).parent_path() / to).lexically_normal();
    const fs::path inside = full.lexically_relative(source_);
    const bool leaves = inside.empty() || *inside.begin() == "..";
    if (absolute) return leaves ? to : (copy_.place / inside).lexically_normal().string();
    return leaves ? full.string() : to;
  }

  Result<void> file(int from, int into, const std::string& name, const std::string& path) {
    const io::UniqueFd in(
        ::openat(from, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    if (!in) return failed(path, "opening it", errno);
    struct stat info{};
    if (::fstat(in.get(), &info) != 0) return failed(path, "checking it", errno);
    if (!S_ISREG(info.st_mode)) return {};
    io::UniqueFd out(
        ::openat(into, name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!out) return failed(path, "making the copy", errno);
    bytes_ += static_cast<std::uint64_t>(info.st_size);
    if (bytes_ > limits_.bytes)
      return fail(
          ErrorCode::InvalidArgument,
          fmt::format("{}: '{}' grew while it was copied; move what is written to out of it",
                      doing(), without_controls(path)));
    if (::ioctl(out.get(), FICLONE, in.get()) != 0) {
      if (auto done = bytes(in.get(), out.get(), static_cast<std::uint64_t>(info.st_size), path);
          !done)
        return done;
    }
    if (::fchmod(out.get(), info.st_mode & 0777U) != 0)
      return failed(path, "setting its mode", errno);
    // keeps files that were built from this one newer
    const std::array<timespec, 2> times = {info.st_atim, info.st_mtim};
    if (::futimens(out.get(), times.data()) != 0) return failed(path, "setting its time", errno);
    // NFS and quotas report a full disk only here
    if (::close(out.release()) != 0) return failed(path, "writing the copy", errno);
    return {};
  }

  // Copies as many bytes as the file had when it was opened.
  Result<void> bytes(int in, int out, std::uint64_t left, const std::string& path) const {
    while (left > 0) {
      const ssize_t count = ::copy_file_range(in, nullptr, out, nullptr, left, 0);
      if (count > 0) left -= static_cast<std::uint64_t>(count);
      if (count > 0 || (count < 0 && errno == EINTR)) continue;
      if (count < 0 && errno != EXDEV && errno != EINVAL && errno != ENOSYS &&
          errno != EOPNOTSUPP && errno != EPERM && errno != EBADF)
        return failed(path, "copying its bytes", errno);
      // no byte was copied: the file has ended, or the file system does not support the call and
      // does not report that
      return by_hand(in, out, left, path);
    }
    return {};
  }

  Result<void> by_hand(int in, int out, std::uint64_t left, const std::string& path) const {
    std::string piece;
    while (left > 0) {
      piece.resize(std::min<std::uint64_t>(kPiece, left));
      const ssize_t got = ::read(in, piece.data(), piece.size());
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return failed(path, "reading it", errno);
      if (got == 0) return {};
      std::size_t written = 0;
      if (const int error = io::write_all(
              out, std::string_view(piece).substr(0, static_cast<std::size_t>(got)), written);
          error != 0)
        return failed(path, "writing the copy", error);
      left -= static_cast<std::uint64_t>(got);
    }
    return {};
  }

  const TreeCopy& copy_;
  const TreeLimits& limits_;
  fs::path source_;
  std::pair<dev_t, ino_t> left_out_{};
  bool copying_ = false;
  std::uint64_t bytes_ = 0;
  std::size_t entries_ = 0;
  std::vector<std::pair<std::uint64_t, std::string>> largest_;
};

}  // namespace

Result<void> copy_tree(const TreeCopy& copy, const TreeLimits& limits) {
  return Copier(copy, limits).run();
}

}  // namespace muster::agent
