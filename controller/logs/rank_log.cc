#include "controller/logs/rank_log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/falloc.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "common/io/file.h"

namespace muster::logs {
namespace {

constexpr std::uint64_t kBlock = 4096;
constexpr std::uint64_t kScanBack = 64 << 10;

// Fills `data`, or shortens it to the bytes that exist. Returns 0, or errno.
int pread_some(int fd, std::uint64_t at, std::string& data) {
  std::size_t done = 0;
  while (done < data.size()) {
    const ssize_t got =
        ::pread(fd, data.data() + done, data.size() - done, static_cast<off_t>(at + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno;
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  data.resize(done);
  return 0;
}

}  // namespace

Result<RankLog> RankLog::open(std::filesystem::path log, std::filesystem::path index_path,
                              std::function<int(int)> sync_call) {
  auto index = LogIndex::load(std::move(index_path), sync_call);
  if (!index) return fail(std::move(index.error()));
  RankLog rank(std::move(log), std::move(*index), std::move(sync_call));
  struct stat now{};
  if (::stat(rank.log_.c_str(), &now) == 0) {
    rank.size_ = static_cast<std::uint64_t>(now.st_size);
  } else if (errno != ENOENT) {
    return fail_errno(fmt::format("checking log '{}'", rank.log_.string()), errno);
  }
  if (auto done = rank.index_.forget_beyond(rank.size_); !done)
    return fail(std::move(done.error()));
  // An end mark is written only when the bytes are synced.
  rank.ended_ = rank.end_synced_ = rank.index_.end().has_value();
  if (rank.ended_) rank.synced_ = rank.size_;
  return rank;
}

LogState RankLog::state() const {
  const std::uint64_t end = index_.logical(size_);
  return {.end = end,
          .complete = ended_,
          .synced = synced_ == size_ ? end : std::min(index_.logical(synced_), end),
          .durable = index_.end().has_value() && end_synced_};
}

Result<void> RankLog::need_fd(bool make) {
  if (fd_) return {};
  const auto open = [&] {
    fd_.reset(::open(log_.c_str(), O_RDWR | O_CLOEXEC | (make ? O_CREAT : 0), 0600));
  };
  open();
  if (!fd_ && make && errno == ENOENT) {
    if (auto done = io::make_dirs(log_.parent_path(), 0700); !done) return done;
    open();
  }
  if (!fd_) return fail_errno(fmt::format("opening log '{}'", log_.string()), errno);
  return {};
}

void RankLog::close() {
  fd_.reset();
  index_.close();
}

Result<io::UniqueFd> RankLog::sync_handle() {
  if (auto done = need_fd(false); !done) return fail(std::move(done.error()));
  io::UniqueFd handle(::fcntl(fd_.get(), F_DUPFD_CLOEXEC, 0));
  if (!handle) return fail_errno(fmt::format("syncing log '{}'", log_.string()), errno);
  return handle;
}

Result<std::uint64_t> RankLog::append(std::uint64_t offset, std::string_view data,
                                      const std::optional<Gap>& gap, WallTime now) {
  if (ended_) return 0;
  if (unsound_)
    return fail(ErrorCode::Io,
                fmt::format("writing log '{}': the disk did not take what was written before",
                            log_.string()));
  if (auto done = need_fd(true); !done) return fail(std::move(done.error()));
  const std::uint64_t end = index_.logical(size_);
  if (offset > end) {
    if (!gap || gap->from > end)
      return fail(ErrorCode::Conflict,
                  fmt::format("appending to log '{}': bytes {} to {} were never sent",
                              log_.string(), end, offset));
    if (auto done = index_.add_gap({end, offset, gap->reason, gap->at}); !done)
      return fail(std::move(done.error()));
  } else if (offset + data.size() < end) {
    return 0;
  } else if (gap && gap->from == offset && offset == end) {
    // An unknown amount is lost. The gap arrives twice if the answer to the first one was lost with
    // its connection.
    const bool there = !index_.gaps().empty() && index_.gaps().back().to == end;
    if (!there) {
      if (auto done = index_.add_gap({end, end, gap->reason, gap->at}); !done)
        return fail(std::move(done.error()));
    }
  } else {
    data.remove_prefix(static_cast<std::size_t>(end - offset));
    offset = end;
  }
  if (data.empty()) return 0;
  const WallTime point = index_.last_time().at;
  // `now` is before the point if the clock was set back.
  if (point == WallTime{} || now - point >= kTimeStep || now < point) {
    if (auto done = index_.add_time(offset, now); !done) return fail(std::move(done.error()));
  }
  std::uint64_t written = 0;
  while (written < data.size()) {
    const ssize_t went = ::pwrite(fd_.get(), data.data() + written, data.size() - written,
                                  static_cast<off_t>(size_));
    if (went < 0 && errno == EINTR) continue;
    // The part that was written is whole, and counts.
    if (went <= 0)
      return fail_errno(fmt::format("writing log '{}'", log_.string()), went < 0 ? errno : ENOSPC);
    written += static_cast<std::uint64_t>(went);
    size_ += static_cast<std::uint64_t>(went);
  }
  return written;
}

Result<void> RankLog::finish(std::uint64_t size) {
  if (ended_) return {};
  const std::uint64_t end = index_.logical(size_);
  if (size > end)
    return fail(ErrorCode::Conflict, fmt::format("ending log '{}': bytes {} to {} were never sent",
                                                 log_.string(), end, size));
  if (auto done = need_fd(true); !done) return done;
  // Makes the index, too: a directory is synced once, with both names in it.
  if (auto index = index_.sync_handle(); !index) return fail(std::move(index.error()));
  ended_ = true;
  return {};
}

Result<bool> RankLog::synced(std::uint64_t size) {
  synced_ = std::max(synced_, std::min(size, size_));
  if (!ended_ || synced_ < size_) return false;
  if (index_.end()) return !end_synced_;
  if (auto done = index_.add_end(index_.logical(size_)); !done)
    return fail(std::move(done.error()));
  return true;
}

Result<void> RankLog::set_back() {
  unsound_ = true;
  // Bytes that the quota removed are not sent again.
  const std::uint64_t to = std::max(synced_, std::min(size_, index_.physical(index_.evicted())));
  fd_.reset();
  if (auto done = need_fd(false); !done) return done;
  if (::ftruncate(fd_.get(), static_cast<off_t>(to)) != 0 || sync_call_(fd_.get()) != 0) {
    return fail_errno(
        fmt::format("taking off what the disk did not take of log '{}'", log_.string()), errno);
  }
  if (to < size_) ended_ = end_synced_ = false;
  size_ = synced_ = to;
  if (auto done = index_.forget_beyond(size_); !done) return done;
  unsound_ = false;
  return {};
}

Result<std::string> RankLog::pread_all(std::uint64_t at, std::size_t most) const {
  std::string data(most, '\0');
  if (const int error = pread_some(fd_.get(), at, data); error != 0)
    return fail_errno(fmt::format("reading log '{}'", log_.string()), error);
  return data;
}

Result<Chunk> RankLog::read(std::uint64_t offset, std::size_t most) {
  const std::uint64_t end = index_.logical(size_);
  Chunk chunk{.offset = offset};
  if (offset < index_.evicted()) {
    chunk.gap_before = Gap{offset, index_.evicted(), kQuotaReason, index_.evicted_at()};
    chunk.offset = index_.evicted();
  }
  std::uint64_t until = end;
  for (const Gap& gap : index_.gaps()) {
    if (gap.to < chunk.offset || (gap.to == chunk.offset && gap.from != gap.to)) continue;
    if (gap.from > chunk.offset) {
      until = std::min(until, gap.from);
      break;
    }
    // Nothing is after it yet: returned with later data.
    if (gap.from == gap.to && gap.to >= end) break;
    chunk.gap_before = Gap{offset, gap.to, gap.reason, gap.at};
    chunk.offset = gap.to;
  }
  if (chunk.offset >= until) return chunk;
  if (auto done = need_fd(false); !done) return fail(std::move(done.error()));
  auto data =
      pread_all(index_.physical(chunk.offset),
                static_cast<std::size_t>(std::min<std::uint64_t>(most, until - chunk.offset)));
  if (!data) return fail(std::move(data.error()));
  chunk.data = std::move(*data);
  return chunk;
}

Result<RankLog::Extent> RankLog::extent() {
  Extent extent{
      .fd = {}, .bottom = std::min(size_, index_.physical(index_.evicted())), .top = size_};
  if (extent.bottom == extent.top) return extent;
  auto fd = sync_handle();
  if (!fd) return fail(std::move(fd.error()));
  extent.fd = std::move(*fd);
  return extent;
}

Result<std::uint64_t> tail_of(const RankLog::Extent& extent, std::uint64_t lines) {
  if (extent.bottom == extent.top || lines == 0) return extent.top;
  const std::uint64_t length = extent.top - extent.bottom;
  const std::uint64_t bottom =
      length / kScanBack < lines ? extent.bottom : extent.top - lines * kScanBack;
  std::uint64_t seen = 0;
  for (std::uint64_t at = extent.top; at > bottom;) {
    const std::uint64_t from = at - bottom > kScanBack ? at - kScanBack : bottom;
    std::string block(static_cast<std::size_t>(at - from), '\0');
    if (const int error = pread_some(extent.fd.get(), from, block); error != 0)
      return fail_errno("looking for the last lines", error);
    for (std::size_t byte = block.size(); byte-- > 0;) {
      // The newline that ends the last line begins no other line.
      if (block[byte] == '\n' && from + byte + 1 != extent.top && ++seen == lines)
        return from + byte + 1;
    }
    at = from;
  }
  return bottom;
}

Result<std::uint64_t> RankLog::line_begin(std::uint64_t offset) {
  if (offset >= index_.logical(size_)) return index_.logical(size_);
  std::uint64_t bottom = index_.evicted();
  for (const Gap& gap : index_.gaps()) {
    if (gap.to <= offset) bottom = std::max(bottom, gap.to);
  }
  if (offset <= bottom) return offset;
  if (auto done = need_fd(false); !done) return fail(std::move(done.error()));
  const std::uint64_t from = offset - bottom > kScanBack ? offset - kScanBack : bottom;
  auto before = pread_all(index_.physical(from), static_cast<std::size_t>(offset - from));
  if (!before) return fail(std::move(before.error()));
  const std::size_t newline = before->rfind('\n');
  if (newline != std::string::npos) return from + newline + 1;
  return from == bottom ? bottom : offset;
}

Result<std::uint64_t> RankLog::evict(std::uint64_t want, std::uint64_t keep, WallTime now) {
  const std::uint64_t from = index_.physical(index_.evicted());
  const std::uint64_t top = size_ - std::min(size_, keep);
  std::uint64_t to = std::min(top, from + want);
  if (to != size_) to = to / kBlock * kBlock;
  if (to <= from) return 0;
  if (auto done = need_fd(false); !done) return fail(std::move(done.error()));
  if (auto done = index_.add_evicted(index_.logical(to), now); !done)
    return fail(std::move(done.error()));
  if (::fallocate(fd_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(from),
                  static_cast<off_t>(to - from)) != 0) {
    return fail_errno(fmt::format("making room in log '{}'", log_.string()), errno);
  }
  return to - from;
}

}  // namespace muster::logs
