#include "tests/scenarios/world.h"

#include <fmt/format.h>

#include <set>
#include <sstream>
#include <stdexcept>

#include "controller/core/dump.h"
#include "controller/core/journal_end/lost_end.h"
#include "controller/journal/live_rows.h"
#include "tests/scenarios/describe.h"

namespace muster::scenarios {
namespace {

constexpr int kRoundsMax = 100;
constexpr Duration kHeartbeat = std::chrono::seconds(1);
constexpr BootTime kStart{std::chrono::hours(1)};
constexpr WallTime kWallStart{std::chrono::seconds(1'800'000'000)};

// The ledger from a journal that has moved archived jobs away, and has dropped the rows that have
// no effect any more.
core::Ledger compacted_replay(const std::vector<std::pair<JournalIndex, core::Event>>& journal) {
  journal::LiveRows live;
  std::set<JournalIndex> gone;
  for (const auto& [index, event] : journal) {
    live.add(index, event);
    const auto* archived = std::get_if<core::JobArchived>(&event.body);
    if (archived == nullptr) continue;
    gone.insert(live.of_job(archived->job).begin(), live.of_job(archived->job).end());
    live.moved(archived->job);
  }
  for (const JournalIndex index : live.superseded()) gone.insert(index);
  core::Ledger ledger;
  for (const auto& [index, event] : journal) {
    if (!gone.contains(index)) core::apply(ledger, index, event);
  }
  return ledger;
}

// Removes the two hints that need not survive the archive: where the next port search starts, and
// the Forget orders of jobs that were archived in the meantime.
std::string without_hints(const std::string& dump) {
  std::istringstream lines(dump);
  std::string kept, line;
  while (std::getline(lines, line)) {
    if (!line.starts_with("port cursor") && !line.starts_with("orders") &&
        !line.starts_with("ledger"))
      kept += line + "\n";
  }
  return kept;
}

}  // namespace

World::World() {
  now_ = Now{.wall = kWallStart, .boot = kStart};
  stamped_at_ = now_.boot;
  presence_.listening_since = now_.boot;
  limits.archive_after = std::chrono::hours(1);
  accept({.events = {core::ControllerStarted{
              .epoch = Epoch(1), .cluster = ClusterId("c1"), .version = "test"}}});
  trace_.clear();
}

void World::stamp() {
  if (now_.boot == stamped_at_) return;
  stamped_at_ = now_.boot;
  say(fmt::format("{:.1f}s", std::chrono::duration<double>(now_.boot - kStart).count()));
}

bool World::accept(const core::Decision& decision) {
  for (const core::EventBody& body : decision.events) {
    const JournalIndex index(journal_.size() + 1);
    const core::Event event{.at = now_.wall, .body = body};
    const core::JobPhase* before = phase_of(ledger_, job_of(body));
    const std::optional<core::JobPhase> from =
        before == nullptr ? std::nullopt : std::optional(*before);
    core::apply(ledger_, index, event);
    journal_.emplace_back(index, event);
    stamp();
    std::string line = "  " + describe(ledger_, body);
    const core::JobPhase* after = phase_of(ledger_, job_of(body));
    if (after != nullptr && from != *after) line += fmt::format(" -> {}", core::to_string(*after));
    say(line);
  }
  return !decision.events.empty();
}

core::Decision World::put(const core::Input& input) {
  const core::Decision decision = core::decide(ledger_, presence_, input, now_, limits);
  if (decision.refusal)
    say(fmt::format("  refused ({}): {}", to_string(decision.refusal->code),
                    decision.refusal->message));
  accept(decision);
  settle();
  return decision;
}

void World::see(const core::Observation& observation) {
  core::observe(presence_, ledger_, observation, now_);
  settle();
}

void World::end_batch() {
  in_batch_ = false;
  settle();
}

void World::settle() {
  if (in_batch_) return;
  for (int round = 0;; ++round) {
    if (round == kRoundsMax) throw std::runtime_error("propose() does not come to an end");
    const core::Proposal proposal = core::propose(ledger_, presence_, now_, limits);
    wake_at_ = proposal.wake_at;
    if (proposal.inputs.empty()) break;
    for (const core::Input& input : proposal.inputs) {
      const core::Decision decision = core::decide(ledger_, presence_, input, now_, limits);
      if (decision.refusal || !accept(decision))
        throw std::runtime_error("propose() asked for something that decide() does not accept");
    }
  }
  if (wake_at_ && *wake_at_ <= now_.boot)
    throw std::runtime_error("propose() wants to be asked again at once, and has nothing to say");
  if (checked_ == journal_.size()) return;
  checked_ = journal_.size();
  tell_orders();
  check_replay();
}

void World::tell_orders() {
  for (const auto& [name, agent] : agents) {
    std::map<core::AttemptKey, core::Want> wanted;
    for (const core::Assignment& one : core::desired(ledger_, NodeName(name)))
      wanted[{one.job, one.attempt}] = one.want;
    auto& sent = orders_[name];
    for (const auto& [key, want] : wanted) {
      const auto before = sent.find(key);
      if (before != sent.end() && before->second == want) continue;
      stamp();
      say(fmt::format("  order {}: {} {}", name, describe(want), describe(ledger_, key)));
    }
    sent = wanted;
  }
}

void World::check_replay() const {
  core::Ledger again;
  for (const auto& [index, event] : journal_) core::apply(again, index, event);
  if (core::dump(again) != core::dump(ledger_))
    throw std::runtime_error("a replay gives another ledger:\n" + core::dump(again) +
                             "\ninstead of\n" + core::dump(ledger_));
  if (without_hints(core::dump(compacted_replay(journal_))) != without_hints(core::dump(ledger_))) {
    throw std::runtime_error("a replay without the archived jobs gives another ledger");
  }
}

void World::advance(Duration by) {
  const BootTime end = now_.boot + by;
  while (now_.boot < end) {
    const BootTime heartbeat = kStart + ((now_.boot - kStart) / kHeartbeat + 1) * kHeartbeat;
    BootTime next = std::min(end, heartbeat);
    if (wake_at_ && *wake_at_ < next) next = *wake_at_;
    now_.wall += next - now_.boot;
    now_.boot = next;
    if (next == heartbeat) {
      for (auto& [name, agent] : agents) {
        if (!agent.heartbeats) continue;
        core::observe(presence_, ledger_,
                      core::HeartbeatHeard{.node = NodeName(name), .connection = agent.connection},
                      now_);
        core::observe(presence_, ledger_,
                      core::HeartbeatAcked{.node = NodeName(name), .connection = agent.connection},
                      now_);
      }
    }
    settle();
  }
  stamp();
}

void World::hello(const std::string& node) {
  Agent& agent = agents.at(node);
  const core::Decision decision = put(core::RegisterNode{.node = NodeName(node),
                                                         .instance = InstanceId(agent.instance),
                                                         .boot_id = BootId(agent.boot),
                                                         .inventory = agent.inventory,
                                                         .version = "test"});
  if (decision.refusal) return;
  agent.connection = ConnectionId(next_connection_++);
  agent.heartbeats = true;
  see(core::Connected{.node = NodeName(node),
                      .connection = agent.connection,
                      .instance = InstanceId(agent.instance),
                      .present = agent.present,
                      .boot_id = BootId(agent.boot)});
}

void World::hang_up(const std::string& node) {
  Agent& agent = agents.at(node);
  see(core::Disconnected{.node = NodeName(node), .connection = agent.connection});
  agent.connection = ConnectionId();
  agent.heartbeats = false;
}

void World::restart(std::size_t lost) {
  journal_.resize(journal_.size() - std::min(lost, journal_.size()));
  core::Ledger again;
  for (const auto& [index, event] : journal_) core::apply(again, index, event);
  const bool equal = core::dump(again) == core::dump(ledger_);
  say(fmt::format("  replayed {} events: {} ledger", journal_.size(),
                  equal      ? "the same"
                  : lost > 0 ? "an older"
                             : "ANOTHER"));
  ledger_ = std::move(again);
  presence_ = core::Presence{};
  presence_.listening_since = now_.boot;
  accept({.events = {core::ControllerStarted{.epoch = core::next_epoch(ledger_.epoch, lost),
                                             .cluster = ledger_.cluster,
                                             .version = "test"}}});
  settle();
  for (auto& [name, agent] : agents) {
    if (agent.heartbeats) hello(name);
  }
}

std::string World::take_trace() { return std::exchange(trace_, {}); }

}  // namespace muster::scenarios
