#include "controller/logs/series_file.h"

#include <algorithm>
#include <system_error>

#include "muster/logs/v1/logs.pb.h"

namespace muster::logs {

Result<SeriesFile> SeriesFile::open(std::filesystem::path path) {
  SeriesFile file(std::move(path));
  auto points = file.read();
  if (!points) return fail(std::move(points.error()));
  for (const SeriesPoint& point : *points)
    file.last_[point.attempt] = std::max(point.step, file.last_.contains(point.attempt) ? file.last_[point.attempt] : point.step);
  return file;
}

Result<std::vector<SeriesPoint>> SeriesFile::read() const {
  std::vector<SeriesPoint> points;
  std::uint64_t offset = 0;
  for (bool more = true; more;) {
    auto read = io::read_frames(path_, offset);
    if (!read) return fail(std::move(read.error()));
    for (const std::string& frame : read->frames) {
      v1::SeriesBatch batch;
      if (!batch.ParseFromString(frame)) continue;
      for (const v1::SeriesPoint& from : batch.points()) {
        points.push_back({WallTime(Duration(from.at_ns())), AttemptNo(from.attempt()), from.step(), from.loss(), from.has_loss()});
      }
    }
    if (read->tail == io::Tail::Damaged) {
      // Not worth more: the logs have it all. What is sound stays, the next points go behind it.
      std::error_code ignored;
      std::filesystem::resize_file(path_, read->next, ignored);
      break;
    }
    offset = read->next;
    more = read->more;
  }
  return points;
}

Result<void> SeriesFile::add(const std::vector<SeriesPoint>& points) {
  v1::SeriesBatch batch;
  std::map<AttemptNo, std::int64_t> last = last_;
  for (const SeriesPoint& point : points) {
    const auto before = last.find(point.attempt);
    if (before != last.end() && point.step <= before->second) continue;
    last[point.attempt] = point.step;
    v1::SeriesPoint& to = *batch.add_points();
    to.set_at_ns(point.at.time_since_epoch().count());
    to.set_attempt(point.attempt.value);
    to.set_step(point.step);
    to.set_loss(point.loss);
    to.set_has_loss(point.has_loss);
  }
  if (batch.points().empty()) return {};
  if (!writer_) {
    auto writer = io::FrameWriter::open(path_);
    if (!writer) return fail(std::move(writer.error()));
    writer_ = std::move(*writer);
  }
  if (auto done = writer_->append(batch.SerializeAsString()); !done) return done;
  last_ = std::move(last);
  return {};
}

}  // namespace muster::logs
