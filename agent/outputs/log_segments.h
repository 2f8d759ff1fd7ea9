// Cuts the logs of one run into segments for a store: gzip files, each with a range of one log,
// that are never written again. The thread of an upload owns it. Blocking.
//
//   DIR/sent                   what was sent: a line for each log
//   DIR/segments/LOG/SEGMENT   cut, and not known to be sent (common/store/log_segment.h)
//
// A segment is synced under its name before it is sent, and DIR/sent is synced before it is
// removed. So an agent that was killed sends the same bytes under the same name again, and cuts on
// behind them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>

#include "agent/logs/log_source.h"
#include "agent/outputs/sent_files.h"
#include "common/base/error.h"
#include "common/store/log_segment.h"

namespace muster::agent {

inline constexpr std::uint64_t kSegmentMost = 64 << 20;  // of text
// A shorter rest waits until there is more, or until the log has ended.
inline constexpr std::uint64_t kSegmentLeast = 4 << 10;

class LogSegments {
 public:
  // Reads at most `most` bytes from a logical offset on, as LogSource::read() does.
  using Read = std::function<Result<LogPiece>(std::uint64_t from, std::size_t most)>;

  static Result<LogSegments> open(std::filesystem::path dir);

  // Where a log that has no logical offsets of its own is cut on. `file`: what the log is now, an
  // inode for example. Another one, or one that is shorter than what was cut, begins behind that.
  struct Place {
    std::uint64_t file = 0;  // 0: none
    std::uint64_t base = 0;  // logical offset of its first byte
  };
  Result<Place> place(const std::string& log, std::uint64_t file, std::uint64_t bytes);

  struct Cut {
    std::uint64_t bytes = 0;  // of text; 0: nothing was cut
    bool is_full = false;     // there may be more
    bool at_end = false;      // the log has ended, and all of it is cut
  };
  // Cuts at most one segment. `log`: a relative path. While the log may still grow, a segment ends
  // behind a line where it can.
  Result<Cut> cut(const std::string& log, const Read& read);

  [[nodiscard]] std::filesystem::path segments_dir() const { return dir_ / "segments"; }
  // What is cut and not sent yet, by the names below segments_dir().
  Result<SentFiles> waiting() const;
  // All that waits was sent.
  Result<void> all_sent();

  [[nodiscard]] std::uint64_t segments_sent() const;
  [[nodiscard]] std::uint64_t bytes_sent() const;  // of text

 private:
  struct Log {
    std::uint64_t sent = 0, end = 0;  // number of the newest segment, and where it ends
    std::uint64_t segments = 0, bytes = 0;
    Place place;
    // Those that are not sent.
    std::map<std::uint64_t, store::LogSegment> waiting = {};
    [[nodiscard]] std::uint64_t last_sequence() const;
    [[nodiscard]] std::uint64_t last_end() const;
  };
  explicit LogSegments(std::filesystem::path dir) : dir_(std::move(dir)) {}
  Result<void> load();
  Result<void> find_waiting();
  Result<void> store() const;

  std::filesystem::path dir_;
  std::map<std::string, Log> logs_;
};

}  // namespace muster::agent
