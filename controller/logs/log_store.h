// The controller's own copy of every rank's log, on its own disk with a quota, and the series file a job. Idempotent by logical offset: a chunk that
// is already there is ignored, a chunk that would leave a hole is refused unless it carries a gap record. Thread-safe (one mutex; calls do
// file I/O and belong on a thread that may block, not on the shell's strand).
//
//   <root>/<job>/<attempt>/rank-<N>.log     bytes, in logical order, gaps left out; a hole where the quota took them
//   <root>/<job>/<attempt>/rank-<N>.index   frames: gaps, sparse time index, end mark, eviction (proto/muster/logs/v1)
//   <root>/<job>/series                     frames: (time, attempt, step, loss)
//
// Killed at any byte, it opens to a state that it had: a gap is written before the bytes behind it, bytes before the end mark, an eviction before the
// hole. A log that nobody has sent anything of reads as empty.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"
#include "common/base/ids.h"
#include "common/base/time.h"

namespace muster::logs {

struct LogKey {
  JobId job;
  AttemptNo attempt;
  RankNo rank;
  friend auto operator<=>(const LogKey&, const LogKey&) = default;
};
struct Gap {
  std::uint64_t from = 0, to = 0;  // logical
  std::string reason;
  WallTime at{};
};
struct LogState {
  std::uint64_t end = 0;  // logical end of what is here
  bool complete = false;
  std::uint64_t synced = 0;  // of it, what survives a power loss
};
struct Chunk {
  std::uint64_t offset = 0;  // logical
  std::string data;
  std::optional<Gap> gap_before;
};
struct SeriesPoint {
  WallTime at{};
  AttemptNo attempt;
  std::int64_t step = 0;
  double loss = 0;
  bool has_loss = false;
};

class LogStore {
 public:
  // `quota` bytes over all logs; when it is reached, the oldest finished jobs' logs go first, then the oldest bytes of the largest log, with a gap record.
  static Result<std::unique_ptr<LogStore>> open(std::filesystem::path root, std::uint64_t quota);
  virtual ~LogStore() = default;

  virtual Result<LogState> state(const LogKey& key) = 0;
  virtual Result<LogState> append(const LogKey& key, std::uint64_t offset, std::string_view data, const std::optional<Gap>& gap) = 0;
  virtual Result<LogState> finish(const LogKey& key, std::uint64_t size) = 0;
  // From `offset`, at most `most` bytes; empty data and no gap: nothing there yet. Never crosses a gap. A gap of no length (unknown how much was lost) is told
  // only with data behind it, so that `offset + data.size()` of the answer is always where to go on.
  virtual Result<Chunk> read(const LogKey& key, std::uint64_t offset, std::size_t most) = 0;
  // Logical offset where the last `lines` lines begin.
  virtual Result<std::uint64_t> tail(const LogKey& key, std::uint64_t lines) = 0;
  virtual std::vector<LogKey> list(const JobId& job) = 0;
  // Called (on the appending thread) after each append or finish, for followers.
  virtual void on_change(std::function<void(const LogKey&)> callback) = 0;

  virtual Result<void> add_points(const JobId& job, const std::vector<SeriesPoint>& points) = 0;  // unsynced; steps at or below an attempt's last are dropped
  virtual Result<std::vector<SeriesPoint>> series(const JobId& job) = 0;
  virtual Result<void> remove(const JobId& job) = 0;

  // The quota may take this job's logs, those marked earliest first. Told again after each start of the controller, oldest first.
  virtual void mark_finished(const JobId& job) = 0;
  // Makes what was appended since the last call survive a power loss; blocks for as long as the disk takes, without holding up other calls. Answers the logs
  // whose `synced` grew.
  virtual Result<std::vector<LogKey>> sync() = 0;
};

}  // namespace muster::logs
