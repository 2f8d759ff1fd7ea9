// What one seed means: how many nodes, which jobs, how strong the storm. World owns the Scenario.
// Plain values.
//
// The same seed always gives the same scenario.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "muster/v1/spec.pb.h"
#include "tests/sim/random.h"

namespace muster::sim {

// How a job's program behaves, which the controller cannot know.
struct JobPlan {
  std::string name;
  v1::JobSpec spec;
  std::uint32_t nodes = 1, devices = 1;
  bool lockstep = true;
  bool once = false;
  std::int64_t total_steps = 20;  // 0: ends at once, with success
  Time step_time = kSecond;
  std::int64_t checkpoint_every = 5;  // 0: no checkpoints
  Time save_time = 200 * kMillisecond;
  std::int64_t error_at = -1;  // a bug: one rank always fails here
  std::uint64_t flaky = 0;     // one step in this many fails; 0 = never
  // The checkpoint that attempt 1 saves at this step has all marks of a complete one, but every
  // rank that loads it fails at once.
  std::int64_t bad_checkpoint = -1;
  bool launch_fails = false;  // cannot be exec'd
  // If one rank dies, the others end with an error; otherwise they hang.
  bool peers_notice = true;
  bool success_shown = true;            // the log contains what success.regex matches
  Time term_delay = 50 * kMillisecond;  // from SIGTERM to the end; kNever: ignores it
  bool leaves_children = false;         // data loaders that outlive their rank
  Time stop_grace = 3 * kSecond, orphan_grace = 15 * kSecond;
  Time submit_at = 0;
  std::optional<Time> cancel_at;
  std::vector<std::string> after;  // names of the earlier jobs that it waits for
  // The next fields are for a stage of a chain. It is submitted together with the other stages,
  // which are adjacent and in order.
  std::string chain;  // the chain's name; empty: not part of a chain
  std::string stage;
  std::uint32_t number = 1, count = 1;  // its number in the chain, and how many stages there are
  // The stage whose checkpoint it begins with; empty: none.
  std::string starts_from;
  v1::StartAs as = v1::START_AS_WEIGHTS;
  bool cancels_all = false;  // cancelling it cancels the whole chain
  // If its outputs are uploaded: how long one upload takes at most, and one in how many fails.
  Time upload_time = 0;
  std::uint64_t upload_fails = 0;
};

struct Knobs {
  std::uint64_t seed = 1;
  std::uint64_t steps_max = 3'000'000;  // in deeds; a history with more does not end
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
  // Sometimes an older journal is restored, and its loss is accepted. Not every history does this,
  // because no invariant can cover what was lost then.
  bool loses_journal_ends = false;
  bool has_store = false;  // jobs may have outputs.to

  [[nodiscard]] const JobPlan& plan(const std::string& name) const;
};

Scenario make_scenario(const Knobs& knobs, Rng& rng);

}  // namespace muster::sim
