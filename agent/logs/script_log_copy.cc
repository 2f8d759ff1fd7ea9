#include "agent/logs/script_log_copy.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <climits>
#include <string_view>
#include <utility>

#include "agent/logs/read_at.h"
#include "common/base/time.h"
#include "common/io/file.h"

namespace muster::agent {
namespace {

constexpr std::size_t kCopyPiece = 256 << 10;
// Bytes before the end of the copy that must be equal in the file.
constexpr std::size_t kCopyAnchor = 256;
constexpr std::int64_t kClockSlackS = 5;
constexpr int kReadFlags = O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | O_NOFOLLOW;

// Reads "flags:" in /proc/PID/fdinfo/1, an octal number.
bool appends(const process::ProcessId& process) {
  const auto text = io::read_file("/proc/" + std::to_string(process.pid) + "/fdinfo/1", 4096);
  constexpr std::string_view kFlags = "flags:\t";
  const std::size_t at = text ? text->find(kFlags) : std::string::npos;
  if (at == std::string::npos) return false;
  unsigned flags = 0;
  (void)std::from_chars(text->data() + at + kFlags.size(), text->data() + text->size(), flags, 8);
  return (flags & O_APPEND) != 0 && process::alive(process);
}

// A file begins with a hole if its writer continued at its old offset after a truncation. A file
// that was extended without being written is only a hole.
std::uint64_t behind_hole(int fd) {
  const off_t at = ::lseek(fd, 0, SEEK_DATA);
  if (at >= 0 || errno != ENXIO) return at > 0 ? static_cast<std::uint64_t>(at) : 0;
  struct stat info{};
  const bool still = ::fstat(fd, &info) == 0 && ::lseek(fd, 0, SEEK_DATA) < 0 && errno == ENXIO;
  return still ? static_cast<std::uint64_t>(info.st_size) : 0;
}

// Opens each part of the path in turn: the path had no links, so a link in it now could lead to
// another file of the node. No descriptor, and errno: it cannot be opened.
io::UniqueFd open_below(io::UniqueFd at, std::string_view rest) {
  int error = at ? 0 : errno;
  while (at && !rest.empty()) {
    const std::size_t slash = rest.find('/');
    const std::string name(rest.substr(0, slash));
    rest = slash == std::string_view::npos ? std::string_view() : rest.substr(slash + 1);
    if (name == "..") {
      error = ENOENT;
      at.reset();
    } else {
      at.reset(::openat(at.get(), name.c_str(),
                        rest.empty() ? kReadFlags : O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
      error = at ? 0 : errno;
    }
  }
  errno = error;
  return at;
}

}  // namespace

ScriptLogCopy::ScriptLogCopy(ScriptLog log, const std::filesystem::path& run_dir, Open open,
                             std::shared_ptr<LogsDir> logs)
    : log_(std::move(log)),
      run_(run_dir),
      open_(std::move(open)),
      logs_(logs ? std::move(logs) : std::make_shared<LogsDir>(run_.logs())) {}

Result<void> ScriptLogCopy::open_copy() {
  if (!source_) {
    auto source = CursorFile::load(run_.node_log_source(log_.name), logs_);
    if (!source) return fail(std::move(source.error()));
    source_ = std::move(*source);
  }
  if (copy_) return {};
  const std::string path = run_.node_log(log_.name).string();
  const auto at = logs_->path_of(run_.node_log(log_.name).filename().string());
  if (!at) return fail(Error(at.error()));
  io::UniqueFd copy(
      ::open(at->c_str(),
             O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0600));
  struct stat info{};
  if (!copy || ::fstat(copy.get(), &info) != 0)
    return fail_errno(fmt::format("opening '{}'", path), errno);
  if (!S_ISREG(info.st_mode))
    return fail(ErrorCode::InvalidArgument, fmt::format("opening '{}': it is no file", path));
  // A copy is emptied when its source begins anew: no other file may lose its content by that.
  if (info.st_nlink > 1)
    return fail(ErrorCode::InvalidArgument,
                fmt::format("opening '{}': it has another name, too (a hard link)", path));
  copied_ = static_cast<std::uint64_t>(info.st_size);
  copy_ = std::move(copy);
  return {};
}

// No descriptor, and errno: it cannot be opened.
io::UniqueFd ScriptLogCopy::open_inside() {
  io::UniqueFd at(::open(fmt::format("/proc/{}/root", log_.root.pid).c_str(),
                         O_PATH | O_DIRECTORY | O_CLOEXEC));
  const int error = at ? ESRCH : errno;
  // An exiting process has no root directory any more. The pid may also belong to another process
  // by now.
  if (!at || !process::alive(log_.root)) {
    if (kept_) return io::UniqueFd(::fcntl(kept_.get(), F_DUPFD_CLOEXEC, 0));
    errno = error;
    return {};
  }
  return open_below(std::move(at), std::string_view(log_.path).substr(1));
}

// No descriptor: there is no file to read. A pipe is not read, because the agent would keep its end
// open. A file of the run directory is not read, because that directory has secrets.
io::UniqueFd ScriptLogCopy::open_file(struct stat& info, Round& round) {
  io::UniqueFd file;
  int error = 0;
  {
    const std::shared_ptr<void> rights = log_.rights ? log_.rights() : nullptr;
    if (log_.rights && rights == nullptr)
      errno = EPERM;
    else if (log_.root.pid != 0)
      file = open_inside();
    else if (!log_.mount.empty() && log_.mount.size() < log_.path.size())
      file = open_below(io::UniqueFd(::open(log_.mount.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)),
                        std::string_view(log_.path).substr(log_.mount.size() + 1));
    else
      file.reset(open_ ? open_(log_.path.c_str(), kReadFlags)
                       : ::open(log_.path.c_str(), kReadFlags));
    if (!file || ::fstat(file.get(), &info) != 0) error = errno;
  }
  if (error != 0) {
    if (error != ENOENT && error != ELOOP && error != ENOTDIR && error != ENXIO && error != ESRCH)
      round.trouble = std::move(
          fail_errno(fmt::format("reading '{}', the log of rank {}", log_.path, log_.rank), error)
              .error());
    return {};
  }
  if (!S_ISREG(info.st_mode)) return {};
  std::array<char, PATH_MAX> name{};
  const ssize_t length =
      ::readlink(("/proc/self/fd/" + std::to_string(file.get())).c_str(), name.data(), name.size());
  std::error_code unknown;
  const std::string own = std::filesystem::canonical(run_.root(), unknown).string() + "/";
  if (unknown || length <= 0 ||
      std::string_view(name.data(), static_cast<std::size_t>(length)).starts_with(own))
    return {};
  round.device = info.st_dev;
  if (log_.root.pid != 0) kept_.reset(::fcntl(file.get(), F_DUPFD_CLOEXEC, 0));
  return file;
}

// If the file is appended to (>>) and is older than this attempt, its content so far was there
// before. Else all of it is the rank's.
std::uint64_t ScriptLogCopy::first_byte(int fd, const struct stat& info) const {
  if (!appends(log_.process)) return 0;
  struct stat launch{};
  struct statx born{};
  const bool known = ::stat(run_.launch().c_str(), &launch) == 0 &&
                     ::statx(fd, "", AT_EMPTY_PATH, STATX_BTIME, &born) == 0 &&
                     (born.stx_mask & STATX_BTIME) != 0;
  if (known && born.stx_btime.tv_sec >= launch.st_mtim.tv_sec - kClockSlackS) return 0;
  return static_cast<std::uint64_t>(info.st_size);
}

Result<bool> ScriptLogCopy::continues(int fd, const struct stat& info) const {
  const auto& segment = *source_->segment();
  const std::uint64_t end = segment.base() + copied_;
  if (segment.inode() != info.st_ino || static_cast<std::uint64_t>(info.st_size) < end)
    return false;
  // it was empty at the last scan
  if (copied_ == 0 && segment.number() > 0 && behind_hole(fd) != segment.base()) return false;
  std::array<char, 2 * kCopyAnchor> bytes;
  const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(kCopyAnchor, copied_));
  if (read_at(copy_.get(), bytes.data(), count, copied_ - count) != count)
    return fail_errno("reading the copy of a log", errno);
  const std::size_t got = read_at(fd, bytes.data() + kCopyAnchor, count, end - count);
  return got == count &&
         std::equal(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(count),
                    bytes.begin() + kCopyAnchor);
}

// The record is written first. If the agent is killed in between, the copy does not continue the
// file, and this function runs once more.
Result<void> ScriptLogCopy::begin(std::uint64_t base, std::uint64_t inode) {
  logs::v1::CursorRecord record;
  logs::v1::Segment& segment = *record.mutable_segment();
  segment.set_number(source_->segment() ? source_->segment()->number() + 1 : 0);
  segment.set_base_known(true);
  segment.set_base(base);
  segment.set_inode(inode);
  segment.set_at_ns(system_clock().now().wall.time_since_epoch().count());
  if (auto kept = source_->append(record); !kept) return kept;
  if (copied_ > 0 && ::ftruncate(copy_.get(), 0) != 0)
    return fail_errno("emptying the copy of a log", errno);
  copied_ = 0;
  return {};
}

Result<void> ScriptLogCopy::take(int fd, Round& round) {
  buffer_.resize(kCopyPiece);
  for (std::uint64_t bytes = 0;;) {
    const std::uint64_t at = source_->segment()->base() + copied_;
    const std::size_t got = read_at(fd, buffer_.data(), buffer_.size(), at);
    struct stat after{};
    // The file was truncated meanwhile: the bytes may mix two contents. The next scan finds that
    // out.
    if (got == 0 || ::fstat(fd, &after) != 0 ||
        static_cast<std::uint64_t>(after.st_size) < at + got)
      return {};
    if (bytes >= kRoundBytes) {
      round.more = true;
      return {};
    }
    std::size_t written = 0;
    const int error = io::write_all(copy_.get(), {buffer_.data(), got}, written);
    copied_ += written;
    bytes += written;
    round.moved = round.moved || written > 0;
    if (error != 0)
      return fail_errno(fmt::format("copying '{}', the log of rank {}, to '{}'", log_.path,
                                    log_.rank, run_.logs().string()),
                        error);
    if (got < buffer_.size()) return {};
  }
}

ScriptLogCopy::Round ScriptLogCopy::copy(bool last) {
  Round round;
  const auto troubled = [&](Error error) {
    round.trouble = std::move(error);
    return round;
  };
  if (auto opened = open_copy(); !opened) return troubled(std::move(opened.error()));
  if (source_->parsed()) return round;
  struct stat info{};
  if (const io::UniqueFd file = open_file(info, round)) {
    Result<bool> same = source_->segment() ? continues(file.get(), info) : Result<bool>(false);
    if (!same) return troubled(std::move(same.error()));
    if (!*same) {
      const bool again = source_->segment().has_value();
      round.moved = copied_ > 0;
      if (auto begun =
              begin(again ? behind_hole(file.get()) : first_byte(file.get(), info), info.st_ino);
          !begun)
        return troubled(std::move(begun.error()));
    }
    if (auto taken = take(file.get(), round); !taken) return troubled(std::move(taken.error()));
  }
  if (!last || round.more || round.trouble) return round;
  logs::v1::CursorRecord whole;
  whole.mutable_parsed()->set_position(copied_);
  if (auto kept = source_->append(whole); !kept) return troubled(std::move(kept.error()));
  copy_.reset();
  kept_.reset();
  buffer_ = {};
  return round;
}

}  // namespace muster::agent
