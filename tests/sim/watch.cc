#include "tests/sim/watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "controller/core/model/event_fields.h"
#include "controller/core/model/text.h"
#include "controller/journal/codec.h"
#include "tests/sim/world.h"

namespace muster::sim {

void Invariant::broken(std::string text) const { world_.watch.report(name(), std::move(text)); }

Watch::Watch(World& world) : world_(world) {
  for (auto make : {fence_invariants, durable_invariants, truth_invariants, drain_invariants,
                    upload_invariants}) {
    for (auto& one : make(world)) all_.push_back(std::move(one));
  }
}

std::vector<std::string_view> Watch::names() const {
  std::vector<std::string_view> names = {"journal-not-behind", "propose-settles",
                                         "replay-equals-live"};
  for (const auto& one : all_) names.push_back(one->name());
  return names;
}

void Watch::report(std::string_view invariant, std::string text) {
  world_.say([&] { return fmt::format("BROKEN: {}: {}", invariant, text); });
  if (!violation_)
    violation_ = Violation{
        .invariant = std::string(invariant), .text = std::move(text), .at = world_.timeline.now()};
}

void Watch::exec(const Machine& machine, const Process& process) {
  AttemptTruth& truth = book_.attempts[process.run];
  for (const auto& one : all_) one->exec(machine, process);
  if (!truth.first_exec) truth.first_exec = world_.timeline.now();
  truth.execd[process.rank] = process.pid;
  truth.execd_on.emplace(machine.name(), world_.timeline.now());
  world_.say([&] {
    return fmt::format("{}: {} of {} exec'd", machine.name().str(), describe(process),
                       describe(process.run));
  });
}

void Watch::died(const Machine&, const Process& process, std::int32_t code, std::int32_t signal,
                 DeathCause cause) {
  book_.attempts[process.run].deaths[process.rank] =
      Death{.code = code, .signal = signal, .cause = cause};
  ++world_.coverage.seen[fmt::format("rank {}", to_string(cause))];
}

void Watch::stepped(const Machine& machine, const agent::RunKey& run, std::uint32_t rank,
                    std::int64_t step) {
  for (const auto& one : all_) one->stepped(machine, run, rank, step);
}
void Watch::stopping(const Machine& machine, const agent::RunKey& run) {
  for (const auto& one : all_) one->stopping(machine, run);
}
void Watch::sweeping(const Machine& machine, const agent::RunKey& run) {
  for (const auto& one : all_) one->sweeping(machine, run);
}
void Watch::orphaned(const Machine& machine, const agent::RunKey& run, bool had_lease) {
  book_.attempts[run].harmed = true;
  ++world_.coverage.seen[had_lease ? "worker ended by its lease" : "worker found no lease"];
  world_.say([&] {
    return fmt::format("{}: worker of {} is on its own: {}", machine.name().str(), describe(run),
                       had_lease ? "lease over" : "no lease");
  });
}
void Watch::uploading(const Machine& machine, const UploadTask& task) {
  for (const auto& one : all_) one->uploading(machine, task);
}
void Watch::uploaded(const Machine& machine, const UploadTask& task) {
  book_.uploaded[task].insert(machine.name());
}
void Watch::fact_sent(const Machine& machine, const v1::Fact& fact) {
  if (book_.facts.contains(natural_key(machine.name(), fact)))
    world_.coverage.hit(Fault::Duplicate);
  for (const auto& one : all_) one->fact_sent(machine, fact);
}
void Watch::state_replaced(const Machine& machine) {
  for (const auto& one : all_) one->state_replaced(machine);
}

void Watch::orders_taken(const Machine& machine, const v1::Orders& orders, std::uint64_t order) {
  for (const auto& one : all_) one->orders_taken(machine, orders, order);
}

void Watch::accepted(const core::Event& event, const core::Ledger& before) {
  for (const auto& one : all_) one->accepted(event, before);
  phase_before_.reset();
  const JobId* about = core::job_of(event.body);
  if (about == nullptr) return;
  if (const auto job = before.jobs.find(*about); job != before.jobs.end())
    phase_before_.emplace(*about, job->second.phase);
}

void Watch::folded(const core::Event& event, const core::Ledger& after) {
  for (const auto& one : all_) one->folded(event, after);
  if (const auto* ended = std::get_if<core::AttemptEnded>(&event.body)) {
    ++world_.coverage
          .seen[fmt::format("fence: {}", ended->fence.substr(0, ended->fence.find_first_of(":;")))];
  }
  if (std::holds_alternative<core::PredecessorSucceeded>(event.body))
    ++world_.coverage.seen["predecessor succeeded"];
  if (const auto* swept = std::get_if<core::NodeSwept>(&event.body))
    ++world_.coverage.seen[fmt::format("swept: {}", to_string(swept->why))];
  if (!phase_before_) return;
  const auto job = after.jobs.find(phase_before_->first);
  if (job == after.jobs.end() || job->second.phase == phase_before_->second) return;
  if (job->second.attempts_lost > 0 && phase_before_->second == core::JobPhase::Launching) {
    const auto* broke = std::get_if<core::AttemptBroke>(&event.body);
    if (job->second.phase == core::JobPhase::Running)
      ++world_.coverage.seen["a starting attempt went on after a loss"];
    if (broke != nullptr && broke->cause.contains("which was being started"))
      ++world_.coverage.seen["a starting attempt broke after a loss"];
  }
  for (std::size_t i = 0; i < core::kJobMoves.size(); ++i) {
    const core::JobMove& move = core::kJobMoves[i];
    if (move.from != phase_before_->second || move.to != job->second.phase) continue;
    // Two transitions have the same begin and end.
    if (move.on == (job->second.cancel_requested ? core::JobStep::PredecessorLost
                                                 : core::JobStep::CancelAsked))
      continue;
    ++world_.coverage.moves[i];
  }
}

void Watch::synced(const std::vector<journal::Row>& rows) {
  std::vector<core::Event> events;
  for (const journal::Row& row : rows) events.push_back(row.event);
  for (const auto& one : all_) one->synced(rows);
  book_.take(events, world_.timeline.now());
}

void Watch::replayed(const core::Ledger& ledger) {
  for (const auto& one : all_) one->replayed(ledger);
}

void Watch::replied(const RequestId& request, const JobId& job) {
  for (const auto& one : all_) one->replied(request, job);
  book_.replied.emplace(request, job);
}

void Watch::acknowledged(const NodeName& node, const InstanceId& instance, const v1::Fact& fact) {
  for (const auto& one : all_) one->acknowledged(node, instance, fact);
  const std::string key = natural_key(node, fact);
  if (book_.facts.contains(key)) book_.acked.insert(key);
}

void Watch::ordered(const NodeName& node, const v1::Orders& orders) {
  for (const auto& one : all_) one->ordered(node, orders);
}

void Watch::heartbeat_acknowledged(const NodeName& node) {
  book_.last_ack[node] = world_.timeline.now();
}

void Watch::struck(const NodeName& node) { book_.struck[node] = world_.timeline.now(); }

void Watch::finish() {
  for (const auto& one : all_) one->finish();
}

void Watch::journal_end_lost(const std::vector<journal::Row>& left) {
  std::vector<core::Event> events;
  for (const journal::Row& row : left) events.push_back(row.event);
  book_.forget_all_but(events);
}

void Watch::replay_differs(const std::string& live, const std::string& replayed) {
  std::istringstream left(live), right(replayed);
  std::string in_live, in_replay;
  while (true) {
    const bool more_left = static_cast<bool>(std::getline(left, in_live)),
               more_right = static_cast<bool>(std::getline(right, in_replay));
    if (!more_left && !more_right) break;
    if (!more_left) in_live.clear();
    if (!more_right) in_replay.clear();
    if (in_live != in_replay) break;
  }
  report("replay-equals-live",
         fmt::format("the ledger says '{}', its replay '{}'", in_live, in_replay));
}

}  // namespace muster::sim
