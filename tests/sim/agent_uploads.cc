// The third part of AgentModel: uploads of outputs, as Agent::upload_ordered() and agent/outputs do
// them. Marks survive the agent; an upload that is under way does not, and its order comes again.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "tests/sim/agent_model.h"
#include "tests/sim/world.h"

namespace muster::sim {
namespace {

bool has_ended(const agent::RunSeen& seen, const UploadTask& task) {
  if (task.logs) return seen.logs_end.has_value();
  if (!task.step) return seen.outputs.has_value();
  const auto& newest = task.seal ? seen.checkpoint_sealed : seen.checkpoint_sent;
  return newest && *newest->step >= *task.step;
}

std::string name_of(const UploadTask& task) {
  if (task.logs) return fmt::format("the logs of {}", describe(task.run));
  if (!task.step) return fmt::format("everything of {}", describe(task.run));
  return fmt::format("{}step {} of {}", task.seal ? "the mark of " : "", *task.step,
                     describe(task.run));
}

}  // namespace

void AgentModel::obey_uploads(const v1::Orders& orders) {
  std::map<UploadTask, std::vector<agent::RunSeen::Removed>> wanted;
  for (const v1::UploadOrder& order : orders.uploads()) {
    UploadTask task{.run = {JobId(order.job_id()), AttemptNo(order.attempt())},
                    .step = {},
                    .seal = order.seal(),
                    .logs = order.logs()};
    if (order.has_step()) task.step = order.step();
    std::vector<agent::RunSeen::Removed>& remove = wanted[std::move(task)];
    for (const v1::RemoteCheckpoint& one : order.remove())
      remove.push_back({.attempt = one.attempt(), .step = one.step()});
  }
  std::erase_if(uploads_, [&](const auto& one) {
    const bool goes_on = one.first.step && one.second.under_way &&
                         std::ranges::any_of(wanted, [&](const auto& other) {
                           return other.first.run == one.first.run;
                         });
    return !goes_on && !wanted.contains(one.first);
  });
  for (const auto& [task, remove] : wanted) {
    const auto dir = machine_.disk().runs.find(task.run);
    if (dir == machine_.disk().runs.end()) continue;
    const agent::RunSeen seen = observe(task.run, *dir->second);
    if (has_ended(seen, task) || (!task.step && !seen.swept)) continue;
    if (task.logs ? seen.uploads_logs : seen.uploads)
      uploads_.try_emplace(task, Upload{.remove = remove});
    else
      end_upload(task, "the node has lost the run's launch record");
  }
  upload_next();
}

// One of a job after another; logs wait for no outputs.
void AgentModel::upload_next() {
  for (auto& [task, upload] : uploads_) {
    const bool waits = std::ranges::any_of(uploads_, [&](const auto& other) {
      return other.second.under_way && other.first.run.first == task.run.first &&
             other.first.logs == task.logs;
    });
    const auto dir = machine_.disk().runs.find(task.run);
    if (waits || dir == machine_.disk().runs.end() || !dir->second->launch) continue;
    upload.under_way = true;
    upload.number = ++last_upload_;
    world_.say(
        [&] { return fmt::format("{}: agent uploads {}", machine_.name().str(), name_of(task)); });
    world_.watch.uploading(machine_, task);
    const JobPlan& plan = world_.scenario.plan(dir->second->launch->job_name());
    after(world_.rng.skewed(kMillisecond, plan.upload_time),
          [this, task = task, number = upload.number, fails = plan.upload_fails] {
            const auto found = uploads_.find(task);
            if (found == uploads_.end() || found->second.number != number) return;
            const std::vector<agent::RunSeen::Removed> remove = std::move(found->second.remove);
            uploads_.erase(found);
            end_upload(task, world_.rng.one_in(fails) ? "the store is away" : "", remove);
            upload_next();
          });
  }
}

void AgentModel::end_upload(const UploadTask& task, const std::string& problem,
                            const std::vector<agent::RunSeen::Removed>& removed) {
  if (problem.empty()) world_.watch.uploaded(machine_, task);
  world_.say([&] {
    return fmt::format("{}: agent has uploaded {}: {}", machine_.name().str(), name_of(task),
                       problem.empty() ? "all" : problem);
  });
  mark(task.run, {.kind = AgentMark::Kind::Uploaded,
                  .text = problem,
                  .upload = task,
                  .removed = problem.empty() ? removed : std::vector<agent::RunSeen::Removed>()});
  poke();
}

}  // namespace muster::sim
