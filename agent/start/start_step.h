// The steps of a start on a node, as one table in the order in which they run. Constant data.
//
// A start has a step if its order asks for it. StartRunner (start_runner.h) runs the steps; each is
// a function of its own (start_work.h) that may be repeated and that has no undo: what a start has
// made stays for the next attempt, or goes with the run directory.
//
// docs/checklists/add-a-start-step.md says how to add one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>

#include "agent/launch/start_progress.h"
#include "agent/start/start_checks.h"
#include "common/base/time.h"
#include "muster/v1/agent_service.pb.h"

namespace muster::agent {

struct StartWork;
using StepResult = std::expected<void, Refusal>;

inline constexpr std::size_t kStartStepCount = static_cast<std::size_t>(StartStep::Spawn) + 1;

enum class StepPlace : std::uint8_t {
  Thread,  // of the start; it may block
  Loop,    // of the agent. A thread that hangs cannot do it late, after its start was refused.
};

struct StartStepRow {
  StartStep step;
  std::string_view word;  // "fetch", as facts, heartbeats and failpoints have it
  StepPlace place;
  // It may take minutes: from its beginning until the start ends, the run counts as being set up.
  bool takes_long;
  // The start is refused if the step, or a part of it (StartProgress), takes longer. Steps that do
  // not take long are quick: each has what those before it have left of their common bound. Null on
  // the loop: if the state directory's disk hangs there, the whole agent waits for it.
  Duration (*bound)(const v1::NodeLaunch& order);
  bool (*in_order)(const v1::NodeLaunch& order);
  std::string (*sentence)(const v1::NodeLaunch& order);  // "writing the files of job 'x' attempt 1"
  StepResult (*run)(StartWork& work);
};
extern const std::array<StartStepRow, kStartStepCount> kStartSteps;

const StartStepRow& row_of(StartStep step);
std::optional<StartStep> parse_start_step(std::string_view word);

// "job 'x' attempt 1"
std::string start_text(const v1::NodeLaunch& order);
// "fetching '/x' from node 'n2' for job 'x' attempt 1"
std::string fetch_text(const v1::NodeLaunch& order, const v1::Fetch& what);
// "fetching inputs.data ('obs://b/x') for job 'x' attempt 1"
std::string input_text(const v1::NodeLaunch& order, const v1::StagedInput& input);

}  // namespace muster::agent
