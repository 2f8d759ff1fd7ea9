// LogFile is one log file of a rank or of an auxiliary process. LogTail, RankReader and calls of
// the log link share it (shared_ptr). It is thread-safe: the watch thread parses, and the log link
// reads.
//
// The program opens its log with O_APPEND, truncates or renames it at any time, and never closes it
// for muster. LogFile owns the descriptor, the mapping from physical to logical offsets, the cursor
// file and the holes. The sources are log_file.cc (parsing, shipping), log_file_segments.cc (which
// segment the file is) and log_file_room.cc (holes).
//
//   logical   0 ........ base ............ base + floor ........ base + parsed ...... base + size
//             older segments | holes (punched) | readable: shipped, unshipped | not read yet
//
// A segment is the content of the file since the program last truncated or replaced it. Three
// things identify a segment: its inode, its first bytes (head, at most 256), and the bytes just
// before the parser (anchor, at most 64). They survive the agent. Each read is checked again
// afterwards, so that no byte of a new segment passes for one of the old segment. The first block
// of 4 KiB is never punched, so the head stays.
//
// A truncation while the agent runs gives the new segment the base "end of what was seen". After a
// truncation while the agent was down, the base is open until the controller reports what it has.
// Both record a loss at the base, even if no known byte was lost.
//
// If another file gets the log's name, as log rotation does, the descriptor still has the old file,
// which stays the log as long as a process has it open for writing. Then it is read to its end, and
// the new file continues the log without a loss. RenamedFiles keeps the old descriptor until the
// controller has synced its bytes. If no descriptor was open, the new file is a loss as after a
// truncation ("replaced by the program").
//
// One mutex protects all data. It is locked for at most one read of `most` bytes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "agent/logs/cursor_file.h"
#include "agent/logs/log_segment.h"
#include "agent/logs/log_source.h"
#include "agent/logs/logs_dir.h"
#include "agent/logs/renamed_files.h"
#include "common/base/error.h"
#include "common/base/mutex.h"
#include "common/base/time.h"
#include "common/io/descriptor_limit.h"
#include "common/io/unique_fd.h"

namespace muster::agent {

class LogFile {
 public:
  // `budget` limits the descriptors that stay open between two calls: two for each log, and one for
  // each renamed file. Null: no limit. `dir` has both files. Null: the directory of each is opened
  // for it alone.
  static Result<std::unique_ptr<LogFile>> open(std::filesystem::path log,
                                               const std::filesystem::path& cursor,
                                               std::shared_ptr<io::DescriptorBudget> budget = {},
                                               std::shared_ptr<LogsDir> dir = {});
  ~LogFile();

  // --- parsing (the watch thread) ----------------------------------------------------------------
  struct Parsing {
    std::string_view data;  // in the caller's buffer
    // True: the data does not continue what was parsed before. The file was truncated, or punched
    // meanwhile.
    bool cut = false;
    // True: the data is the beginning of another file. All of the file before was parsed.
    bool new_file = false;
    bool replaced = false;  // this call has begun another file, possibly after an empty one
    bool at_end = false;
    // Another file has the log's name, but cannot be opened. The open one is still the log.
    std::optional<Error> trouble{};
  };
  // Begins at most one new file.
  Result<Parsing> parse_next(std::span<char> buffer) MUSTER_EXCLUDES(mutex_);
  // What an earlier incarnation of the agent had parsed. parse_next() continues after it.
  [[nodiscard]] const std::optional<logs::v1::Parsed>& restored() const { return restored_; }
  // Stores that everything except the last `buffered` bytes has been parsed.
  Result<void> remember(logs::v1::Parsed parsed, std::uint64_t buffered);
  // No process writes the log any more.
  void writers_gone();
  // Returns the last bytes before the parser, at most `most`. They may begin in the file before the
  // present one, if that is still open; then a line ends between the files.
  Result<std::string> tail(std::size_t most);

  // --- shipping (any thread) ---------------------------------------------------------------------
  // Never returns bytes beyond those that were parsed. `ended` means that no process writes the log
  // any more and that all of it was parsed. Then a loss without data after it is reported, too.
  Result<LogPiece> read(std::uint64_t from, std::size_t most, bool ended);
  void controller_has(std::uint64_t offset, std::uint64_t synced);
  struct Extent {
    std::uint64_t end = 0;  // logical end of the parsed bytes
    std::uint32_t segment = 0;
    bool known = true;  // false: the base is open until the controller reports its offset
  };
  Extent extent();

  // Time since the program last wrote; zero if that is unknown. Any thread may call it.
  [[nodiscard]] Duration since_written(WallTime now) const;

  // --- room (the watch thread) -------------------------------------------------------------------
  // A file that does not have the log's name any more is not punched.
  //
  // Punches bytes that the controller has synced, until `cap` bytes are kept.
  Result<std::uint64_t> trim(std::uint64_t cap);
  // Punches `want` bytes, the oldest first, in whole blocks, shipped or not. It takes only parsed
  // bytes and never the newest `keep` bytes. Returns how many bytes it punched.
  Result<std::uint64_t> give_up(std::uint64_t want, std::uint64_t keep);
  std::uint64_t stored_bytes();

 private:
  LogFile(std::filesystem::path log, std::shared_ptr<LogsDir> dir, CursorFile cursor,
          std::shared_ptr<io::DescriptorBudget> budget);
  // Each call that may open the log creates a Use. Use locks the mutex, and its destructor closes a
  // descriptor that the budget does not allow to keep.
  class Use;
  // Opens and checks the file; false: it does not exist yet.
  Result<bool> check() MUSTER_REQUIRES(mutex_);
  Result<bool> open_log() MUSTER_REQUIRES(mutex_);
  Result<bool> same_segment(std::uint64_t size, std::uint64_t inode) MUSTER_REQUIRES(mutex_);
  void begin_segment(std::uint64_t size, std::uint64_t inode) MUSTER_REQUIRES(mutex_);
  // Opens the file that continues the log: it has the log's name now, and no process writes the
  // open one any more. No descriptor: the open one is still the log.
  Result<io::UniqueFd> successor() const MUSTER_REQUIRES(mutex_);
  // All of the open file is parsed: `next` is the next segment.
  void next_file(io::UniqueFd next) MUSTER_REQUIRES(mutex_);
  Result<void> persist_segment() MUSTER_REQUIRES(mutex_);
  std::string anchor_before(std::uint64_t buffered) MUSTER_REQUIRES(mutex_);
  void take_parsed(std::string_view data) MUSTER_REQUIRES(mutex_);
  Result<std::uint64_t> punch(std::uint64_t to, const char* reason) MUSTER_REQUIRES(mutex_);
  Result<std::size_t> pread_some(char* to, std::size_t most, std::uint64_t at) const
      MUSTER_REQUIRES(mutex_);

  const std::filesystem::path log_;  // as people see it: dir_ opens it
  const std::string name_;
  const std::shared_ptr<LogsDir> dir_;
  const std::shared_ptr<io::DescriptorBudget> budget_;
  Mutex mutex_;
  CursorFile cursor_ MUSTER_GUARDED_BY(mutex_);
  io::UniqueFd fd_ MUSTER_GUARDED_BY(mutex_);
  bool kept_ MUSTER_GUARDED_BY(mutex_) = false;  // fd_ and the cursor's descriptor stay open
  RenamedFiles renamed_ MUSTER_GUARDED_BY(mutex_);
  // Its head may be longer than the stored one.
  logs::v1::Segment segment_ MUSTER_GUARDED_BY(mutex_);
  std::size_t head_persisted_ MUSTER_GUARDED_BY(mutex_) = 0;
  bool segment_persisted_ MUSTER_GUARDED_BY(mutex_) = false;
  logs::v1::Floor floor_ MUSTER_GUARDED_BY(mutex_);
  // Greatest size seen of this segment, by this incarnation.
  std::uint64_t size_ MUSTER_GUARDED_BY(mutex_) = 0;
  std::uint64_t parsed_ MUSTER_GUARDED_BY(mutex_) = 0;  // physical
  std::string anchor_ MUSTER_GUARDED_BY(mutex_);        // bytes just before parsed_
  bool cut_ MUSTER_GUARDED_BY(mutex_) = false;          // Parsing::cut of the next piece
  bool new_file_ MUSTER_GUARDED_BY(mutex_) = false;     // Parsing::new_file of the next piece
  bool writers_gone_ MUSTER_GUARDED_BY(mutex_) = false;
  std::optional<std::uint64_t> controller_has_ MUSTER_GUARDED_BY(mutex_);
  std::uint64_t synced_ MUSTER_GUARDED_BY(mutex_) = 0;  // logical
  const std::optional<logs::v1::Parsed> restored_;
};

}  // namespace muster::agent
