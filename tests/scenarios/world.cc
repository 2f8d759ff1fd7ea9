#include "tests/scenarios/world.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <sstream>
#include <stdexcept>

#include "common/base/version.h"
#include "controller/core/dump.h"
#include "controller/core/model/rebuild.h"
#include "controller/journal/live_rows.h"
#include "tests/scenarios/describe.h"

namespace muster::scenarios {
namespace {

constexpr std::size_t kRoundsMax = 100;
constexpr Duration kHeartbeat = std::chrono::seconds(1);
constexpr BootTime kStart{std::chrono::hours(1)};
constexpr WallTime kWallStart{std::chrono::seconds(1'800'000'000)};

// The ledger from a journal that has moved archived jobs away, and has dropped the rows that have
// no effect any more.
core::Ledger compacted_replay(const std::vector<core::Row>& journal) {
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
    if (!line.starts_with("port cursor") && !line.starts_with("ledger")) kept += line + "\n";
  }
  return kept;
}

}  // namespace

World::World() : peers_(kHeartbeat) {
  now_ = Now{.wall = kWallStart, .boot = kStart};
  stamped_at_ = now_.boot;
  limits.archive_after = std::chrono::hours(1);
  start(0);
  trace_.clear();
}

void World::start(std::uint64_t lost) {
  state_.presence.listening_since = now_.boot;
  core::FirstTurn first{.now = now_, .new_cluster = ClusterId("c1"), .version = "test"};
  if (lost > 0) first.lost = core::LostEnd{.rows = lost};
  first.lineage_id = "lineage";
  const core::Turned turned = core::first_turn(state_, first, limits, *this);
  journal_.insert(journal_.end(), turned.rows.begin(), turned.rows.end());
}

void World::stamp() {
  if (now_.boot == stamped_at_) return;
  stamped_at_ = now_.boot;
  say(fmt::format("{:.1f}s", std::chrono::duration<double>(now_.boot - kStart).count()));
}

void World::before(const core::Row& row, const core::Ledger& ledger) {
  const core::JobPhase* phase = phase_of(ledger, job_of(row.event.body));
  phase_before_ = phase == nullptr ? std::nullopt : std::optional(*phase);
}

void World::after(const core::Row& row, const core::Ledger& ledger) {
  stamp();
  std::string line = "  " + describe(ledger, row.event.body);
  const core::JobPhase* phase = phase_of(ledger, job_of(row.event.body));
  if (phase != nullptr && phase_before_ != *phase)
    line += fmt::format(" -> {}", core::to_string(*phase));
  say(line);
}

core::Turned World::turn(std::span<const core::TurnItem> items, bool judge) {
  core::Turned turned = core::turn(state_,
                                   {.items = items,
                                    .now = now_,
                                    .limits = limits,
                                    .judge_until = judge ? std::optional(now_.boot) : std::nullopt,
                                    .rounds_max = kRoundsMax},
                                   *this);
  journal_.insert(journal_.end(), turned.rows.begin(), turned.rows.end());
  if (turned.restless) throw std::runtime_error("propose() does not come to an end");
  if (!turned.moot.empty())
    throw std::runtime_error("propose() asked for something that decide() does not accept: " +
                             turned.moot.front());
  if (const std::string wrong = core::wrongly_derived(ledger()); !wrong.empty())
    throw std::runtime_error("an index is not what the ledger's facts give: " + wrong);
  return turned;
}

core::Answer World::put(const core::Input& input, std::optional<core::Observation> then) {
  const core::TurnItem item{.heard = now_,
                            .what = core::Asked{.input = input, .then = std::move(then)}};
  core::Answer answer = turn({&item, 1}, false).answers.front();
  if (answer.refusal)
    say(fmt::format("  refused ({}): {}", to_string(answer.refusal->code),
                    answer.refusal->message));
  settle();
  return answer;
}

void World::see(const core::Observation& observation) {
  const core::TurnItem item{.heard = now_, .what = observation};
  turn({&item, 1}, false);
  settle();
  const auto* heartbeat = std::get_if<core::HeartbeatHeard>(&observation);
  if (heartbeat != nullptr && peers_.has_leftovers(*heartbeat) && !in_batch_) tell_orders();
}

void World::end_batch() {
  in_batch_ = false;
  settle();
  tell_orders();
}

void World::settle() {
  if (in_batch_) return;
  do {
    wake_at_ = turn({}, true).wake_at;
  } while (state_.placing_goes_on);
  if (wake_at_ && *wake_at_ <= now_.boot)
    throw std::runtime_error("propose() wants to be asked again at once, and has nothing to say");
  if (checked_ == journal_.size()) return;
  end_streams(std::span(journal_).subspan(checked_));
  checked_ = journal_.size();
  tell_orders();
  check_replay();
}

core::Peers::View World::view() const {
  static const std::string kNotPaused;
  return {.ledger = state_.ledger,
          .presence = state_.presence,
          .paused = kNotPaused,
          .last = state_.last};
}

// Of nodes that were declared dead.
void World::end_streams(std::span<const core::Row> rows) {
  for (const core::Peers::Ending& ending : peers_.released(rows, state_.ledger)) {
    const auto& [node, connection] = ending.stream;
    core::observe(state_.presence, state_.ledger,
                  core::Disconnected{.node = node, .connection = connection}, now_);
    Agent& agent = agents.at(node.str());
    agent.connection = ConnectionId();
    agent.heartbeats = false;
  }
}

// A run that the node has is not ordered again, and an order that is repeated is not printed again.
void World::tell_orders() {
  for (const auto& [name, agent] : agents) {
    const auto orders = peers_.orders(NodeName(name), view(), false);
    if (!orders) continue;
    std::map<core::AttemptKey, core::Want> wanted;
    for (const v1::Order& order : orders->standing.orders())
      wanted[{JobId(order.job_id()), AttemptNo(order.attempt())}] =
          order.has_stop() ? core::Want::Stop : core::Want::Forget;
    for (const core::AttemptKey& key : orders->running) wanted[key] = core::Want::Run;
    auto& sent = orders_[name];
    for (const auto& [key, want] : wanted) {
      const auto before = sent.find(key);
      if (before != sent.end() && before->second == want) continue;
      const bool is_sent = want != core::Want::Run ||
                           std::ranges::any_of(orders->runs, [&](const core::Assignment& one) {
                             return core::AttemptKey(one.job, one.attempt) == key;
                           });
      if (!is_sent) continue;
      stamp();
      say(fmt::format("  order {}: {} {}", name, describe(want), describe(state_.ledger, key)));
    }
    sent = wanted;
    std::set<std::string> uploads;
    for (const v1::UploadOrder& order : orders->standing.uploads()) {
      const core::AttemptKey key{JobId(order.job_id()), AttemptNo(order.attempt())};
      uploads.insert(fmt::format("upload {}{} of {}", order.seal() ? "the mark of " : "",
                                 order.logs()       ? "the logs"
                                 : order.has_step() ? fmt::format("step {}", order.step())
                                                    : "everything",
                                 describe(state_.ledger, key)));
    }
    for (const std::string& upload : uploads) {
      if (uploads_[name].contains(upload)) continue;
      stamp();
      say(fmt::format("  order {}: {}", name, upload));
    }
    uploads_[name] = std::move(uploads);
  }
}

void World::check_replay() const {
  core::Ledger again;
  for (const auto& [index, event] : journal_) core::apply(again, index, event);
  if (core::dump(again) != core::dump(state_.ledger))
    throw std::runtime_error("a replay gives another ledger:\n" + core::dump(again) +
                             "\ninstead of\n" + core::dump(state_.ledger));
  const core::Ledger compacted = compacted_replay(journal_);
  if (without_hints(core::dump(compacted)) != without_hints(core::dump(state_.ledger)))
    throw std::runtime_error("a replay without the archived jobs gives another ledger");
  if (const std::string wrong = core::wrongly_derived(compacted); !wrong.empty())
    throw std::runtime_error(
        "after a replay without the archived jobs, an index is not what the "
        "facts give: " +
        wrong);
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
        core::observe(state_.presence, state_.ledger,
                      core::HeartbeatHeard{.node = NodeName(name), .connection = agent.connection},
                      now_);
        core::observe(state_.presence, state_.ledger,
                      core::HeartbeatAcked{.node = NodeName(name), .connection = agent.connection},
                      now_);
      }
    }
    settle();
  }
  stamp();
}

// An agent keeps these, unless it was ordered to forget them in a lost end of the journal.
std::vector<core::AttemptKey> World::kept_for_their_logs(const NodeName& node,
                                                         const Agent& agent) const {
  std::vector<core::AttemptKey> kept;
  const auto parts = state_.ledger.indexes.node_parts.find(node);
  if (parts == state_.ledger.indexes.node_parts.end()) return kept;
  for (const core::AttemptKey& run : parts->second.open) {
    const core::JobRecord& job = state_.ledger.jobs.at(run.first);
    const core::NodePart& part = *job.attempt(run.second)->part(node);
    if (part.swept && job.attempts_lost == 0 && part.placed.instance.str() == agent.instance &&
        part.placed.boot_id.str() == agent.boot)
      kept.push_back(run);
  }
  return kept;
}

void World::hello(const std::string& node) {
  Agent& agent = agents.at(node);
  const core::Peers::Stream stream{.node = NodeName(node),
                                   .connection = ConnectionId(next_connection_++)};
  v1::Hello hello;
  hello.set_protocol_min(kProtocolMin);
  hello.set_protocol_max(kProtocolMax);
  hello.set_version("test");
  hello.set_node(node);
  hello.set_instance(agent.instance);
  hello.set_boot_id(agent.boot);
  hello.set_incarnation("one");
  hello.mutable_uptime();
  *hello.mutable_inventory() = agent.inventory;
  for (const v1::PresentAttempt& present : agent.present) *hello.add_present() = present;
  for (const core::AttemptKey& run : kept_for_their_logs(NodeName(node), agent)) {
    v1::PresentAttempt& present = *hello.add_present();
    present.set_job_id(run.first.str());
    present.set_attempt(run.second.value);
    present.set_swept(true);
  }
  core::Peers::Judgement judged =
      peers_.hello(hello, stream.connection, "its machine", now_, view());
  if (judged.refusal)
    return say(fmt::format("  refused ({}): {}", to_string(judged.refusal->code),
                           judged.refusal->message));
  if (judged.replaced) {
    const auto& [name, connection] = judged.replaced->stream;
    core::observe(state_.presence, state_.ledger,
                  core::Disconnected{.node = name, .connection = connection}, now_);
  }
  const core::Answer answer = put(judged.input, std::move(judged.then));
  if (peers_.registered(stream, answer.refusal, view()).refusal) return peers_.gone(stream);
  agent.connection = stream.connection;
  agent.heartbeats = true;
  if (!in_batch_) tell_orders();
}

void World::hang_up(const std::string& node) {
  Agent& agent = agents.at(node);
  peers_.gone({.node = NodeName(node), .connection = agent.connection});
  see(core::Disconnected{.node = NodeName(node), .connection = agent.connection});
  agent.connection = ConnectionId();
  agent.heartbeats = false;
}

void World::restart(std::size_t lost) {
  journal_.resize(journal_.size() - std::min(lost, journal_.size()));
  core::Ledger again;
  for (const auto& [index, event] : journal_) core::apply(again, index, event);
  const bool equal = core::dump(again) == core::dump(state_.ledger);
  say(fmt::format("  replayed {} events: {} ledger", journal_.size(),
                  equal      ? "the same"
                  : lost > 0 ? "an older"
                             : "ANOTHER"));
  state_ = core::State{
      .ledger = std::move(again), .presence = {}, .last = JournalIndex(journal_.size())};
  peers_ = core::Peers(kHeartbeat);
  peers_.set_start(state_.last);
  checked_ = journal_.size();
  start(lost);
  settle();
  for (auto& [name, agent] : agents) {
    if (agent.heartbeats) hello(name);
  }
}

std::string World::take_trace() { return std::exchange(trace_, {}); }

}  // namespace muster::scenarios
