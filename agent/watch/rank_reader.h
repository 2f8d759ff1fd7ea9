// One rank's log, read once: bytes from its LogFile through the line splitter into the grammar and the success pattern. Belongs to the watch's thread alone;
// the LogFile behind it is shared with the log link.
#pragma once

#include <re2/re2.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "agent/watch/line_scanner.h"
#include "agent/watch/log_file.h"
#include "common/base/error.h"
#include "common/base/time.h"
#include "common/engine/grammar.h"

namespace muster::agent {

// What a run's logs are searched for: shared by its ranks.
struct Patterns {
  std::unique_ptr<engine::Grammar> grammar;
  std::unique_ptr<RE2> success;  // none: nothing to look for
  std::string success_file;

  static Result<std::shared_ptr<const Patterns>> make(const v1::Watching& watching);
};

class RankReader {
 public:
  static constexpr std::uint64_t kRoundBytes = 8 << 20;      // of one rank before the others have their turn
  static constexpr std::uint64_t kRememberBytes = 16 << 20;  // parsed again at most after a restart of the agent

  RankReader(std::shared_ptr<LogFile> file, std::shared_ptr<const Patterns> patterns);

  struct Round {
    std::vector<engine::StepLine> steps;
    bool at_end = false;
  };
  // Reads one round; `moved` is called after each piece: bytes may be shipped.
  Result<Round> read(std::span<char> buffer, const std::function<void()>& moved);
  // The process behind it is gone: an unfinished last line is a line. Adds to `round`.
  void finish_line(Round& round);
  // Persists how far this came, if it came further. Rarely: by bytes, by time (`now`), at the end.
  Result<void> remember(BootTime now, bool final);

  Result<std::string> evidence();
  [[nodiscard]] bool success_seen() const { return success_seen_; }
  [[nodiscard]] const engine::StepLine* latest() const { return latest_.step >= 0 ? &latest_ : nullptr; }
  [[nodiscard]] const std::shared_ptr<LogFile>& file() const { return file_; }

 private:
  void look_at(std::string_view line, Round& round);

  std::shared_ptr<LogFile> file_;
  std::shared_ptr<const Patterns> patterns_;
  LineScanner lines_;
  engine::StepLine latest_;
  bool success_seen_ = false;
  std::uint64_t unremembered_ = 0;
  BootTime remembered_at_{};
};

}  // namespace muster::agent
