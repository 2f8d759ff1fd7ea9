// The file <job>/series: (time, attempt, step, loss) of one job's reporting rank. FileLogStore owns
// it. It is not thread-safe, and FileLogStore locks around it; a Reading needs no lock.
//
// Points are appended in batches, without a sync, because the logs have them, too.
//
// The file is bounded. Beyond `most` bytes, it is written anew with every second point (or fewer,
// if that is still too much), including each attempt's first and last point. The new file is
// <job>/series.new; it is synced, and then renamed to <job>/series. If the process is killed at any
// moment, there is a whole old file or a whole new one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "common/base/error.h"
#include "common/io/frames.h"
#include "common/io/unique_fd.h"
#include "controller/logs/log_store.h"

namespace muster::logs {

inline constexpr std::uint64_t kSeriesBytesMost = 64 << 20;
inline constexpr std::size_t kSeriesPointsMost = 50'000;  // in one answer: 2 MB as a message
inline constexpr std::string_view kSeriesNew = "series.new";

class SeriesFile {
 public:
  // The content of the file at one moment. It does not change when points are added, thinned or
  // removed later.
  class Reading {
   public:
    // A file that does not exist has no points.
    static Result<Reading> of(const std::filesystem::path& path);
    // At most `most` points (2 or more), spread evenly over all points, with the first and the
    // last. Uses bounded memory.
    [[nodiscard]] Result<std::vector<SeriesPoint>> points(std::size_t most) const;
    // Reads from the end of the file; reads all of it only if the end is not sound.
    [[nodiscard]] Result<std::optional<SeriesPoint>> last() const;

   private:
    friend class SeriesFile;
    // Passes each point to `take`, in order; returns the offset after the last sound frame. Points
    // that are not sound, and those after them, are not passed.
    template <class Take>
    [[nodiscard]] Result<std::uint64_t> each(Take take) const;
    io::UniqueFd fd_;
    std::uint64_t size_ = 0;
  };

  // Reads the file to learn each attempt's last step. A torn or damaged tail is cut off.
  static Result<SeriesFile> open(std::filesystem::path path, std::uint64_t most = kSeriesBytesMost);
  // Steps at or below the last step of their attempt are dropped.
  Result<void> add(const std::vector<SeriesPoint>& points);

 private:
  SeriesFile(std::filesystem::path path, std::uint64_t most)
      : path_(std::move(path)), most_(most), thin_at_(most) {}
  Result<void> thin();
  std::filesystem::path path_;
  std::uint64_t most_;
  // Larger than most_ after a disk that did not accept the new file, so that thinning is not
  // retried with each batch.
  std::uint64_t thin_at_;
  std::map<AttemptNo, std::int64_t> last_;
  // Opening reads the file: once in an incarnation, not once a batch.
  std::optional<io::FrameWriter> writer_;
};

}  // namespace muster::logs
