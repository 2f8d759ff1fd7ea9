// What agent/link/log_push reads logs from. Implemented by Watch (watch.h); all calls are
// thread-safe and may do file I/O.
//
// Offsets are logical: they only grow, over truncations by the program and holes punched for room.
// The one authority on what was shipped is the controller's LogHave; nothing here remembers it over
// a restart.
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
  std::string auxiliary{};  // not empty: of this process beside the ranks; rank is 0 then
  friend auto operator<=>(const LogName&, const LogName&) = default;
};

struct LogStatus {
  LogName name;
  std::uint64_t end = 0;      // logical; grows
  std::uint32_t version = 0;  // changes with each new segment, also when `end` does not
  bool ended = false;         // nothing writes it any more and `end` is final
  bool failed = false;        // its rank ended badly: to be shipped first
};

struct LogLoss {
  std::uint64_t from = 0;  // bytes [from, offset of the piece) are lost; equal: an unknown number
  std::string reason;      // "truncated by the program" | "hard cap"
  WallTime at{};
};

struct LogPiece {
  std::uint64_t offset = 0;  // of data's first byte
  std::string data;          // empty: nothing there yet
  std::optional<LogLoss> loss;
  bool final = false;  // with this the log is whole: nothing comes after data
};

class LogSource {
 public:
  virtual ~LogSource() = default;
  // Logs whose completion the controller has not confirmed: those of failed ranks first, then those
  // beside the ranks.
  virtual std::vector<LogStatus> logs() = 0;
  // Bytes from `from` on, at most `most`, of one segment; or, with the loss set, what comes after
  // the lost ones. When a loss has no data behind it yet it is told only if the log has ended.
  virtual Result<LogPiece> read(const LogName& name, std::uint64_t from, std::size_t most) = 0;
  // The controller's word, each time it comes; also the answer to opening a log, before the first
  // read.
  virtual void controller_has(const LogName& name, std::uint64_t offset, std::uint64_t synced,
                              bool complete) = 0;
  // `wake` is called on the watch's thread, when logs() or the bytes behind it have changed.
  // Replaces the one before; an empty one ends it, and on return no call is under way.
  virtual void on_bytes(std::function<void()> wake) = 0;
};

}  // namespace muster::agent
