// RankReader parses one rank's log once: bytes from its LogFile go through the line splitter to the
// grammar and the success pattern. LogTail (log_tails.h) owns it. Only the watch thread uses
// it; the LogFile is shared with the log link.
//
// Several lines may report one step: the line of the step itself, a rate after it, and the end of
// its epoch or sink. Each gives a StepLine of that step with everything known so far. The end of an
// epoch or sink covers many steps, and possibly no line reported any of them. Then it advances
// progress by the number of steps that it covers.
#pragma once

#include <re2/re2.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "agent/logs/evidence.h"
#include "agent/logs/line_scanner.h"
#include "agent/logs/log_file.h"
#include "agent/logs/step_guard.h"
#include "common/base/error.h"
#include "common/base/time.h"
#include "common/engine/model/grammar.h"

namespace muster::agent {

// What is searched for in the logs of a run. The run's ranks share it.
struct Patterns {
  std::unique_ptr<engine::Grammar> grammar;
  std::unique_ptr<RE2> success;  // null: no success pattern
  std::string success_file;
  bool success_last_step = false;
  std::uint32_t world_size = 0;  // 0: not known
  std::int64_t resume_step = 0;  // step of the checkpoint that the run resumes from; 0: none
  // the spec gives the total as a number; it does not come from log lines
  bool total_given = false;

  static Result<std::shared_ptr<const Patterns>> make(const v1::Watching& watching);
};

class RankReader {
 public:
  // Bytes of one rank in one round, so that other ranks get their turn.
  static constexpr std::uint64_t kRoundBytes = 8 << 20;
  // At most these bytes are parsed again after a restart of the agent.
  static constexpr std::uint64_t kRememberBytes = 16 << 20;
  // Files that replace the log in one round.
  static constexpr int kRoundFiles = 8;

  RankReader(std::shared_ptr<LogFile> file, std::shared_ptr<const Patterns> patterns);

  struct Round {
    std::vector<engine::StepLine> steps;
    bool at_end = false;
    bool loss_vanished = false;  // the trainer reported this for a step that it did not print
    // Without at_end: the log cannot be read further now. What was read before it counts.
    std::optional<Error> trouble;
  };
  // Reads one round. Calls `moved` after each piece, when new bytes can be shipped.
  Round read(std::span<char> buffer, const std::function<void()>& moved);
  // The process of the log is gone: an unfinished last line counts as a line. Adds to `round`.
  void finish_line(Round& round);
  // Stores the position if it has moved. This happens rarely: after many bytes, after some time
  // (`now`), and at the end.
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
  engine::StepLine latest_;     // known progress: step, total, loss, seconds
  engine::StepLine last_line_;  // of the newest step in this incarnation and segment; step -1: none
  std::int64_t end_step_ = -1;  // step at the newest end of an epoch or sink; -1: none seen
  bool success_seen_ = false;
  std::uint64_t unremembered_ = 0;
  BootTime remembered_at_{};
};

}  // namespace muster::agent
