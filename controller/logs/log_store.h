// The controller's own copy of every log, of ranks and of auxiliary processes, on its own disk with
// a quota; and each job's series file. main() of the controller owns the LogStore. It is
// thread-safe, but calls do file I/O, so they belong on a thread that may block, not on the shell's
// strand.
//
// Appends are idempotent by logical offset: a chunk that is already stored is ignored. A chunk that
// would leave a hole is refused unless it has a gap record.
//
//   <root>/<job>/<attempt>/rank-<N>.log     bytes, in logical order, gaps left out; a hole where
//                                           the quota removed them
//   <root>/<job>/<attempt>/rank-<N>.index   frames: gaps, sparse time index, end mark, eviction
//                                           (proto/muster/logs/v1)
//   <root>/<job>/<attempt>/<NAME>@<node>.log, .index
//                                           the same of an auxiliary process: setup@n07.log
//   <root>/<job>/finished                   empty: the job has ended, so that the quota may remove
//                                           its logs first, also before the journal is read
//   <root>/<job>/series                     frames: (time, attempt, step, loss); next to it
//                                           series.new, while it is thinned (series_file.h)
//   <root>/.removed-<...>                   a job that is being removed; the next open() removes
//                                           what a kill has left of it
//
// The process may be killed at any byte; open() then finds a state that the store had before. A gap
// is written before the bytes after it, and an eviction before the hole. The end mark is written
// only when all bytes before it are synced: if it can be read, the log is on the disk.
//
// The kernel reports a failed write once, and forgets the bytes; a later successful sync does not
// cover them. So a log whose sync failed is set back to what was synced before. A log that nobody
// has sent anything of reads as empty.
//
// Memory and descriptors are for logs that grow. A durable log is released from memory. A released
// log that is read later is kept while it is among the most recently used logs. These are at most
// 256, or fewer, so that they use at most a quarter of the descriptors of this process.
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
  // Not empty: the log of this auxiliary process on `node`; rank is 0 then.
  std::string auxiliary{};
  NodeName node{};  // only of an auxiliary process: each node may have one with that name
  friend auto operator<=>(const LogKey&, const LogKey&) = default;
};
// The name becomes a file name: at most 64 characters of a-z, A-Z, 0-9, '-' and '_'. The node's
// name has at most 63 characters, and may contain '.', but not as the first.
[[nodiscard]] bool is_auxiliary(std::string_view name, std::string_view node);
// "rank-3" or "setup@n07", and the reverse. Nothing: no log of muster has this name.
[[nodiscard]] std::string file_stem(const LogKey& key);
[[nodiscard]] std::optional<LogKey> key_of_stem(const JobId& job, AttemptNo attempt,
                                                std::string_view stem);
struct Gap {
  std::uint64_t from = 0, to = 0;  // logical
  std::string reason;
  WallTime at{};
};
struct LogState {
  std::uint64_t end = 0;  // logical end of the stored bytes
  // True if no byte follows. It is not durable: after a restart it may be false again, until the
  // sender sends the end again.
  bool complete = false;
  std::uint64_t synced = 0;  // how many of these bytes survive a power loss
  // complete, and all of it survives a power loss: the sender may delete its own copy
  bool durable = false;
};
struct Synced {
  std::vector<std::pair<LogKey, LogState>> logs;  // whose `synced` grew, or that became durable
  // The disk did not accept all bytes of these logs. What was not synced is removed from them, and
  // so are their ends. Their senders still have the bytes, and send them again.
  std::vector<LogKey> set_back;
  std::optional<Error> error;  // the first one; the next sync retries what failed
};
// The system's own calls, or a test's replacements. They return 0, or -1 and set errno.
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
  // Without has_loss: NaN means that the loss was not a finite number; 0 means that no loss was
  // reported.
  double loss = 0;
  bool has_loss = false;
};

// Free bytes of the disk to keep. Below `wanted`, older bytes are removed for new ones. Below
// `least`, bytes are accepted only if older ones make room for them.
struct RoomKept {
  std::uint64_t wanted = 0, least = 0;  // 0: the disk is not checked
};

class LogStore {
 public:
  // `quota` is the limit in bytes over all logs. When it is reached, the logs of the oldest
  // finished jobs are removed first, then the oldest bytes of the largest log, with a gap record.
  // The same happens when less of the disk would stay free than `room` requires. What the logs
  // cannot make room for is not accepted (ResourceExhausted).
  //
  // open() makes that room as well, as far as the logs of finished jobs allow; from other logs it
  // removes as much as a start needs.
  static Result<std::unique_ptr<LogStore>> open(std::filesystem::path root, std::uint64_t quota,
                                                SyncCalls calls = {}, RoomKept room = {});
  virtual ~LogStore() = default;

  virtual Result<LogState> state(const LogKey& key) = 0;
  virtual Result<LogState> append(const LogKey& key, std::uint64_t offset, std::string_view data,
                                  const std::optional<Gap>& gap) = 0;
  virtual Result<LogState> finish(const LogKey& key, std::uint64_t size) = 0;
  // Reads at most `most` bytes from `offset`; empty data and no gap: nothing is there yet. The
  // bytes never cross a gap. A gap without a length (the lost amount is unknown) is returned only
  // with data after it. So `offset + data.size()` of the answer is always the next offset to read.
  virtual Result<Chunk> read(const LogKey& key, std::uint64_t offset, std::size_t most) = 0;
  // The logical offset at which the last `lines` lines begin. It is in the middle of a line when
  // they have more than 64 KiB on average (progress bars without a newline).
  virtual Result<std::uint64_t> tail(const LogKey& key, std::uint64_t lines) = 0;
  // The logical offset, at the beginning of a line, from which bytes arrived at `time` or later.
  // The bytes of up to ten seconds before may be included.
  virtual Result<std::uint64_t> since(const LogKey& key, WallTime time) = 0;
  virtual std::vector<LogKey> list(const JobId& job) = 0;
  // The callback is for followers; it is called on the appending thread after each append or
  // finish.
  virtual void on_change(std::function<void(const LogKey&)> callback) = 0;

  // Not synced. Steps at or below the last step of their attempt are dropped.
  virtual Result<void> add_points(const JobId& job, const std::vector<SeriesPoint>& points) = 0;
  // At most kSeriesPointsMost points (series_file.h), spread evenly over all points, with the first
  // and the last. Delays no other call.
  virtual Result<std::vector<SeriesPoint>> series(const JobId& job) = 0;
  // The last point; reads only the end of the file. Delays no other call.
  virtual Result<std::optional<SeriesPoint>> last_point(const JobId& job) = 0;
  virtual std::vector<JobId> jobs() = 0;  // that have something stored
  // When it was last written, or evicted; zero if nothing is stored.
  virtual WallTime written_at(const JobId& job) = 0;
  // Removes everything of the job, including its series. Blocks for as long as the disk needs,
  // without delaying other calls.
  virtual Result<void> remove(const JobId& job) = 0;

  // The quota may remove this job's logs; the job that was marked earliest is first. The mark is
  // kept on the disk. After each start of the controller, the marks are set again, oldest job
  // first, for jobs whose end was missed. Bytes that still arrive are kept.
  virtual void mark_finished(const JobId& job) = 0;
  // The job runs after all: its end was lost with the end of the journal.
  virtual void unmark_finished(const JobId& job) = 0;
  // Removes the logs of finished jobs until the wanted room is free again, whoever used it. If
  // inodes are short, removes the files, too.
  virtual void make_room() = 0;
  // Makes what was appended or finished since the last call survive a power loss. Blocks for as
  // long as the disk needs, without delaying other calls.
  virtual Synced sync() = 0;
};

}  // namespace muster::logs
