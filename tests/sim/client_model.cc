#include "tests/sim/client_model.h"

#include <fmt/format.h>

#include <algorithm>

#include "tests/sim/world.h"

namespace muster::sim {
namespace {
constexpr std::uint32_t kTriesMax = 60;
RequestId request_of(const std::string& name) { return RequestId("request-" + name); }
JobId id_of(std::uint64_t number) { return JobId(fmt::format("{:013}", number)); }
// The id of the stage that is `places` stages after the first one.
JobId id_behind(const JobId& first, std::uint32_t places) {
  return id_of(std::stoull(first.str()) + places);
}
}  // namespace

void ClientModel::begin() {
  for (const JobPlan& plan : world_.scenario.jobs) {
    requests_[plan.name].plan = &plan;
    if (plan.number > 1) {
      requests_[plan.name].first = (&plan - (plan.number - 1))->name;
    } else {
      world_.timeline.after(plan.submit_at, [this, name = plan.name] { submit(name); });
    }
    if (plan.cancel_at) {
      world_.timeline.after(*plan.cancel_at, [this, name = plan.name] {
        requests_.at(name).cancelling = true;
        cancel(name);
      });
    }
  }
}

void ClientModel::send(core::Input input, std::function<void(const core::Answer&)> leaves,
                       std::function<void(const core::Answer&)> arrives) {
  if (!world_.controller.listening() || world_.rng.one_in(20)) return;
  world_.timeline.after(
      world_.network.delay(),
      [this, input = std::move(input), leaves = std::move(leaves), arrives = std::move(arrives)] {
        if (!world_.controller.listening()) return;
        world_.controller.ask(input, [this, leaves, arrives](const core::Answer& answer) {
          if (leaves) leaves(answer);
          if (world_.rng.one_in(20)) return;
          world_.timeline.after(world_.network.delay(), [arrives, answer] { arrives(answer); });
        });
      });
}

void ClientModel::submit(const std::string& name) {
  Request& request = requests_.at(name);
  if (request.job || request.given_up) return;
  if (const Named named = named_before(*request.plan); named != Named::Known) {
    request.given_up = named == Named::Never;
    if (named == Named::NotYet) world_.timeline.after(kSecond, [this, name] { submit(name); });
    return;
  }
  if (++request.tries > kTriesMax) {
    request.given_up = true;
    ++world_.coverage.seen["submissions given up"];
    return;
  }
  if (request.tries > 1) world_.coverage.hit(Fault::Duplicate);
  submit_once(name);
  if (world_.rng.one_in(15)) submit_once(name);
  world_.timeline.after(world_.rng.between(500, 4'000) * kMillisecond,
                        [this, name] { submit(name); });
}

ClientModel::Named ClientModel::named_before(const JobPlan& plan) const {
  for (const std::string& name : plan.after) {
    const Request& before = requests_.at(name);
    if (!before.job) return before.given_up ? Named::Never : Named::NotYet;
  }
  return Named::Known;
}

std::vector<const JobPlan*> ClientModel::behind(const JobPlan& first) const {
  std::vector<const JobPlan*> all;
  for (std::uint32_t place = 1; place < first.count; ++place) all.push_back(&first + place);
  return all;
}

core::SubmitJob ClientModel::submission(const JobPlan& plan) {
  const JobId first = id_of(next_id_);
  next_id_ += plan.count;
  core::SubmitJob input{.job = first,
                        .request_id = request_of(plan.name),
                        .spec = plan.spec,
                        .resolved = {},
                        .spec_hash = "0"};
  for (const std::string& before : plan.after)
    input.resolved.add_after(requests_.at(before).job->str());
  if (plan.chain.empty()) return input;
  const auto fill = [&](v1::JobSpec& spec, v1::ResolvedSpec& resolved, const JobPlan& stage) {
    resolved.mutable_stage()->set_chain(first.str());
    v1::StageSpec& to = *spec.mutable_stage();
    to.set_chain_name(plan.chain);
    to.set_name(stage.stage);
    to.set_number(stage.number);
    to.set_count(stage.count);
    for (std::uint32_t place = 0; place < plan.count; ++place) {
      const JobPlan& other = *(&plan + place);
      v1::StageDir& dir = *resolved.mutable_stage()->add_dirs();
      dir.set_stage(other.stage);
      dir.set_job(id_behind(first, place).str());
      dir.set_out(other.spec.output_dir());
      if (other.name == stage.starts_from) spec.mutable_start()->set_from("stage:" + other.stage);
    }
    if (!stage.starts_from.empty()) spec.mutable_start()->set_as(stage.as);
  };
  fill(input.spec, input.resolved, plan);
  for (const JobPlan* stage : behind(plan)) {
    core::ChainedJob& one =
        input.behind.emplace_back(core::ChainedJob{.job = id_behind(first, stage->number - 1),
                                                   .spec = stage->spec,
                                                   .resolved = {},
                                                   .spec_hash = "0"});
    fill(one.spec, one.resolved, *stage);
    for (const std::string& before : stage->after)
      one.resolved.add_after(id_behind(first, world_.scenario.plan(before).number - 1).str());
  }
  return input;
}

void ClientModel::submit_once(const std::string& name) {
  send(
      submission(*requests_.at(name).plan),
      [this, name](const core::Answer& answer) {
        if (!answer.refusal && answer.job) world_.watch.replied(request_of(name), *answer.job);
      },
      [this, name](const core::Answer& answer) { answered(name, answer); });
}

void ClientModel::answered(const std::string& name, const core::Answer& answer) {
  Request& request = requests_.at(name);
  if (answer.refusal) {
    ++world_.coverage.seen[fmt::format("submission refused: {}", to_string(answer.refusal->code))];
    const auto lost = [&](const std::string& before) {
      const auto job = requests_.at(before).job
                           ? world_.watch.book().durable.find(*requests_.at(before).job)
                           : world_.watch.book().durable.end();
      return job != world_.watch.book().durable.end() && job->second.outcome &&
             *job->second.outcome != core::Outcome::Succeeded;
    };
    if (std::ranges::any_of(request.plan->after, lost)) {
      request.given_up = true;
      ++world_.coverage.seen["submission given up: what it waits for has failed"];
    }
    return;  // the client tries again later: nodes will register
  }
  // The answer was in flight when the journal's end was lost. The client will find that the job
  // does not exist.
  if (world_.scenario.loses_journal_ends && !world_.watch.book().durable.contains(*answer.job))
    return;
  learn(name, *answer.job);
}

void ClientModel::learn(const std::string& name, const JobId& job) {
  Request& request = requests_.at(name);
  request.job = job;
  if (request.plan->chain.empty()) return;
  ++world_.coverage.seen["chain submitted"];
  for (const JobPlan* stage : behind(*request.plan))
    requests_.at(stage->name).job = id_behind(job, stage->number - 1);
}

void ClientModel::cancel(const std::string& name) {
  Request& request = requests_.at(name);
  if (request.cancel_answered || request.given_up) return;
  world_.timeline.after(2 * kSecond, [this, name] { cancel(name); });
  if (!request.job) return;
  world_.watch.cancel_asked(*request.job);
  const bool whole = request.plan->cancels_all && !request.plan->chain.empty();
  if (whole) {
    ++world_.coverage.seen["whole chain cancelled"];
    for (const auto& [other, of] : requests_) {
      if (of.plan->chain == request.plan->chain && of.job) world_.watch.cancel_asked(*of.job);
    }
  }
  send(core::CancelJob{.job = *request.job, .reason = "because", .whole_chain = whole}, nullptr,
       [this, name](const core::Answer&) { requests_.at(name).cancel_answered = true; });
}

void ClientModel::journal_end_lost() {
  const Book& book = world_.watch.book();
  for (auto& [name, request] : requests_) {
    if (request.cancelling && request.cancel_answered) {
      request.cancel_answered = false;
      world_.timeline.after(2 * kSecond, [this, name = name] { cancel(name); });
    }
    if (!request.job || book.durable.contains(*request.job)) continue;
    request.job.reset();
    request.tries = 0;
    // The first stage of its chain submits it again, if that one is gone, too.
    if (!request.first.empty()) continue;
    world_.timeline.after(kSecond, [this, name = name] { submit(name); });
  }
}

void ClientModel::declare_dead(const NodeName& node) {
  const auto record = world_.controller.ledger().nodes.find(node);
  const bool dead = record != world_.controller.ledger().nodes.end() && record->second.dead;
  if (!dead || !world_.controller.listening()) {
    send(core::DeclareNodeDead{.node = node, .reason = "its machine is gone"}, nullptr,
         [](const core::Answer&) {});
  }
  // A loss that is accepted once more may take it.
  world_.timeline.after(5 * kSecond, [this, node] { declare_dead(node); });
}

void ClientModel::cancel_wider_than(std::uint32_t nodes) {
  for (auto& [name, request] : requests_) {
    if (request.plan->nodes <= nodes || request.cancelling) continue;
    request.cancelling = true;
    if (!request.job) request.given_up = true;
    if (!request.job && !request.first.empty()) requests_.at(request.first).given_up = true;
    cancel(name);
  }
}

bool ClientModel::done() const {
  const Book& book = world_.watch.book();
  return std::ranges::all_of(requests_, [&](const auto& entry) {
    const std::string& first = entry.second.first.empty() ? entry.first : entry.second.first;
    const auto replied = book.replied.find(request_of(first));
    if (replied == book.replied.end()) return requests_.at(first).given_up;
    const auto job = book.durable.find(id_behind(replied->second, entry.second.plan->number - 1));
    if (job == book.durable.end()) return book.chains_cut.contains(replied->second);
    return job->second.outcome.has_value();
  });
}

}  // namespace muster::sim
