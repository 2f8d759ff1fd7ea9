// The tables of phases, moves and rules, and the phase of every reading of a directory.
// docs/run-phases.md is written from the tables: MUSTER_REWRITE=1 writes it anew.
#include "agent/core/run_phase.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

#include "agent/core/reconcile.h"
#include "tests/support/checkout.h"

namespace muster::agent {
namespace {

const BootId kBoot("b-1");

const char* meaning(RunPhase phase) {
  switch (phase) {
    case RunPhase::Starting:
      return "this agent prepares the start, or its worker has not claimed the run yet";
    case RunPhase::Unclaimed:
      return "nobody has claimed the directory, and this agent starts nothing in it";
    case RunPhase::ClaimLost: return "it was claimed, and the claim has been lost with its disk";
    case RunPhase::Refusing:
      return "an agent has claimed it, to never start it; the reason is not written yet";
    case RunPhase::Refused: return "the reason is written, too";
    case RunPhase::Launching: return "a worker has claimed it and lives";
    case RunPhase::SettingUp: return "the worker runs `runtime.setup`";
    case RunPhase::Running: return "every rank of the node has been started";
    case RunPhase::Stopping: return "the worker has written that it stops its ranks";
    case RunPhase::Left: return "the worker has ended without a sweep";
    case RunPhase::Rebooted: return "the node has been booted since, and the run is not swept";
    case RunPhase::Ending: return "swept; the worker has not exited yet";
    case RunPhase::Over: return "swept, and only the agent still uses the directory";
  }
  return "";
}

std::string deed_text(RunDeed deed, const RunRule& rule) {
  switch (deed) {
    case RunDeed::Nothing: return "-";
    case RunDeed::Refuse: return "claim it, write why it never starts";
    case RunDeed::RefuseStopped: return "claim it, write that it was stopped";
    case RunDeed::Stop: return "SIGTERM to the worker";
    case RunDeed::Sweep: return "sweep: " + v1::SweptWhy_Name(rule.why).substr(10);
    case RunDeed::MarkSwept: return "mark it swept: " + v1::SweptWhy_Name(rule.why).substr(10);
    case RunDeed::Forget: return "remove the directory";
  }
  return "";
}

std::string page() {
  std::string page =
      "# Phases of a run on its node\n\n"
      "After this page you know what the agent does with a run directory that it finds, in every "
      "state that a crash can leave.\n\n"
      "A run is one attempt on one node. Its phase is stored nowhere: `phase_of` in "
      "`agent/core/run_phase.h` derives it from\nthe [run directory](run-directory.md) and from "
      "the process table. This page is generated from the tables there, and a\ntest compares the "
      "two. `MUSTER_REWRITE=1 unit_agent_core` writes the page again.\n\n"
      "| Phase | What it means | What the agent does | when a stop is ordered | when a forget is "
      "ordered |\n|---|---|---|---|---|\n";
  for (const RunRule& rule : kRunRules) {
    const auto other = [&](RunDeed deed) {
      return deed == rule.always ? std::string("the same") : deed_text(deed, rule);
    };
    page += fmt::format("| {} | {} | {} | {} | {} |\n", to_string(rule.phase), meaning(rule.phase),
                        deed_text(rule.always, rule), other(rule.on_stop), other(rule.on_forget));
  }
  page +=
      "\nAn agent that reads several records at once sees a run some moves further. An agent that "
      "starts finds runs in any phase,\nalso in `rebooted`, to which no move leads.\n\n"
      "| Move | From | What is seen | To |\n|---|---|---|---|\n";
  std::size_t number = 0;
  for (const RunMove& move : kRunMoves) {
    page += fmt::format("| {} | {} | {} | {} |\n", ++number, to_string(move.from),
                        to_string(move.on), to_string(move.to));
  }
  return page;
}

TEST(RunPhase, PageIsMadeFromTheTables) {
  const std::string path = test::checkout("docs/run-phases.md");
  if (std::getenv("MUSTER_REWRITE") != nullptr) std::ofstream(path) << page();
  std::ifstream file(path);
  ASSERT_TRUE(file) << path;
  const std::string written{std::istreambuf_iterator<char>(file), {}};
  EXPECT_EQ(written, page())
      << "docs/run-phases.md is not what the tables say; MUSTER_REWRITE=1 writes it anew";
}

// What a directory can show of a run, in all combinations.
std::vector<RunSeen> all_readings() {
  std::vector<RunSeen> all;
  for (const WorkerState worker : {WorkerState::None, WorkerState::Spawned, WorkerState::Alive,
                                   WorkerState::Dead, WorkerState::Never}) {
    for (unsigned bits = 0; bits < 128; ++bits) {
      RunSeen seen;
      seen.worker = worker;
      seen.boot_id = (bits & 1U) != 0 ? BootId("b-0") : kBoot;
      seen.swept = (bits & 2U) != 0;
      seen.stop_requested = (bits & 4U) != 0;
      seen.started = (bits & 8U) != 0;
      seen.setting_up = (bits & 16U) != 0;
      seen.worker_spoke = (bits & 32U) != 0;
      if ((bits & 64U) != 0) seen.refused = {v1::START_FAILURE_NODE, "why"};
      all.push_back(seen);
    }
  }
  return all;
}

TEST(RunPhase, IsReachedByAReading) {
  std::set<RunPhase> phases;
  for (const RunSeen& seen : all_readings()) phases.insert(phase_of(seen, kBoot));
  EXPECT_EQ(phases.size(), kRunPhases);
}

TEST(RunPhase, OfASweptRunAsksForNoSweep) {
  for (const RunSeen& seen : all_readings()) {
    if (!seen.swept) continue;
    const RunRule& rule = rule_of(phase_of(seen, kBoot));
    EXPECT_EQ(rule.always, RunDeed::Nothing);
    EXPECT_EQ(rule.on_stop, RunDeed::Nothing);
  }
}

TEST(RunPhase, OfALivingWorkerIsLeftAloneOnThisBoot) {
  for (const RunSeen& seen : all_readings()) {
    if (seen.worker != WorkerState::Alive || seen.boot_id != kBoot) continue;
    const RunPhase phase = phase_of(seen, kBoot);
    EXPECT_EQ(is_supervised(phase), !seen.swept);
    EXPECT_EQ(rule_of(phase).always, RunDeed::Nothing);
    EXPECT_EQ(rule_of(phase).on_forget, rule_of(phase).on_stop) << "and never removed";
  }
}

TEST(RunPhase, OfAnotherBootNeedsNoSearch) {
  RunSeen seen;
  seen.worker = WorkerState::Dead;
  seen.boot_id = BootId("b-0");
  EXPECT_EQ(phase_of(seen, kBoot), RunPhase::Rebooted);
  seen.swept = true;
  EXPECT_EQ(phase_of(seen, kBoot), RunPhase::Over);
}

TEST(RunPhase, MovesOnlyForward) {
  EXPECT_TRUE(may_follow(RunPhase::Starting, RunPhase::Over));
  EXPECT_TRUE(may_follow(RunPhase::Unclaimed, RunPhase::Running));
  EXPECT_TRUE(may_follow(RunPhase::SettingUp, RunPhase::Running));
  EXPECT_FALSE(may_follow(RunPhase::Stopping, RunPhase::Running));
  EXPECT_FALSE(may_follow(RunPhase::Refused, RunPhase::Launching));
  EXPECT_FALSE(may_follow(RunPhase::Over, RunPhase::Ending));
  EXPECT_FALSE(may_follow(RunPhase::Left, RunPhase::Unclaimed));
}

}  // namespace
}  // namespace muster::agent
