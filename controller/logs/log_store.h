// The controller's own copy of every log, of ranks and of processes beside them, on its own disk
// with a quota, and the series file a job. Idempotent by logical offset: a chunk that is already
// there is ignored, a chunk that would leave a hole is refused unless it carries a gap record.
// Thread-safe (one mutex; calls do file I/O and belong on a thread that may block, not on the
// shell's strand).
//
//   <root>/<job>/<attempt>/rank-<N>.log     bytes, in logical order, gaps left out; a hole where
//                                           the quota took them
//   <root>/<job>/<attempt>/rank-<N>.index   frames: gaps, sparse time index, end mark, eviction
//                                           (proto/muster/logs/v1)
//   <root>/<job>/<attempt>/<NAME>@<node>.log, .index
//                                           the same of a process beside the ranks: setup@n07.log
//   <root>/<job>/finished                   empty: the job has ended, so that the quota may take
//                                           its logs first, also before the journal was read
//   <root>/<job>/series                     frames: (time, attempt, step, loss); series.new beside
//                                           it: one being thinned (series_file.h)
//   <root>/.removed-<...>                   a job on its way out; the next open() takes what a kill
//                                           has left of it
//
// Killed at any byte, it opens to a state that it had: a gap is written before the bytes behind it,
// an eviction before the hole, and the end mark only when all bytes before it are synced: where it
// can be read, the log is on the disk. The kernel tells of a write that failed once, and forgets
// the bytes: a later sync that succeeds says nothing of them. So a log whose sync failed goes back
// to what was synced before. A log that nobody has sent anything of reads as empty.
//
// Memory and descriptors are for logs that grow: one that is durable is let go, and what is read of
// it later is kept for as long as it is among those used last: 256 logs, or fewer, so that they
// have a quarter of the descriptors of this process at most.
#pragma once

#include <unistd.h>

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
  // not empty: of this process beside the ranks, on `node`; rank is 0 then
  std::string auxiliary{};
  NodeName node{};  // of an auxiliary process alone: each node may have one of that name
  friend auto operator<=>(const LogKey&, const LogKey&) = default;
};
// The name becomes a file's: at most 64 of a-z, A-Z, 0-9, '-' and '_'; the node's at most 63, and
// '.', too, though not as the first.
[[nodiscard]] bool is_auxiliary(std::string_view name, std::string_view node);
// "rank-3", "setup@n07"; and back. Nothing: no log of ours has this name.
[[nodiscard]] std::string file_stem(const LogKey& key);
[[nodiscard]] std::optional<LogKey> key_of_stem(const JobId& job, AttemptNo attempt,
                                                std::string_view stem);
struct Gap {
  std::uint64_t from = 0, to = 0;  // logical
  std::string reason;
  WallTime at{};
};
struct LogState {
  std::uint64_t end = 0;  // logical end of what is here
  // and nothing comes behind it. Not durable: after a restart it may be false again, until the
  // sender says it again
  bool complete = false;
  std::uint64_t synced = 0;  // of it, what survives a power loss
  // complete, and all of it survives a power loss: the sender's own may go
  bool durable = false;
};
struct Synced {
  std::vector<std::pair<LogKey, LogState>> logs;  // whose `synced` grew, or that became durable
  // The disk did not take all of these: what was not synced is gone from them, their ends with it.
  // Their senders still have it, and send it again.
  std::vector<LogKey> set_back;
  std::optional<Error> error;  // the first; what it kept back is tried again by the next sync
};
// The system's own, or a test's in their place: 0, or -1 and errno.
struct SyncCalls {
  std::function<int(int fd)> file = ::fdatasync;
  std::function<int(int fd)> folder = ::fsync;
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
  double loss = 0;  // without has_loss NaN: it was no finite number; 0: none was told
  bool has_loss = false;
};

// Bytes of the disk. Below `wanted` older bytes go for those that come, below `least` nothing is
// taken in that older ones do not give.
struct RoomKept {
  std::uint64_t wanted = 0, least = 0;  // 0: the disk is not looked at
};

class LogStore {
 public:
  // `quota` bytes over all logs; when it is reached, the oldest finished jobs' logs go first, then
  // the oldest bytes of the largest log, with a gap record. So does it when less of the disk than
  // `room` says would stay free; what the logs cannot give is not taken in (ResourceExhausted).
  // Opening makes that room as well, as far as finished jobs' logs go, and of the others as much as
  // a start needs.
  static Result<std::unique_ptr<LogStore>> open(std::filesystem::path root, std::uint64_t quota,
                                                SyncCalls calls = {}, RoomKept room = {});
  virtual ~LogStore() = default;

  virtual Result<LogState> state(const LogKey& key) = 0;
  virtual Result<LogState> append(const LogKey& key, std::uint64_t offset, std::string_view data,
                                  const std::optional<Gap>& gap) = 0;
  virtual Result<LogState> finish(const LogKey& key, std::uint64_t size) = 0;
  // From `offset`, at most `most` bytes; empty data and no gap: nothing there yet. Never crosses a
  // gap. A gap of no length (unknown how much was lost) is told only with data behind it, so that
  // `offset + data.size()` of the answer is always where to go on.
  virtual Result<Chunk> read(const LogKey& key, std::uint64_t offset, std::size_t most) = 0;
  // Logical offset where the last `lines` lines begin; in the middle of one when they have more
  // than 64 KiB on the average (progress bars without a newline).
  virtual Result<std::uint64_t> tail(const LogKey& key, std::uint64_t lines) = 0;
  // Logical offset where what arrived at `time` or later begins, at the beginning of a line; up to
  // ten seconds' bytes before it may come along.
  virtual Result<std::uint64_t> since(const LogKey& key, WallTime time) = 0;
  virtual std::vector<LogKey> list(const JobId& job) = 0;
  // Called (on the appending thread) after each append or finish, for followers.
  virtual void on_change(std::function<void(const LogKey&)> callback) = 0;

  // unsynced; steps at or below an attempt's last are dropped
  virtual Result<void> add_points(const JobId& job, const std::vector<SeriesPoint>& points) = 0;
  // At most kSeriesPointsMost (series_file.h), spread evenly over all that there are, the first and
  // the last among them. Holds up no other call.
  virtual Result<std::vector<SeriesPoint>> series(const JobId& job) = 0;
  // The last of them; a look at the file's end. Holds up no other call.
  virtual Result<std::optional<SeriesPoint>> last_point(const JobId& job) = 0;
  virtual std::vector<JobId> jobs() = 0;              // that have something here
  virtual WallTime written_at(const JobId& job) = 0;  // last, or evicted; nothing here: zero
  // Everything of the job, its series too. Blocks for as long as the disk takes, without holding up
  // other calls.
  virtual Result<void> remove(const JobId& job) = 0;

  // The quota may take this job's logs, those marked earliest first. Kept on the disk, and told
  // again after each start of the controller, oldest first: of jobs that ended unseen. What still
  // comes is kept.
  virtual void mark_finished(const JobId& job) = 0;
  // It runs after all: its end was lost with the journal's.
  virtual void unmark_finished(const JobId& job) = 0;
  // Finished jobs' logs go until the wanted room is free again, whoever took it; where inodes are
  // short, with their files.
  virtual void make_room() = 0;
  // Makes what was appended or finished since the last call survive a power loss; blocks for as
  // long as the disk takes, without holding up other calls.
  virtual Synced sync() = 0;
};

}  // namespace muster::logs
