// <job>/series: the reporting rank's (time, attempt, step, loss) of one job, appended in batches,
// unsynced, rebuildable from the logs. Its owner (LogStore) locks; a Reading needs no lock.
//
// It is bounded: beyond `most` bytes it is written anew with every second point (or fewer, if that
// is still too much), each attempt's first and last among them, to <job>/series.new, which is
// synced and takes its place by rename. Killed at any moment there is a whole old or a whole new
// one.
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
  // What is there at one moment; it stays so whatever is added, thinned or removed meanwhile.
  class Reading {
   public:
    // A file that is not there has no points.
    static Result<Reading> of(const std::filesystem::path& path);
    // At most `most` (2 or more), spread evenly over all, the first and the last among them.
    // Bounded memory.
    [[nodiscard]] Result<std::vector<SeriesPoint>> points(std::size_t most) const;
    // From the file's end; all of it is read only where that is not sound.
    [[nodiscard]] Result<std::optional<SeriesPoint>> last() const;

   private:
    friend class SeriesFile;
    // Each point, in order; the offset behind the last sound frame. What is not sound is not told,
    // nor what follows it.
    template <class Take>
    [[nodiscard]] Result<std::uint64_t> each(Take take) const;
    io::UniqueFd fd_;
    std::uint64_t size_ = 0;
  };

  // Reads what is there, to know each attempt's last step. A torn or damaged tail is cut off.
  static Result<SeriesFile> open(std::filesystem::path path, std::uint64_t most = kSeriesBytesMost);
  // Steps at or below an attempt's last are dropped.
  Result<void> add(const std::vector<SeriesPoint>& points);

 private:
  SeriesFile(std::filesystem::path path, std::uint64_t most)
      : path_(std::move(path)), most_(most), thin_at_(most) {}
  Result<void> thin();
  std::filesystem::path path_;
  std::uint64_t most_;
  // behind most_ after a disk that did not take it: not tried again with each batch
  std::uint64_t thin_at_;
  std::map<AttemptNo, std::int64_t> last_;
  std::optional<io::FrameWriter> writer_;  // opening reads the file: once a life, not once a batch
};

}  // namespace muster::logs
