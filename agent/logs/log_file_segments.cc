// Which segment the file is: the checks before and after each read, and the begin of a new segment.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <utility>

#include "agent/logs/log_file.h"
#include "agent/logs/log_file_use.h"

namespace muster::agent {
namespace {

std::int64_t wall_ns() { return system_clock().now().wall.time_since_epoch().count(); }

// Whether a process has the file open for writing: then the kernel grants no read lease. True if
// the kernel does not answer that. A program that opens the file while the lease is held ends the
// lease with a signal: SIGURG, which is ignored, instead of SIGIO, which would end this process.
bool may_be_written(int fd) {
  if (::fcntl(fd, F_SETSIG, SIGURG) != 0 || ::fcntl(fd, F_SETLEASE, F_RDLCK) != 0) return true;
  (void)::fcntl(fd, F_SETLEASE, F_UNLCK);
  return false;
}

}  // namespace

void LogFile::begin_segment(std::uint64_t size, std::uint64_t inode) {
  const std::uint64_t seen_end = segment_.base() + size_;
  segment_.set_number(segment_.number() + 1);
  // Until the controller has reported to this incarnation, an earlier incarnation may have shipped
  // more than this one has seen.
  segment_.set_base_known(controller_has_.has_value());
  segment_.set_base(std::max(seen_end, controller_has_.value_or(0)));
  segment_.set_begin(segment_.inode() == inode ? logs::v1::SEGMENT_BEGIN_UNSPECIFIED
                                               : logs::v1::SEGMENT_BEGIN_REPLACED);
  segment_.set_inode(inode);
  segment_.clear_head();
  segment_.set_at_ns(wall_ns());
  segment_persisted_ = false;
  head_persisted_ = 0;
  floor_.Clear();
  size_ = size;
  parsed_ = 0;
  anchor_.clear();
  cut_ = true;
}

Result<io::UniqueFd> LogFile::successor() const {
  struct stat named{};
  // A file that is opened for each call is found by its name.
  if (!kept_ || dir_->stat(name_, named) != 0 || !S_ISREG(named.st_mode) ||
      static_cast<std::uint64_t>(named.st_ino) == segment_.inode())
    return io::UniqueFd();
  if (!writers_gone_ && may_be_written(fd_.get())) return io::UniqueFd();
  io::UniqueFd next = dir_->open(name_, O_RDONLY);
  if (!next && (errno == ENOENT || errno == ELOOP)) return io::UniqueFd();
  if (!next || ::fstat(next.get(), &named) != 0)
    return fail_errno(fmt::format("opening the file that has replaced log '{}'", log_.string()),
                      errno);
  const bool other =
      S_ISREG(named.st_mode) && static_cast<std::uint64_t>(named.st_ino) != segment_.inode();
  return other ? std::move(next) : io::UniqueFd();
}

void LogFile::next_file(io::UniqueFd next) {
  // An empty file is no segment of its own: what is lost before it is lost before the next one.
  if (parsed_ > 0) {
    const std::uint64_t end = segment_.base() + parsed_;
    if (!segment_.base_known() || synced_ < end)
      renamed_.keep({.fd = std::move(fd_),
                     .segment = segment_,
                     .floor = floor_,
                     .size = parsed_,
                     .anchor = anchor_});
    segment_.set_number(segment_.number() + 1);
    segment_.set_base(end);
    segment_.set_begin(logs::v1::SEGMENT_BEGIN_CONTINUED);
    segment_.set_at_ns(wall_ns());
    floor_.Clear();
    parsed_ = 0;
    anchor_.clear();
    new_file_ = true;
  }
  fd_ = std::move(next);
  segment_.set_inode(0);  // check() takes that of the new file
  segment_.clear_head();
  segment_persisted_ = false;
  head_persisted_ = 0;
  size_ = 0;
}

Result<bool> LogFile::open_log() {
  io::UniqueFd fd = dir_->open(name_, O_RDONLY);
  if (!fd && errno != ENOENT && errno != ELOOP)
    return fail_errno(fmt::format("opening log '{}'", log_.string()), errno);
  struct stat what{};
  if (fd && ::fstat(fd.get(), &what) != 0)
    return fail_errno(fmt::format("checking log '{}'", log_.string()), errno);
  if (!fd || !S_ISREG(what.st_mode)) {
    if (size_ > 0 || parsed_ > 0) begin_segment(0, 0);  // what was read earlier is gone
    return false;
  }
  fd_ = std::move(fd);
  kept_ = kept_ || !budget_ || budget_->take();
  return true;
}

Result<bool> LogFile::check() {
  if (!fd_) {
    const auto there = open_log();
    if (!there || !*there) return there;
  }
  struct stat now{};
  if (::fstat(fd_.get(), &now) != 0)
    return fail_errno(fmt::format("checking log '{}'", log_.string()), errno);
  const auto size = static_cast<std::uint64_t>(now.st_size);
  const auto inode = static_cast<std::uint64_t>(now.st_ino);
  if (segment_.inode() == 0) segment_.set_inode(inode);
  const auto same = same_segment(size, inode);
  if (!same) return fail(Error(same.error()));
  if (*same) {
    size_ = std::max(size_, size);
  } else {
    // The next check takes its head. Only after that are bytes of it passed on.
    begin_segment(size, inode);
  }
  return true;
}

// Reads the head of the segment if more of it is known now.
Result<bool> LogFile::same_segment(std::uint64_t size, std::uint64_t inode) {
  const std::size_t head = segment_.head().size();
  if (segment_.inode() != inode ||
      size < std::max({size_, static_cast<std::uint64_t>(head), parsed_, floor_.position()}))
    return false;
  // The controller has more than the file: the log was truncated while no agent was running, and
  // begins with the same bytes.
  if (segment_.base_known() && controller_has_.value_or(0) > segment_.base() + size) return false;
  std::array<char, kHeadMost> bytes;
  auto got = pread_some(bytes.data(),
                        static_cast<std::size_t>(std::min<std::uint64_t>(kHeadMost, size)), 0);
  if (!got) return fail(std::move(got.error()));
  if (*got < head || std::string_view(bytes.data(), head) != segment_.head()) return false;
  if (!anchor_.empty() && parsed_ - anchor_.size() >= floor_.position()) {
    std::array<char, kAnchorMost> before;
    auto read = pread_some(before.data(), anchor_.size(), parsed_ - anchor_.size());
    if (!read) return fail(std::move(read.error()));
    if (std::string_view(before.data(), *read) != anchor_) return false;
  }
  if (*got > head) segment_.set_head(bytes.data(), *got);
  return true;
}

Result<void> LogFile::persist_segment() {
  const std::size_t head = segment_.head().size();
  if (segment_persisted_ &&
      (head == head_persisted_ ||
       (head_persisted_ != 0 && head < 2 * head_persisted_ && head < kHeadMost)))
    return {};
  logs::v1::CursorRecord record;
  *record.mutable_segment() = segment_;
  if (auto done = cursor_.append(record); !done) return done;
  segment_persisted_ = true;
  head_persisted_ = head;
  return {};
}

void LogFile::controller_has(std::uint64_t offset, std::uint64_t synced) {
  const Use use(*this);
  if (!segment_.base_known()) {
    // There may be a newer segment. An error occurs again at the next read, and is reported there.
    (void)check();
    // Bases that are not known count from the first of them.
    const std::uint64_t first = renamed_.unknown_base().value_or(segment_.base());
    const std::uint64_t more = std::max(offset, first) - first;
    renamed_.set_bases(more);
    segment_.set_base(segment_.base() + more);
    segment_.set_base_known(true);
    segment_persisted_ = false;
  }
  controller_has_ = std::max(offset, controller_has_.value_or(0));
  synced_ = std::max(synced_, synced);
  renamed_.synced(synced_);
}

}  // namespace muster::agent
