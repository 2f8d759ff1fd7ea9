#include "controller/logs/log_index.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "common/io/file.h"
#include "common/io/frames.h"
#include "muster/logs/v1/logs.pb.h"

namespace muster::logs {
namespace {

WallTime wall(std::int64_t ns) { return WallTime(Duration(ns)); }
std::int64_t ns(WallTime at) { return at.time_since_epoch().count(); }

struct Records {
  std::uint64_t bytes = 0;  // of sound records, from the beginning
  bool damaged = false;     // after them
};
// Passes every sound record to `each`.
template <class Each>
Result<Records> read_records(const std::filesystem::path& path, Each each) {
  Records records;
  for (bool more = true; more;) {
    auto read = io::read_frames(path, records.bytes);
    if (!read) return fail(std::move(read.error()));
    for (const std::string& frame : read->frames) {
      v1::IndexRecord record;
      records.damaged = !record.ParseFromString(frame);
      if (records.damaged) return records;
      each(record);
      records.bytes += io::kFrameHeaderBytes + frame.size();
    }
    records.damaged = read->tail == io::Tail::Damaged;
    more = read->more;
  }
  return records;
}

}  // namespace

Result<LogIndex> LogIndex::load(std::filesystem::path path, std::function<int(int)> sync_call) {
  LogIndex index(std::move(path), std::move(sync_call));
  if (auto done = index.replay(); !done) return fail(std::move(done.error()));
  return index;
}

Result<void> LogIndex::replay() {
  const auto records = read_records(path_, [this](const v1::IndexRecord& record) {
    if (record.has_gap())
      gaps_.push_back({record.gap().begin(), record.gap().end(), record.gap().reason(),
                       wall(record.gap().at_ns())});
    if (record.has_time()) last_time_ = {record.time().offset(), wall(record.time().at_ns())};
    if (record.has_end()) end_ = record.end().size();
    if (record.has_evicted()) {
      evicted_ = record.evicted().to();
      evicted_at_ = wall(record.evicted().at_ns());
    }
  });
  if (!records) return fail(records.error());
  bytes_ = records->bytes;
  if (!records->damaged) return {};
  std::error_code ignored;  // the copy is for people
  std::filesystem::copy_file(path_, path_.string() + ".damaged",
                             std::filesystem::copy_options::overwrite_existing, ignored);
  if (::truncate(path_.c_str(), static_cast<off_t>(bytes_)) != 0)
    return fail_errno(fmt::format("cutting off the damage of log index '{}'", path_.string()),
                      errno);
  return {};
}

Result<std::uint64_t> LogIndex::since(const std::filesystem::path& path, WallTime time,
                                      std::uint64_t end) {
  bool any = false;
  std::uint64_t from = end;
  const auto records = read_records(path, [&](const v1::IndexRecord& record) {
    if (!record.has_time()) return;
    // The arrival time of bytes before the first point is unknown. The least offset counts, in
    // whatever order the points are. Points may be out of order when a clock was set back, or when
    // bytes were sent again after a power cut.
    if (wall(record.time().at_ns()) + kTimeStep > time)
      from = std::min(from, any ? record.time().offset() : 0);
    any = true;
  });
  if (!records) return fail(records.error());
  return any ? from : 0;
}

Result<void> LogIndex::need_fd() {
  if (rewrite_due_) {
    if (auto done = rewrite(UINT64_MAX); !done) return done;
  }
  if (!fd_) {
    io::UniqueFd fd(::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
    struct stat now{};
    if (!fd || ::fstat(fd.get(), &now) != 0)
      return fail_errno(fmt::format("opening log index '{}'", path_.string()), errno);
    cut_due_ = static_cast<std::uint64_t>(now.st_size) > bytes_;
    fd_ = std::move(fd);
  }
  if (cut_due_ && ::ftruncate(fd_.get(), static_cast<off_t>(bytes_)) != 0) {
    return fail_errno(fmt::format("cutting the torn tail of log index '{}'", path_.string()),
                      errno);
  }
  cut_due_ = false;
  return {};
}

Result<void> LogIndex::append(const std::string& record) {
  if (auto done = need_fd(); !done) return done;
  const std::string frame = io::encode_frame(record);
  std::size_t written = 0;
  if (const int error = io::write_all(fd_.get(), frame, written); error != 0) {
    cut_due_ = written > 0;
    return fail_errno(fmt::format("writing log index '{}'", path_.string()), error);
  }
  bytes_ += frame.size();
  return {};
}

Result<void> LogIndex::sync() {
  if (sync_call_(fd_.get()) == 0) return {};
  const int error = errno;
  rewrite_due_ = true;
  return fail_errno(fmt::format("syncing log index '{}'", path_.string()), error);
}

Result<io::UniqueFd> LogIndex::sync_handle() {
  if (auto done = need_fd(); !done) return fail(std::move(done.error()));
  io::UniqueFd handle(::fcntl(fd_.get(), F_DUPFD_CLOEXEC, 0));
  if (!handle) return fail_errno(fmt::format("syncing log index '{}'", path_.string()), errno);
  return handle;
}

Result<void> LogIndex::add_gap(Gap gap) {
  v1::IndexRecord record;
  record.mutable_gap()->set_begin(gap.from);
  record.mutable_gap()->set_end(gap.to);
  record.mutable_gap()->set_reason(gap.reason);
  record.mutable_gap()->set_at_ns(ns(gap.at));
  if (auto done = append(record.SerializeAsString()); !done) return done;
  // If a power cut removed the record of the gap, the bytes after the gap would be read as the
  // gap's own.
  if (auto done = sync(); !done) return done;
  gaps_.push_back(std::move(gap));
  return {};
}

Result<void> LogIndex::forget_beyond(std::uint64_t size) {
  const std::size_t gaps = gaps_.size();
  while (!gaps_.empty() && physical(gaps_.back().from) > size) gaps_.pop_back();
  const bool end_wrong = end_ && *end_ > logical(size);
  if (gaps_.size() == gaps && !end_wrong) return {};
  if (end_wrong) end_.reset();
  return rewrite(logical(size));
}

// Keeps the time points up to `times_until`, and everything else as it is in memory.
Result<void> LogIndex::rewrite(std::uint64_t times_until) {
  rewrite_due_ = true;
  std::string bytes;
  last_time_ = {};
  const auto times = read_records(path_, [&](const v1::IndexRecord& record) {
    if (!record.has_time() || record.time().offset() > times_until) return;
    last_time_ = {record.time().offset(), wall(record.time().at_ns())};
    bytes += io::encode_frame(record.SerializeAsString());
  });
  if (!times) return fail(std::move(times.error()));
  const auto add = [&bytes](const v1::IndexRecord& record) {
    bytes += io::encode_frame(record.SerializeAsString());
  };
  for (const Gap& gap : gaps_) {
    v1::IndexRecord record;
    record.mutable_gap()->set_begin(gap.from);
    record.mutable_gap()->set_end(gap.to);
    record.mutable_gap()->set_reason(gap.reason);
    record.mutable_gap()->set_at_ns(ns(gap.at));
    add(record);
  }
  if (evicted_ > 0) {
    v1::IndexRecord record;
    record.mutable_evicted()->set_to(evicted_);
    record.mutable_evicted()->set_at_ns(ns(evicted_at_));
    add(record);
  }
  if (end_) {
    v1::IndexRecord record;
    record.mutable_end()->set_size(*end_);
    add(record);
  }
  fd_.reset();
  if (auto done = io::replace_file(path_, bytes, io::Durable::Yes); !done) return done;
  bytes_ = bytes.size();
  rewrite_due_ = false;
  return {};
}

Result<void> LogIndex::add_time(std::uint64_t offset, WallTime at) {
  v1::IndexRecord record;
  record.mutable_time()->set_offset(offset);
  record.mutable_time()->set_at_ns(ns(at));
  auto done = append(record.SerializeAsString());
  if (done) last_time_ = {offset, at};
  return done;
}

Result<void> LogIndex::add_end(std::uint64_t size) {
  v1::IndexRecord record;
  record.mutable_end()->set_size(size);
  auto done = append(record.SerializeAsString());
  if (done) end_ = size;
  return done;
}

Result<void> LogIndex::add_evicted(std::uint64_t to, WallTime at) {
  v1::IndexRecord record;
  record.mutable_evicted()->set_to(to);
  record.mutable_evicted()->set_at_ns(ns(at));
  auto done = append(record.SerializeAsString());
  if (done) {
    evicted_ = to;
    evicted_at_ = at;
  }
  return done;
}

std::uint64_t LogIndex::logical(std::uint64_t physical) const {
  std::uint64_t at = physical;
  for (const Gap& gap : gaps_) {
    if (gap.from > at) break;
    at += gap.to - gap.from;
  }
  return at;
}

std::uint64_t LogIndex::physical(std::uint64_t logical) const {
  std::uint64_t lost = 0;
  for (const Gap& gap : gaps_) {
    if (gap.from >= logical) break;
    lost += std::min(logical, gap.to) - gap.from;
  }
  return logical - lost;
}

}  // namespace muster::logs
