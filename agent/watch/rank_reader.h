// One rank's log, read once: bytes from its LogFile through the line splitter into the grammar and
// the success pattern. Belongs to the watch's thread alone; the LogFile behind it is shared with
// the log link.
//
// A step may be told by several lines: the step's own, the rate behind it, the end of its epoch or
// sink. Each gives a StepLine of that step with all that is known so far. The end of an epoch or
// sink covers many steps, of which no line may have told: it moves progress on by what it covers.
#pragma once

#include <re2/re2.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "agent/watch/evidence.h"
#include "agent/watch/line_scanner.h"
#include "agent/watch/log_file.h"
#include "agent/watch/step_guard.h"
#include "common/base/error.h"
#include "common/base/time.h"
#include "common/engine/grammar.h"

namespace muster::agent {

// What a run's logs are searched for: shared by its ranks.
struct Patterns {
  std::unique_ptr<engine::Grammar> grammar;
  std::unique_ptr<RE2> success;  // none: nothing to look for
  std::string success_file;
  bool success_last_step = false;
  std::uint32_t world_size = 0;  // 0: not known
  std::int64_t resume_step = 0;  // of the checkpoint that was handed over; 0: none
  bool total_given = false;      // by the spec, as a number: not the lines' own word

  static Result<std::shared_ptr<const Patterns>> make(const v1::Watching& watching);
};

class RankReader {
 public:
  // of one rank before the others have their turn
  static constexpr std::uint64_t kRoundBytes = 8 << 20;
  // parsed again at most after a restart of the agent
  static constexpr std::uint64_t kRememberBytes = 16 << 20;

  RankReader(std::shared_ptr<LogFile> file, std::shared_ptr<const Patterns> patterns);

  struct Round {
    std::vector<engine::StepLine> steps;
    bool at_end = false;
    bool loss_vanished = false;  // the trainer has said so, of a step that it did not print
  };
  // Reads one round; `moved` is called after each piece: bytes may be shipped.
  Result<Round> read(std::span<char> buffer, const std::function<void()>& moved);
  // The process behind it is gone: an unfinished last line is a line. Adds to `round`.
  void finish_line(Round& round);
  // Persists how far this came, if it came further. Rarely: by bytes, by time (`now`), at the end.
  Result<void> remember(BootTime now, bool final);

  Result<FoundEvidence> evidence();
  [[nodiscard]] bool success_seen() const { return success_seen_; }
  [[nodiscard]] const engine::StepLine* latest() const {
    return latest_.step >= 0 ? &latest_ : nullptr;
  }
  [[nodiscard]] const std::shared_ptr<LogFile>& file() const { return file_; }

 private:
  void examine(std::string_view line, Round& round);
  void take_step(const engine::StepLine& step, Round& round);
  void count_step(engine::StepLine step, Round& round);
  void take_rate(const engine::StepLine& rate, Round& round);
  void take_end(const engine::StepLine& end, Round& round);

  std::shared_ptr<LogFile> file_;
  std::shared_ptr<const Patterns> patterns_;
  LineScanner lines_;
  StepGuard guard_;
  engine::StepLine latest_;     // what is known of progress: step, total, loss, seconds
  engine::StepLine last_line_;  // the newest step's, of this life and segment; step -1: none
  std::int64_t end_step_ = -1;  // at the newest end of an epoch or sink; -1: none was seen
  bool success_seen_ = false;
  std::uint64_t unremembered_ = 0;
  BootTime remembered_at_{};
};

}  // namespace muster::agent
