#include "tests/sim/scenario.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/base/assert.h"

namespace muster::sim {
namespace {

void set(google::protobuf::Duration& to, Time from) {
  to.set_seconds(from / kSecond);
  to.set_nanos(static_cast<std::int32_t>(from % kSecond));
}

JobPlan make_plan(const Scenario& scenario, std::size_t number, Rng& rng) {
  JobPlan plan;
  plan.name = fmt::format("job-{}", number);
  plan.nodes = static_cast<std::uint32_t>(
      rng.between(1, std::max<std::int64_t>(1, scenario.nodes - (rng.percent(60) ? 1 : 0))));
  plan.devices = static_cast<std::uint32_t>(rng.between(1, scenario.devices));
  plan.lockstep = rng.percent(60);
  plan.once = rng.one_in(8);
  plan.total_steps = rng.one_in(6) ? 0 : rng.between(4, 40);
  plan.step_time = rng.between(100 * kMillisecond, 1'500 * kMillisecond);
  plan.checkpoint_every = rng.one_in(5) ? 0 : rng.between(2, 8);
  plan.save_time = rng.between(20 * kMillisecond, 1'500 * kMillisecond);
  if (plan.total_steps > 0 && rng.one_in(7)) plan.error_at = rng.between(1, plan.total_steps);
  if (rng.one_in(4)) plan.flaky = static_cast<std::uint64_t>(rng.between(20, 150));
  if (plan.checkpoint_every > 0 && rng.one_in(3))
    plan.bad_checkpoint = plan.checkpoint_every * rng.between(2, 4);
  plan.launch_fails = rng.one_in(25);
  plan.peers_notice = rng.percent(60);
  plan.success_shown = !rng.one_in(5);
  plan.term_delay = rng.one_in(4) ? kNever : rng.between(2 * kMillisecond, 4'000 * kMillisecond);
  plan.leaves_children = rng.percent(40);
  plan.stop_grace = rng.one_in(4) ? 0 : rng.between(1, 9) * kSecond;
  plan.orphan_grace = rng.between(4, 22) * kSecond;
  plan.submit_at = rng.skewed(0, scenario.storm_until);
  if (rng.one_in(5)) plan.cancel_at = plan.submit_at + rng.skewed(0, scenario.storm_until);

  v1::JobSpec& spec = plan.spec;
  spec.set_name(plan.name);
  spec.set_engine(plan.lockstep ? "torch" : "command");
  spec.mutable_launch()->set_per(plan.once ? v1::LAUNCH_PER_ONCE : v1::LAUNCH_PER_RANK);
  spec.mutable_launch()->add_run("/bin/train");
  spec.mutable_launch()->set_lockstep(plan.lockstep);
  spec.mutable_resources()->set_nodes(plan.nodes);
  spec.mutable_resources()->set_devices(plan.devices);
  spec.mutable_resources()->set_type("cpu");
  spec.mutable_network()->set_interface("auto");
  spec.mutable_checkpoint()->set_layout(plan.checkpoint_every > 0 ? "megatron" : "none");
  spec.mutable_resume()->set_enabled(!rng.one_in(6));
  if (rng.percent(25)) {
    spec.mutable_success()->set_regex("training done");
  } else {
    spec.mutable_success()->set_exit0(true);
  }
  spec.mutable_recovery()->set_max_restarts(static_cast<std::uint32_t>(rng.between(2, 12)));
  set(*spec.mutable_recovery()->mutable_window(), rng.one_in(3) ? 30 * kSecond : 24 * 60 * kMinute);
  set(*spec.mutable_recovery()->mutable_orphan_grace(), plan.orphan_grace);
  set(*spec.mutable_recovery()->mutable_stop_grace(), plan.stop_grace);
  spec.set_output_dir("/out/" + plan.name);
  return plan;
}

// In one history of three, jobs wait for earlier ones. A random generator of its own decides this,
// so that everything else of a seed stays the same.
void make_chains(Scenario& scenario) {
  Rng rng(scenario.seed * 0xD1B54A32D192ED03ULL + 7);
  if (!rng.one_in(3)) return;
  for (std::size_t job = 1; job < scenario.jobs.size(); ++job) {
    for (std::size_t before = 0; before < job; ++before) {
      if (rng.one_in(before + 1 == job ? 2 : 4))
        scenario.jobs[job].after.push_back(scenario.jobs[before].name);
    }
  }
}

// In one history of three, there is a chain in addition: two to four stages. Each stage waits for
// one or more stages before it, and most stages begin with what one of these saved.
void make_stages(Scenario& scenario) {
  Rng rng(scenario.seed * 0x9E3779B97F4A7C15ULL + 11);
  if (!rng.one_in(3)) return;
  const std::size_t first = scenario.jobs.size();
  const auto count = static_cast<std::uint32_t>(rng.between(2, 4));
  for (std::uint32_t number = 1; number <= count; ++number) {
    JobPlan plan = make_plan(scenario, first + number, rng);
    plan.chain = "chain";
    plan.spec.mutable_checkpoint()->set_layout("megatron");
    plan.stage = fmt::format("s{}", number);
    plan.number = number;
    plan.count = count;
    plan.name = plan.chain + "." + plan.stage;
    plan.spec.set_name(plan.name);
    plan.spec.set_output_dir("/out/" + plan.name);
    // A chain whose first stage never succeeds tests little of what chains are for.
    plan.error_at = -1;
    plan.launch_fails = rng.one_in(40);
    plan.success_shown = plan.success_shown || number < count;
    if (number > 1) plan.submit_at = scenario.jobs[first].submit_at;
    if (number > 1 && plan.cancel_at && !rng.one_in(3)) plan.cancel_at.reset();
    plan.cancels_all = rng.percent(60);
    for (std::uint32_t before = 1; before < number; ++before) {
      if (rng.percent(before + 1 == number ? 85 : 25))
        plan.after.push_back(scenario.jobs[first + before - 1].name);
    }
    if (!plan.after.empty() && !rng.one_in(4)) {
      plan.starts_from = rng.pick(plan.after);
      plan.as = rng.one_in(3)   ? v1::START_AS_WEIGHTS
                : rng.one_in(3) ? v1::START_AS_RESUME_OR_SCRATCH
                                : v1::START_AS_RESUME;
      plan.spec.mutable_resume()->set_enabled(true);
      // It may resume far beyond its own last step, and then has nothing to do.
      if (rng.one_in(2)) plan.total_steps += 40;
    }
    scenario.jobs.push_back(std::move(plan));
  }
}

// In one history of three, most jobs have their outputs uploaded.
void make_outputs(Scenario& scenario) {
  Rng rng(scenario.seed * 0xBF58476D1CE4E5B9ULL + 15);
  scenario.has_store = rng.one_in(3);
  if (!scenario.has_store) return;
  for (JobPlan& plan : scenario.jobs) {
    if (rng.one_in(4)) continue;
    plan.upload_time = rng.between(1, rng.one_in(4) ? 40 : 8) * kSecond;
    plan.upload_fails = static_cast<std::uint64_t>(rng.between(5, 40));
    plan.spec.mutable_outputs()->set_to("webdav://out/" + plan.name);
    // Attempts that nobody disturbs, so that checkpoints are uploaded while they go on.
    if (rng.one_in(2)) plan.total_steps += 20;
    if (rng.one_in(3)) continue;
    plan.spec.mutable_checkpoint()->set_storage(v1::CHECKPOINT_STORAGE_LOCAL);
    // A start may take so much longer; the histories are short.
    set(*plan.spec.mutable_runtime()->mutable_setup_timeout(), kSecond);
  }
}

// There, the logs of half of the jobs as well.
void make_logs(Scenario& scenario) {
  if (!scenario.has_store) return;
  Rng rng(scenario.seed * 0xD6E8FEB86659FD93ULL + 7);
  for (JobPlan& plan : scenario.jobs) {
    if (rng.one_in(2)) continue;
    plan.spec.mutable_outputs()->set_logs_to("webdav://out/logs");
    if (plan.upload_time > 0) continue;
    plan.upload_time = kSecond;
    plan.upload_fails = 20;
  }
}

// Of half of those that upload, old checkpoints leave the store.
void make_keep(Scenario& scenario) {
  Rng rng(scenario.seed * 0x94D049BB133111EBULL + 3);
  for (JobPlan& plan : scenario.jobs)
    if (!plan.spec.outputs().to().empty() && rng.one_in(2))
      plan.spec.mutable_outputs()->set_keep(static_cast<std::uint32_t>(rng.between(1, 3)));
}

}  // namespace

const JobPlan& Scenario::plan(const std::string& name) const {
  // A name may contain a '~' and more text: this is the second job that a mutant makes from one
  // request.
  const auto found = std::ranges::find(jobs, name.substr(0, name.find('~')), &JobPlan::name);
  MUSTER_ASSERT(found != jobs.end(), "every job of a history has a plan");
  return *found;
}

Scenario make_scenario(const Knobs& knobs, Rng& rng) {
  Scenario scenario;
  scenario.seed = knobs.seed;
  scenario.steps_max = knobs.steps_max;
  scenario.nodes = static_cast<std::uint32_t>(rng.between(2, 4));
  scenario.devices = static_cast<std::uint32_t>(rng.between(1, 3));
  if (knobs.nodes) scenario.nodes = *knobs.nodes;
  auto jobs = static_cast<std::uint32_t>(rng.between(1, 5));
  if (knobs.jobs) jobs = *knobs.jobs;
  scenario.storm_until = rng.between(20, 100) * kSecond;
  scenario.fault_gap = rng.between(800, 6'000) * kMillisecond;
  scenario.archive_after = rng.one_in(3) ? rng.between(0, 20) * kSecond : 10 * kMinute;
  scenario.slow_network = rng.one_in(5);
  scenario.loses_journal_ends = rng.one_in(4);
  for (std::uint32_t number = 1; number <= jobs; ++number)
    scenario.jobs.push_back(make_plan(scenario, number, rng));
  make_chains(scenario);
  make_stages(scenario);
  make_outputs(scenario);
  make_logs(scenario);
  make_keep(scenario);
  return scenario;
}

}  // namespace muster::sim
