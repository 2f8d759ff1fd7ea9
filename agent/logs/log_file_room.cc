// The space that the log uses on the disk.
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/falloc.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "agent/logs/log_file.h"
#include "agent/logs/log_file_use.h"

namespace muster::agent {
namespace {

constexpr std::uint64_t kBlock = 4096;

std::uint64_t align_down(std::uint64_t value) { return value / kBlock * kBlock; }

}  // namespace

Result<std::uint64_t> LogFile::punch(std::uint64_t to, const char* reason) {
  const std::uint64_t from = std::max(kBlock, floor_.position());
  if (size_ == 0 || to <= from) return 0;
  const auto failed = [&](int error) {
    return fail_errno(
        fmt::format("punching bytes {} to {} out of log '{}'", from, to, log_.string()), error);
  };
  // Opened only for this call: the reading descriptor must not be able to write.
  const io::UniqueFd writable = dir_->open(name_, O_WRONLY);
  struct stat what{};
  struct stat read{};
  if (!writable && errno == ENOENT) return 0;
  if (!writable || ::fstat(writable.get(), &what) != 0 || ::fstat(fd_.get(), &read) != 0)
    return failed(errno);
  // It has another name, too: it may be somebody's file that the job has put here.
  if (what.st_nlink > 1) return 0;
  // Another file has the log's name now.
  if (what.st_ino != read.st_ino || what.st_dev != read.st_dev) return 0;
  // Both are one file, so this checks the size, the head and the anchor of what is punched.
  const std::uint32_t number = segment_.number();
  const auto there = check();
  if (!there) return fail(Error(there.error()));
  if (segment_.number() != number) return 0;
  if (auto done = persist_segment(); !done) return fail(std::move(done.error()));
  floor_.set_segment(segment_.number());
  floor_.set_position(to);
  floor_.set_reason(reason);
  floor_.set_at_ns(system_clock().now().wall.time_since_epoch().count());
  logs::v1::CursorRecord record;
  *record.mutable_floor() = floor_;
  if (auto done = cursor_.append(record); !done) return fail(std::move(done.error()));
  if (::fallocate(writable.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                  static_cast<off_t>(from), static_cast<off_t>(to - from)) != 0)
    return failed(errno);
  return to - from;
}

Result<std::uint64_t> LogFile::trim(std::uint64_t cap) {
  const Use use(*this);
  const auto there = check();
  if (!there) return fail(Error(there.error()));
  if (!*there) return 0;
  if (!segment_.base_known() || synced_ <= segment_.base() ||
      size_ < cap + floor_.position() + cap / 16)
    return 0;
  const std::uint64_t limit = std::min(synced_ - segment_.base(), parsed_);
  return punch(align_down(std::min(limit, size_ - cap)), kSoftCapReason);
}

Result<std::uint64_t> LogFile::give_up(std::uint64_t want, std::uint64_t keep) {
  const Use use(*this);
  const std::uint64_t closed = renamed_.give_up_deleted();
  if (closed >= want) return closed;
  const auto there = check();
  if (!there) return fail(Error(there.error()));
  if (!*there) return closed;
  const std::uint64_t floor = std::max(kBlock, floor_.position());
  auto punched = punch(align_down(std::min({parsed_, size_ - std::min(size_, keep),
                                            floor + (want - closed) + kBlock - 1})),
                       kHardCapReason);
  if (!punched) return punched;
  return closed + *punched;
}

std::uint64_t LogFile::stored_bytes() {
  const Use use(*this);
  return size_ - std::min(size_, floor_.position()) + renamed_.deleted_bytes();
}

}  // namespace muster::agent
