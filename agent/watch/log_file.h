// LogFile: one log file, which its program writes (O_APPEND; a rank, or a process beside them),
// truncates when it likes, and never closes for us. Owns the descriptor, the mapping from physical
// to logical offsets, the cursor file and the holes.
//
//   logical   0 ........ base ............ base + floor ........ base + parsed ...... base + size
//             older segments | holes (punched) | readable: shipped, unshipped | not looked at yet
//
// A segment is the file's content since the program last truncated it. It is recognised by its
// inode, its first bytes (head, at most 256) and the bytes just before the parser (anchor, at most
// 64), which outlive the agent, too; read first, then checked again, so that no byte of a new
// segment passes for one of the old. The first 4 KiB block is never punched: the head stays. A
// truncation while the agent lives gives the new segment the base "end of what was seen"; one while
// it was down leaves the base open until the controller has said what it has. Both record a loss at
// the base, be it of no known byte. Thread-safe: the watch's thread parses, the log link's thread
// reads; one mutex, held for at most one read of `most` bytes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "agent/watch/cursor_file.h"
#include "agent/watch/log_source.h"
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
  // `budget`: of descriptors that are kept between two calls, two a log; null: as many as there are
  // logs.
  static Result<std::unique_ptr<LogFile>> open(std::filesystem::path log,
                                               std::filesystem::path cursor,
                                               std::shared_ptr<io::DescriptorBudget> budget = {});
  ~LogFile();

  // --- parsing (the watch's thread) --------------------------------------------------------------
  struct Parsing {
    std::string_view data;  // in the caller's buffer
    // data does not continue what was parsed before: truncated, or punched meanwhile
    bool cut = false;
    bool at_end = false;
  };
  Result<Parsing> parse_next(std::span<char> buffer);
  // What an earlier life of the agent had parsed: parse_next goes on behind it.
  [[nodiscard]] const std::optional<logs::v1::Parsed>& restored() const { return restored_; }
  // Persists that everything but the last `buffered` bytes has been parsed.
  Result<void> remember(logs::v1::Parsed parsed, std::uint64_t buffered);
  // The last bytes before the parser, at most `most`.
  Result<std::string> tail(std::size_t most);

  // --- shipping (any thread) ---------------------------------------------------------------------
  // Never beyond what was parsed. `ended`: nobody writes any more and all of it was parsed; then a
  // loss that has no data behind it is told, too.
  Result<LogPiece> read(std::uint64_t from, std::size_t most, bool ended);
  void controller_has(std::uint64_t offset, std::uint64_t synced);
  struct Extent {
    std::uint64_t end = 0;  // logical, of what was parsed
    std::uint32_t segment = 0;
    bool known = true;  // false: the base waits for the controller
  };
  Extent extent();

  // Since the program wrote last; zero where that cannot be told. Any thread.
  [[nodiscard]] Duration since_written(WallTime now) const;

  // --- room (the watch's thread) -----------------------------------------------------------------
  // Punches what the controller has synced, down to `cap` bytes kept.
  Result<std::uint64_t> trim(std::uint64_t cap);
  // Punches `want` bytes from the oldest on, whole blocks, shipped or not; parsed ones only, and
  // never of the newest `keep`. Answers how many went.
  Result<std::uint64_t> give_up(std::uint64_t want, std::uint64_t keep);
  std::uint64_t stored_bytes();

 private:
  LogFile(std::filesystem::path log, CursorFile cursor,
          std::shared_ptr<io::DescriptorBudget> budget);
  // Held by each call that may open the log: the mutex, and at its end a descriptor that may not be
  // kept goes.
  class Use;
  Result<bool> check();  // opens and checks; false: there is no file yet
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
  bool kept_ = false;          // fd_ and the cursor's stay open
  logs::v1::Segment segment_;  // head here may be longer than the persisted one
  std::size_t head_persisted_ = 0;
  bool segment_persisted_ = false;
  logs::v1::Floor floor_;
  std::uint64_t size_ = 0;    // greatest seen of this segment, in this life
  std::uint64_t parsed_ = 0;  // physical
  std::string anchor_;        // bytes just before parsed_
  bool cut_ = false;
  std::optional<std::uint64_t> controller_has_;
  std::uint64_t synced_ = 0;  // logical
  std::optional<logs::v1::Parsed> restored_;
};

}  // namespace muster::agent
