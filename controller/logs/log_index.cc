#include "controller/logs/log_index.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "common/io/file.h"
#include "common/io/unique_fd.h"
#include "muster/logs/v1/logs.pb.h"

namespace muster::logs {
namespace {

WallTime wall(std::int64_t ns) { return WallTime(Duration(ns)); }
std::int64_t ns(WallTime at) { return at.time_since_epoch().count(); }

}  // namespace

Result<LogIndex> LogIndex::load(std::filesystem::path path) {
  LogIndex index(std::move(path));
  auto sound = index.replay();
  if (!sound) return fail(std::move(sound.error()));
  if (!*sound) {
    std::error_code ignored;
    std::filesystem::rename(index.path_, index.path_.string() + ".damaged", ignored);
    index = LogIndex(index.path_);
  }
  return index;
}

Result<bool> LogIndex::replay() {
  std::uint64_t offset = 0;
  for (bool more = true; more;) {
    auto read = io::read_frames(path_, offset);
    if (!read) return fail(std::move(read.error()));
    for (const std::string& frame : read->frames) {
      v1::IndexRecord record;
      if (!record.ParseFromString(frame)) return false;
      if (record.has_gap()) gaps_.push_back({record.gap().from(), record.gap().to(), record.gap().reason(), wall(record.gap().at_ns())});
      if (record.has_time()) last_time_ = {record.time().offset(), wall(record.time().at_ns())};
      if (record.has_end()) end_ = record.end().size();
      if (record.has_evicted()) {
        evicted_ = record.evicted().to();
        evicted_at_ = wall(record.evicted().at_ns());
      }
    }
    if (read->tail == io::Tail::Damaged) return false;
    offset = read->next;
    more = read->more;
  }
  return true;
}

Result<void> LogIndex::append(const std::string& record) {
  if (!writer_) {
    auto writer = io::FrameWriter::open(path_);
    if (!writer) return fail(std::move(writer.error()));
    writer_ = std::move(*writer);
  }
  return writer_->append(record);
}

Result<void> LogIndex::add_gap(Gap gap) {
  v1::IndexRecord record;
  record.mutable_gap()->set_from(gap.from);
  record.mutable_gap()->set_to(gap.to);
  record.mutable_gap()->set_reason(gap.reason);
  record.mutable_gap()->set_at_ns(ns(gap.at));
  if (auto done = append(record.SerializeAsString()); !done) return done;
  gaps_.push_back(std::move(gap));
  // Bytes behind a gap that a power cut has taken would pass for the gap's own.
  const io::UniqueFd fd(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd || ::fdatasync(fd.get()) != 0) return fail_errno(fmt::format("syncing log index '{}'", path_.string()), errno);
  return {};
}

Result<void> LogIndex::forget_beyond(std::uint64_t size) {
  const std::size_t gaps = gaps_.size();
  while (!gaps_.empty() && physical(gaps_.back().from) > size) gaps_.pop_back();
  const bool end_wrong = end_ && *end_ > logical(size);
  if (gaps_.size() == gaps && !end_wrong) return {};
  if (end_wrong) end_.reset();
  std::string bytes;
  const auto add = [&bytes](const v1::IndexRecord& record) { bytes += io::encode_frame(record.SerializeAsString()); };
  for (const Gap& gap : gaps_) {
    v1::IndexRecord record;
    record.mutable_gap()->set_from(gap.from);
    record.mutable_gap()->set_to(gap.to);
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
  writer_.reset();
  return io::replace_file(path_, bytes, io::Durable::Yes);
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
