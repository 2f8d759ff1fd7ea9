// LogSource is the interface through which agent/link/log_push reads logs. Watch (watch.h)
// implements it. All calls are thread-safe and may do file I/O.
//
// Offsets are logical: they only grow, even when the program truncates or replaces its file, or
// muster punches holes to free disk space. Only the controller's LogHave decides what was shipped.
// Nothing here remembers that across a restart.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/error.h"
#include "common/base/ids.h"
#include "common/base/time.h"

namespace muster::agent {

using RunKey = std::pair<JobId, AttemptNo>;

struct LogName {
  RunKey run;
  RankNo rank;
  std::string auxiliary{};  // not empty: the log of this auxiliary process; rank is 0 then
  friend auto operator<=>(const LogName&, const LogName&) = default;
};

struct LogStatus {
  LogName name;
  std::uint64_t end = 0;      // logical; grows
  std::uint32_t version = 0;  // changes with each new segment, even if `end` does not change
  bool ended = false;         // no process writes the log any more, and `end` is final
  bool failed = false;        // its rank ended badly: this log is shipped first
};

struct LogLoss {
  std::uint64_t from = 0;  // bytes [from, offset of the piece) are lost; equal: an unknown number
  std::string reason;      // "truncated by the program" | "replaced by ..." | "hard cap"
  WallTime at{};
};

struct LogPiece {
  std::uint64_t offset = 0;  // offset of the first byte of data
  std::string data;          // empty: no data yet
  std::optional<LogLoss> loss;
  bool final = false;  // the log is complete with this piece
};

class LogSource {
 public:
  virtual ~LogSource() = default;
  // Returns the logs whose completion the controller has not confirmed. Those of failed ranks come
  // first, then auxiliary logs.
  virtual std::vector<LogStatus> logs() = 0;
  // Returns all logs of the run that are known by now, also complete ones.
  virtual std::vector<LogName> logs_of(const RunKey& run) = 0;
  // Returns at most `most` bytes of one segment, starting at `from`. If loss is set, the bytes
  // follow the lost ones. A loss without data after it is reported only if the log has ended.
  virtual Result<LogPiece> read(const LogName& name, std::uint64_t from, std::size_t most) = 0;
  // Takes the offsets that the controller reports, each time they arrive. The first report answers
  // the opening of the log and comes before the first read.
  virtual void controller_has(const LogName& name, std::uint64_t offset, std::uint64_t synced,
                              bool complete) = 0;
  // Sets `wake`, which the watch thread calls when logs() or their bytes have changed. It replaces
  // the previous one; an empty one removes it. After on_bytes() returns, no call of the old one is
  // running.
  virtual void on_bytes(std::function<void()> wake) = 0;
};

}  // namespace muster::agent
