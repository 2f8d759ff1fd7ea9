// Frees disk space of this node that logs use. The watch thread calls it; WatchThread owns the
// RoomKeeper.
//
//   - Soft cap: of each log, bytes that the controller has synced are punched until the cap is
//     kept.
//   - Hard cap: if the file system has fewer free bytes than a mark, all synced bytes are punched
//     first. Then the oldest unshipped bytes of the largest logs are punched; these are lost and
//     recorded as a gap.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "agent/logs/log_file.h"
#include "agent/logs/watch.h"
#include "agent/logs/watch_reports.h"
#include "common/base/error.h"
#include "common/base/once_per_cause.h"
#include "common/base/time.h"

namespace muster::agent {

// The newest bytes of each log always stay, because people read them first.
inline constexpr std::uint64_t kKeepNewest = 64 << 10;

// `missing` is the number of bytes below the mark, 0 = none. Returns the bytes that were punched
// without being synced.
Result<std::uint64_t> make_room(const std::vector<std::shared_ptr<LogFile>>& files,
                                std::uint64_t soft_cap, std::uint64_t missing);

// Free bytes of the disk that has the logs of a run. Returns nullopt if the number is unknown.
// It is read at the directory of all runs, which is on the same disk: a job may put a link to a
// file system that hangs in the place of its own directory.
std::optional<std::uint64_t> free_bytes(const WatchOptions& options,
                                        const std::filesystem::path& logs_dir);

// Makes room from time to time. Errors are reported, once until there is enough room again.
class RoomKeeper {
 public:
  RoomKeeper(const WatchOptions& options, const WatchReports& reports, BootTime now)
      : options_(options), reports_(reports), next_(now + options.blind_scan) {}
  [[nodiscard]] bool due(BootTime now) const { return now >= next_; }
  // `files` are all logs; `dir` is the `logs` of a run, and all are on its disk. Calls
  // `disk_is_full` before a byte of a log is given up.
  void keep(BootTime now, const std::vector<std::shared_ptr<LogFile>>& files,
            const std::filesystem::path& dir, const std::function<void()>& disk_is_full);

 private:
  const WatchOptions& options_;
  const WatchReports& reports_;
  BootTime next_;
  OncePerCause trouble_;
};

}  // namespace muster::agent
