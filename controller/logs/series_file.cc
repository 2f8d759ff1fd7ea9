#include "controller/logs/series_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <string>
#include <system_error>

#include "muster/logs/v1/logs.pb.h"

namespace muster::logs {
namespace {

constexpr std::size_t kThinnedBatch = 1'024;  // points in one frame
// In bytes. The larger one has room for a thinned frame.
constexpr auto kEnds = std::to_array<std::size_t>({4096, 65536});

void put_point(v1::SeriesBatch& batch, const SeriesPoint& point) {
  v1::SeriesPoint& to = *batch.add_points();
  to.set_at_ns(point.at.time_since_epoch().count());
  to.set_attempt(point.attempt.value);
  to.set_step(point.step);
  if (point.has_loss || std::isnan(point.loss)) to.set_loss(point.loss);
}

SeriesPoint to_point(const v1::SeriesPoint& from) {
  return {WallTime(Duration(from.at_ns())), AttemptNo(from.attempt()), from.step(), from.loss(),
          from.has_loss() && !std::isnan(from.loss())};
}

// In the last bytes of a file, the begin of a frame is unknown. A frame begins where sound frames
// reach the end.
std::optional<SeriesPoint> last_of(std::string_view end) {
  for (; end.size() > io::kFrameHeaderBytes; end.remove_prefix(1)) {
    const io::Decoded decoded = io::decode_frames(end);
    if (decoded.payloads.empty() || decoded.used != end.size()) continue;
    v1::SeriesBatch batch;
    if (!batch.ParseFromString(std::string(decoded.payloads.back())) || batch.points().empty())
      return std::nullopt;
    return to_point(*batch.points().rbegin());
  }
  return std::nullopt;
}

}  // namespace

Result<SeriesFile::Reading> SeriesFile::Reading::of(const std::filesystem::path& path) {
  Reading reading;
  reading.fd_ = io::UniqueFd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat now{};
  if (!reading.fd_ && errno == ENOENT) return reading;
  if (!reading.fd_ || ::fstat(reading.fd_.get(), &now) != 0)
    return fail_errno(fmt::format("opening '{}'", path.string()), errno);
  reading.size_ = static_cast<std::uint64_t>(now.st_size);
  return reading;
}

template <class Take>
Result<std::uint64_t> SeriesFile::Reading::each(Take take) const {
  std::uint64_t offset = 0;
  if (!fd_) return offset;
  // The file that is open, even if another file has its name by now.
  const std::string path = fmt::format("/proc/self/fd/{}", fd_.get());
  for (bool more = true; more && offset < size_;) {
    auto read = io::read_frames(path, offset, std::min<std::uint64_t>(size_ - offset, 4 << 20));
    if (!read) return fail(std::move(read.error()));
    for (const std::string& frame : read->frames) {
      v1::SeriesBatch batch;
      if (!batch.ParseFromString(frame)) continue;
      for (const v1::SeriesPoint& from : batch.points()) take(to_point(from));
    }
    more = read->more && read->next > offset;
    offset = read->next;
  }
  return offset;
}

Result<std::vector<SeriesPoint>> SeriesFile::Reading::points(std::size_t most) const {
  std::vector<SeriesPoint> kept;  // every stride-th point
  std::optional<SeriesPoint> last;
  std::uint64_t seen = 0, stride = 1;
  const auto done = each([&](const SeriesPoint& point) {
    last = point;
    if (seen++ % stride != 0) return;
    kept.push_back(point);
    if (kept.size() < 2 * most) return;
    for (std::size_t i = 0; 2 * i < kept.size(); ++i) kept[i] = kept[2 * i];
    kept.resize((kept.size() + 1) / 2);
    stride *= 2;
  });
  if (!done) return fail(done.error());
  if (seen > 0 && (seen - 1) % stride != 0) kept.push_back(*last);
  if (kept.size() <= most) return kept;
  std::vector<SeriesPoint> spread;
  spread.reserve(most);
  for (std::size_t i = 0; i < most; ++i) spread.push_back(kept[i * (kept.size() - 1) / (most - 1)]);
  return spread;
}

Result<std::optional<SeriesPoint>> SeriesFile::Reading::last() const {
  std::optional<SeriesPoint> last;
  if (!fd_) return last;
  for (const std::size_t most : kEnds) {
    std::string end(std::min<std::uint64_t>(size_, most), '\0');
    const ssize_t count =
        ::pread(fd_.get(), end.data(), end.size(), static_cast<off_t>(size_ - end.size()));
    if (count != static_cast<ssize_t>(end.size())) break;
    if ((last = last_of(end))) return last;
  }
  if (auto done = each([&](const SeriesPoint& point) { last = point; }); !done)
    return fail(std::move(done.error()));
  return last;
}

Result<SeriesFile> SeriesFile::open(std::filesystem::path path, std::uint64_t most) {
  SeriesFile file(std::move(path), most);
  std::error_code ignored;
  // left by a process that was killed
  std::filesystem::remove(file.path_.parent_path() / kSeriesNew, ignored);
  const auto reading = Reading::of(file.path_);
  if (!reading) return fail(reading.error());
  const auto end = reading->each([&](const SeriesPoint& point) {
    const auto known = file.last_.try_emplace(point.attempt, point.step).first;
    known->second = std::max(known->second, point.step);
  });
  if (!end) return fail(end.error());
  // No more effort is needed, because the logs have all points. The sound part stays, and the next
  // points are appended to it.
  if (*end < reading->size_) std::filesystem::resize_file(file.path_, *end, ignored);
  return file;
}

Result<void> SeriesFile::add(const std::vector<SeriesPoint>& points) {
  v1::SeriesBatch batch;
  std::map<AttemptNo, std::int64_t> last = last_;
  for (const SeriesPoint& point : points) {
    const auto before = last.find(point.attempt);
    if (before != last.end() && point.step <= before->second) continue;
    last[point.attempt] = point.step;
    put_point(batch, point);
  }
  if (batch.points().empty()) return {};
  if (!writer_) {
    auto writer = io::FrameWriter::open(path_);
    if (!writer) return fail(std::move(writer.error()));
    writer_ = std::move(*writer);
  }
  if (auto done = writer_->append(batch.SerializeAsString()); !done) return done;
  last_ = std::move(last);
  if (writer_->size() <= thin_at_) return {};
  auto thinned = thin();
  thin_at_ = thinned ? most_ : writer_->size() + most_ / 4;
  if (!thinned)
    return fail(std::move(thinned.error())
                    .in(fmt::format(
                        "thinning '{}', which has its new points and grows longer than it should",
                        path_.string())));
  return thinned;
}

Result<void> SeriesFile::thin() {
  const std::filesystem::path made = path_.parent_path() / kSeriesNew;
  std::error_code ignored;
  std::filesystem::remove(made, ignored);
  const auto reading = Reading::of(path_);
  if (!reading) return fail(reading.error());
  auto writer = io::FrameWriter::open(made);
  if (!writer) return fail(std::move(writer.error()));
  const std::uint64_t stride = std::max<std::uint64_t>(2, reading->size_ / (most_ / 2));
  std::map<AttemptNo, std::uint64_t> seen;
  v1::SeriesBatch batch;
  Result<void> written;
  const auto take = [&](const SeriesPoint& point) {
    const std::uint64_t before = seen[point.attempt]++;
    if (!written || (before % stride != 0 && point.step != last_[point.attempt])) return;
    put_point(batch, point);
    if (static_cast<std::size_t>(batch.points_size()) < kThinnedBatch) return;
    written = writer->append(batch.SerializeAsString());
    batch.clear_points();
  };
  const auto end = reading->each(take);
  if (written && !batch.points().empty()) written = writer->append(batch.SerializeAsString());
  if (end && written) {
    // The bytes are synced before the rename: otherwise a power cut could replace a whole file with
    // an empty one.
    const io::UniqueFd fd(::open(made.c_str(), O_WRONLY | O_CLOEXEC));
    if (!fd || ::fdatasync(fd.get()) != 0 || ::rename(made.c_str(), path_.c_str()) != 0)
      written = fail_errno(fmt::format("thinning '{}'", path_.string()), errno);
  }
  if (!end || !written) {
    std::filesystem::remove(made, ignored);
    return end ? written : fail(end.error());
  }
  writer_.reset();
  return {};
}

}  // namespace muster::logs
