// What one seed stands for: how many nodes, which jobs, how hard the storm. A value; the same seed
// gives the same one for ever.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "muster/v1/spec.pb.h"
#include "tests/sim/random.h"

namespace muster::sim {

// The nature of a job's program: what the controller cannot know.
struct JobPlan {
  std::string name;
  v1::JobSpec spec;
  std::uint32_t nodes = 1, devices = 1;
  bool lockstep = true;
  bool once = false;
  std::int64_t total_steps = 20;  // 0: ends at once, well
  Time step_time = kSecond;
  std::int64_t checkpoint_every = 5;  // 0: none
  Time save_time = 200 * kMillisecond;
  std::int64_t error_at = -1;  // a bug: one rank always fails here
  std::uint64_t flaky = 0;     // one in so many steps fails; 0 = never
  // whole by all its marks, but whoever loads what attempt 1 saved at this step fails at once
  std::int64_t bad_checkpoint = -1;
  bool launch_fails = false;  // cannot be exec'd
  // the others end with an error when one rank dies; else they hang
  bool peers_notice = true;
  bool success_shown = true;            // what success.regex looks for is in the log
  Time term_delay = 50 * kMillisecond;  // from SIGTERM to the end; kNever: ignores it
  bool leaves_children = false;         // data loaders that outlive their rank
  Time stop_grace = 3 * kSecond, orphan_grace = 15 * kSecond;
  Time submit_at = 0;
  std::optional<Time> cancel_at;
  std::vector<std::string> after;  // names of jobs that it waits for: earlier ones
  // Of a stage of a chain, submitted with the others of it; all of these stand together, in order.
  std::string chain;  // its name; empty: a job of its own
  std::string stage;
  std::uint32_t number = 1, count = 1;  // its place in the chain, and how many there are
  // the stage that it begins with what that saved; empty: with nothing
  std::string starts_from;
  v1::StartAs as = v1::START_AS_WEIGHTS;
  bool cancels_all = false;  // its cancel is the whole chain's
};

struct Knobs {
  std::uint64_t seed = 1;
  std::uint64_t steps_max = 3'000'000;  // deeds; more is a history that does not end
  std::optional<std::uint32_t> nodes, jobs;
};

struct Scenario {
  std::uint64_t seed = 1;
  std::uint64_t steps_max = 0;
  std::uint32_t nodes = 2, devices = 2;
  std::vector<JobPlan> jobs;
  Time storm_until = 60 * kSecond;
  Time fault_gap = 4 * kSecond;  // mean time between faults
  Time archive_after = 10 * kMinute;
  bool slow_network = false;
  // An older journal is put back now and then, and its loss accepted. Not in every history: what
  // was lost then, no invariant can hold on to.
  bool loses_journal_ends = false;

  [[nodiscard]] const JobPlan& plan(const std::string& name) const;
};

Scenario make_scenario(const Knobs& knobs, Rng& rng);

}  // namespace muster::sim
