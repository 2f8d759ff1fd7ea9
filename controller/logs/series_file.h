// <job>/series: the spokesman's (time, attempt, step, loss) of one job, appended in batches, unsynced, rebuildable from the logs. Its owner (LogStore) locks.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <vector>

#include "common/base/error.h"
#include "common/io/frames.h"
#include "controller/logs/log_store.h"

namespace muster::logs {

class SeriesFile {
 public:
  // Reads what is there, to know each attempt's last step. A torn or damaged tail is cut off.
  static Result<SeriesFile> open(std::filesystem::path path);
  // Steps at or below an attempt's last are dropped.
  Result<void> add(const std::vector<SeriesPoint>& points);
  Result<std::vector<SeriesPoint>> read() const;

 private:
  explicit SeriesFile(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;
  std::map<AttemptNo, std::int64_t> last_;
  std::optional<io::FrameWriter> writer_;  // opening reads the file: once a life, not once a batch
};

}  // namespace muster::logs
