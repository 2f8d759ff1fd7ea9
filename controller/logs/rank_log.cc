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
constexpr std::uint64_t kTimeBytes = 1 << 20;  // sparse: a time point about each of these, or each second

}  // namespace

Result<RankLog> RankLog::open(std::filesystem::path log, std::filesystem::path index_path) {
  auto index = LogIndex::load(std::move(index_path));
  if (!index) return fail(std::move(index.error()));
  RankLog rank(std::move(log), std::move(*index));
  struct stat now{};
  if (::stat(rank.log_.c_str(), &now) == 0) {
    rank.size_ = static_cast<std::uint64_t>(now.st_size);
  } else if (errno != ENOENT) {
    return fail_errno(fmt::format("looking at log '{}'", rank.log_.string()), errno);
  }
  if (auto done = rank.index_.forget_beyond(rank.size_); !done) return fail(std::move(done.error()));
  return rank;
}

LogState RankLog::state() const {
  return {index_.logical(size_), index_.end().has_value(), synced_ == size_ ? index_.logical(size_) : std::min(index_.logical(synced_), index_.logical(size_))};
}

Result<void> RankLog::need_fd(bool make) {
  if (fd_) return {};
  if (make) {
    if (auto done = io::make_dirs(log_.parent_path(), 0700); !done) return done;
  }
  fd_.reset(::open(log_.c_str(), O_RDWR | O_CLOEXEC | (make ? O_CREAT : 0), 0600));
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

Result<std::uint64_t> RankLog::append(std::uint64_t offset, std::string_view data, const std::optional<Gap>& gap, WallTime now) {
  if (index_.end()) return 0;
  if (auto done = need_fd(true); !done) return fail(std::move(done.error()));
  const std::uint64_t end = index_.logical(size_);
  if (offset > end) {
    if (!gap || gap->from > end)
      return fail(ErrorCode::Conflict, fmt::format("appending to log '{}': bytes {} to {} were never sent", log_.string(), end, offset));
    if (auto done = index_.add_gap({end, offset, gap->reason, gap->at}); !done) return fail(std::move(done.error()));
  } else if (offset + data.size() < end) {
    return 0;
  } else if (gap && gap->from == offset && offset == end) {
    // Lost, nobody knows how much. Told twice when the answer to the first was lost with its connection.
    const bool there = !index_.gaps().empty() && index_.gaps().back().to == end;
    if (!there) {
      if (auto done = index_.add_gap({end, end, gap->reason, gap->at}); !done) return fail(std::move(done.error()));
    }
  } else {
    data.remove_prefix(static_cast<std::size_t>(end - offset));
    offset = end;
  }
  if (data.empty()) return 0;
  if (index_.last_time().at == WallTime{} || now - index_.last_time().at >= std::chrono::seconds(1) ||
      offset - std::min(offset, index_.last_time().offset) >= kTimeBytes) {
    if (auto done = index_.add_time(offset, now); !done) return fail(std::move(done.error()));
  }
  std::uint64_t written = 0;
  while (written < data.size()) {
    const ssize_t went = ::pwrite(fd_.get(), data.data() + written, data.size() - written, static_cast<off_t>(size_));
    if (went < 0 && errno == EINTR) continue;
    // What did fit is whole and counts.
    if (went <= 0) return fail_errno(fmt::format("writing log '{}'", log_.string()), went < 0 ? errno : ENOSPC);
    written += static_cast<std::uint64_t>(went);
    size_ += static_cast<std::uint64_t>(went);
  }
  return written;
}

Result<void> RankLog::finish(std::uint64_t size) {
  if (index_.end()) return {};
  const std::uint64_t end = index_.logical(size_);
  if (size > end) return fail(ErrorCode::Conflict, fmt::format("ending log '{}': bytes {} to {} were never sent", log_.string(), end, size));
  if (auto done = need_fd(true); !done) return done;
  return index_.add_end(end);
}

Result<std::string> RankLog::pread_all(std::uint64_t at, std::size_t most) const {
  std::string data(most, '\0');
  std::size_t done = 0;
  while (done < most) {
    const ssize_t got = ::pread(fd_.get(), data.data() + done, most - done, static_cast<off_t>(at + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail_errno(fmt::format("reading log '{}'", log_.string()), errno);
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  data.resize(done);
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
    if (gap.from == gap.to && gap.to >= end) break;  // nothing behind it yet: told with what comes
    chunk.gap_before = Gap{offset, gap.to, gap.reason, gap.at};
    chunk.offset = gap.to;
  }
  if (chunk.offset >= until) return chunk;
  if (auto done = need_fd(false); !done) return fail(std::move(done.error()));
  auto data = pread_all(index_.physical(chunk.offset), static_cast<std::size_t>(std::min<std::uint64_t>(most, until - chunk.offset)));
  if (!data) return fail(std::move(data.error()));
  chunk.data = std::move(*data);
  return chunk;
}

Result<std::uint64_t> RankLog::tail(std::uint64_t lines) {
  const std::uint64_t bottom = index_.physical(index_.evicted());
  if (size_ <= bottom || lines == 0) return index_.logical(size_);
  if (auto done = need_fd(false); !done) return fail(std::move(done.error()));
  std::uint64_t seen = 0;
  for (std::uint64_t at = size_; at > bottom;) {
    const std::uint64_t from = at - bottom > (64 << 10) ? at - (64 << 10) : bottom;
    auto block = pread_all(from, static_cast<std::size_t>(at - from));
    if (!block) return fail(std::move(block.error()));
    for (std::size_t byte = block->size(); byte-- > 0;) {
      // The newline that ends the last line begins no other.
      if ((*block)[byte] == '\n' && from + byte + 1 != size_ && ++seen == lines) return index_.logical(from + byte + 1);
    }
    at = from;
  }
  return index_.logical(bottom);
}

Result<std::uint64_t> RankLog::evict(std::uint64_t want, std::uint64_t keep, WallTime now) {
  const std::uint64_t from = index_.physical(index_.evicted());
  const std::uint64_t top = size_ - std::min(size_, keep);
  std::uint64_t to = std::min(top, from + want);
  if (to != size_) to = to / kBlock * kBlock;
  if (to <= from) return 0;
  if (auto done = need_fd(false); !done) return fail(std::move(done.error()));
  if (auto done = index_.add_evicted(index_.logical(to), now); !done) return fail(std::move(done.error()));
  if (::fallocate(fd_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(from), static_cast<off_t>(to - from)) != 0) {
    return fail_errno(fmt::format("making room in log '{}'", log_.string()), errno);
  }
  return to - from;
}

}  // namespace muster::logs
