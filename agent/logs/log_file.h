// LogFile is one log file of a rank or of an auxiliary process. WatchedRank, RankReader and calls
// of the log link share it (shared_ptr). It is thread-safe: the watch thread parses, and the log
// link reads.
//
// The program opens its log with O_APPEND, truncates it at any time, and never closes it for
// muster. LogFile owns the descriptor, the mapping from physical to logical offsets, the cursor
// file and the holes.
//
//   logical   0 ........ base ............ base + floor ........ base + parsed ...... base + size
//             older segments | holes (punched) | readable: shipped, unshipped | not read yet
//
// A segment is the content of the file since the program last truncated it. Three things identify a
// segment: its inode, its first bytes (head, at most 256), and the bytes just before the parser
// (anchor, at most 64). They survive the agent. Each read is checked again afterwards, so that no
// byte of a new segment passes for one of the old segment. The first block of 4 KiB is never
// punched, so the head stays.
//
// A truncation while the agent runs gives the new segment the base "end of what was seen". After a
// truncation while the agent was down, the base is open until the controller reports what it has.
// Both record a loss at the base, even if no known byte was lost.
//
// One mutex protects all data. It is locked for at most one read of `most` bytes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "agent/logs/cursor_file.h"
#include "agent/logs/log_source.h"
#include "common/base/error.h"
#include "common/base/time.h"
#include "common/io/descriptor_limit.h"
#include "common/io/unique_fd.h"

namespace muster::agent {

inline constexpr const char* kTruncatedReason = "truncated by the program";
inline constexpr const char* kHardCapReason = "hard cap";
inline constexpr const char* kSoftCapReason = "punched here after the controller had it";

class LogFile {
 public:
  // `budget` limits the descriptors that stay open between two calls, two for each log. Null: no
  // limit.
  static Result<std::unique_ptr<LogFile>> open(std::filesystem::path log,
                                               std::filesystem::path cursor,
                                               std::shared_ptr<io::DescriptorBudget> budget = {});
  ~LogFile();

  // --- parsing (the watch thread) ----------------------------------------------------------------
  struct Parsing {
    std::string_view data;  // in the caller's buffer
    // True: the data does not continue what was parsed before. The file was truncated, or punched
    // meanwhile.
    bool cut = false;
    bool at_end = false;
  };
  Result<Parsing> parse_next(std::span<char> buffer);
  // What an earlier incarnation of the agent had parsed. parse_next() continues after it.
  [[nodiscard]] const std::optional<logs::v1::Parsed>& restored() const { return restored_; }
  // Stores that everything except the last `buffered` bytes has been parsed.
  Result<void> remember(logs::v1::Parsed parsed, std::uint64_t buffered);
  // Returns the last bytes before the parser, at most `most`.
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
  // Punches bytes that the controller has synced, until `cap` bytes are kept.
  Result<std::uint64_t> trim(std::uint64_t cap);
  // Punches `want` bytes, the oldest first, in whole blocks, shipped or not. It takes only parsed
  // bytes and never the newest `keep` bytes. Returns how many bytes it punched.
  Result<std::uint64_t> give_up(std::uint64_t want, std::uint64_t keep);
  std::uint64_t stored_bytes();

 private:
  LogFile(std::filesystem::path log, CursorFile cursor,
          std::shared_ptr<io::DescriptorBudget> budget);
  // Each call that may open the log creates a Use. Use locks the mutex, and its destructor closes a
  // descriptor that the budget does not allow to keep.
  class Use;
  Result<bool> check();  // opens and checks the file; false: it does not exist yet
  void begin_segment(std::uint64_t size, std::uint64_t inode);
  Result<void> persist_segment();
  std::string anchor_before(std::uint64_t buffered);
  Result<std::uint64_t> punch(std::uint64_t to, const char* reason);
  Result<std::size_t> pread_some(char* to, std::size_t most, std::uint64_t at) const;

  const std::filesystem::path log_;
  CursorFile cursor_;
  const std::shared_ptr<io::DescriptorBudget> budget_;
  std::mutex mutex_;
  io::UniqueFd fd_;
  bool kept_ = false;          // fd_ and the cursor's descriptor stay open
  logs::v1::Segment segment_;  // its head may be longer than the stored one
  std::size_t head_persisted_ = 0;
  bool segment_persisted_ = false;
  logs::v1::Floor floor_;
  std::uint64_t size_ = 0;    // greatest size seen of this segment, by this incarnation
  std::uint64_t parsed_ = 0;  // physical
  std::string anchor_;        // bytes just before parsed_
  bool cut_ = false;
  std::optional<std::uint64_t> controller_has_;
  std::uint64_t synced_ = 0;  // logical
  std::optional<logs::v1::Parsed> restored_;
};

}  // namespace muster::agent
