#include "tests/sim/controller_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "common/base/assert.h"
#include "controller/core/dump.h"
#include "controller/core/journal_end/lost_end.h"
#include "controller/journal/codec.h"
#include "tests/sim/agent_model.h"
#include "tests/sim/event_text.h"
#include "tests/sim/world.h"

namespace muster::sim {
namespace {

std::set<NodeName> nodes_of(const std::vector<journal::Row>& rows) {
  std::set<NodeName> nodes;
  for (const journal::Row& row : rows) {
    if (const auto* registered = std::get_if<core::NodeRegistered>(&row.event.body))
      nodes.insert(registered->node);
  }
  return nodes;
}

}  // namespace

ControllerModel::ControllerModel(World& world)
    : Actor(world.timeline), world_(world), boot_origin_(-world.rng.between(10, 10'000) * kSecond) {
  limits_.archive_after = Duration(world.scenario.archive_after);
  limits_.start_timeout = std::chrono::seconds(world.rng.one_in(2) ? 20 : 13);
  limits_.hear_first = std::chrono::seconds(3);
  limits_.hear_after_loss = std::chrono::seconds(6);
  // So few that ports are given again.
  limits_.port_last = limits_.port_first + (world.rng.one_in(6) ? 5 : 0);
}

Now ControllerModel::clocks() const {
  const Time now = world_.timeline.now();
  return {.wall = WallTime(Duration(kWallStart + now + wall_offset_)),
          .boot = BootTime(Duration(now - boot_origin_))};
}

std::string ControllerModel::why(const core::JobRecord& job) const {
  return fmt::format(
      "{}", fmt::join(core::explain(state_.ledger, state_.presence, job, clocks(), limits_), "; "));
}

// --- an incarnation ------------------------------------------------------------------------------

void ControllerModel::launch() {
  if (alive()) return;
  begin_incarnation();
  listening_ = batch_running_ = woken_ = false;
  behind_.reset();
  inbox_.clear();
  turned_ = {};
  replies_.clear();
  reads_.clear();
  streams_.clear();
  spoken_for_.clear();
  crash_point_ = CrashPoint::None;
  horizon_ = core::Horizon({});
  replay();
  peers_ = core::Peers(kHeartbeatInterval);
  peers_.set_start(journal_.last());
  batch_running_ = true;  // The epoch is a batch of its own, before any agent is admitted.
  turned_ = core::first_turn(state_,
                             {.now = clocks(),
                              .new_cluster = ClusterId("sim"),
                              .version = "0.1.0",
                              .lost = journal_.lost(),
                              .lineage_id = fmt::format("at-{}", world_.timeline.now())},
                             limits_, *this);
  reads_.emplace_back([this] {
    listening_ = true;
    state_.presence.listening_since = clocks().boot;
    world_.say([&] {
      return fmt::format("controller listens, generation {}, epoch {}",
                         state_.ledger.lineage.generation, state_.ledger.epoch.value);
    });
    wake();
  });
  begin_sync();
}

void ControllerModel::replay() {
  state_ = core::State();
  if (world_.rng.one_in(2)) journal_.prune();
  for (const journal::Row& row : journal_.rows()) {
    if (world_.mutant == Mutant::ForgetfulReplay &&
        std::holds_alternative<core::FirstStep>(row.event.body))
      continue;
    const auto back = journal::decode(journal::encode(row.event));
    MUSTER_ASSERT(back.has_value(), "the codec reads what it wrote");
    core::apply(state_.ledger, row.index, *back);
  }
  state_.last = journal_.last();
  world_.watch.replayed(state_.ledger);
}

// Checks, at any moment, that the rows on the disk and in flight fold into the ledger in memory.
void ControllerModel::check_replay() {
  core::Ledger again;
  for (const journal::Row& row : journal_.rows()) core::apply(again, row.index, row.event);
  for (const journal::Row& row : journal_.in_flight()) core::apply(again, row.index, row.event);
  // A hint where to begin the search; archived jobs take their hints with them.
  again.port_cursor = state_.ledger.port_cursor;
  const std::string live = core::dump(state_.ledger), replayed = core::dump(again);
  if (live != replayed) world_.watch.replay_differs(live, replayed);
}

void ControllerModel::crash() {
  if (!alive()) return;
  check_replay();
  world_.say([&] { return std::string("controller died"); });
  end_incarnation();
  listening_ = false;
  journal_.drop();
  if (world_.mutant == Mutant::LoseSyncedTail) journal_.lose_last_batch();
  for (auto& [connection, stream] : streams_) world_.network.closed_by_controller(stream.link);
  streams_.clear();
}

// A node that the journal forgets, and that is cut off, cannot be waited for.
bool ControllerModel::runs_nothing(const NodeName& node) const {
  Machine& machine = world_.machine(node);
  const auto parts = state_.ledger.indexes.node_parts.find(node);
  const bool ordered =
      parts != state_.ledger.indexes.node_parts.end() && !parts->second.unswept.empty();
  return !ordered && machine.processes().empty() && !machine.agent().paused() &&
         !world_.network.underway_to(machine);
}

bool ControllerModel::lose_journal_end(JournalLoss loss, std::size_t rows) {
  const DiskJournal::Lost end{
      .most = rows, .may_be_unknown = [this](const NodeName& node) { return runs_nothing(node); }};
  const std::set<NodeName> before = nodes_of(journal_.rows());
  const bool whole = loss == JournalLoss::WholeCopy;
  if (!(whole                          ? journal_.put_back_copy(end)
        : loss == JournalLoss::OldHead ? journal_.lose_end_behind_head(end)
                                       : journal_.lose_end(end)))
    return false;
  if (whole && world_.mutant != Mutant::AcceptWithoutBridge) journal_.accept_unknown_loss(0);
  world_.say([&] {
    return fmt::format("{} row {}",
                       whole ? "a copy of the journal is put back that ends at"
                             : "the journal's end is lost behind",
                       journal_.rows().back().index.value);
  });
  const std::set<NodeName> after = nodes_of(journal_.rows());
  std::ranges::set_difference(before, after,
                              std::inserter(unknown_since_loss_, unknown_since_loss_.end()));
  world_.watch.journal_end_lost(journal_.rows());
  return true;
}

// The controller ends. The person who restored the copy accepts the loss once more.
void ControllerModel::end_behind() {
  world_.storm.controller_died();
  crash();
  journal_.accept_unknown_loss(*std::exchange(behind_, std::nullopt));
}

void ControllerModel::die(CrashPoint where) {
  crash_point_ = CrashPoint::None;
  switch (where) {
    case CrashPoint::None: return;
    case CrashPoint::BeforeSync: world_.coverage.hit(Fault::ControllerCrashBeforeSync); break;
    case CrashPoint::InSync:
      world_.coverage.hit(Fault::ControllerCrashInSync);
      world_.watch.synced(journal_.in_flight());
      journal_.commit();
      break;
    case CrashPoint::AfterSync: world_.coverage.hit(Fault::ControllerCrashAfterSync); break;
  }
  world_.storm.controller_died();
  crash();
}

// --- the batch -----------------------------------------------------------------------------------

void ControllerModel::ask_core(core::Input input, Reply reply, Mutant too_early,
                               std::optional<core::Observation> then) {
  put({.core = {.heard = clocks(),
                .what = core::Asked{.input = std::move(input), .then = std::move(then)}},
       .reply = std::move(reply),
       .too_early = too_early});
}

void ControllerModel::observe(core::Observation observation) {
  put({.core = {.heard = clocks(), .what = std::move(observation)}});
}

void ControllerModel::read(Deed deed) {
  put({.core = {.heard = clocks(), .what = {}}, .read = std::move(deed)});
}

void ControllerModel::put(Item item) {
  inbox_.push_back(std::move(item));
  wake();
}

void ControllerModel::wake() {
  if (batch_running_ || woken_) return;
  woken_ = true;
  Actor::after(world_.rng.skewed(5 * kMicrosecond, 500 * kMicrosecond), [this] {
    woken_ = false;
    if (!batch_running_) run_batch();
  });
}

void ControllerModel::run_batch() {
  batch_running_ = true;
  // Often so few that something is left over.
  const std::size_t most = world_.rng.one_in(4) ? 2 : inbox_.size();
  std::vector<core::TurnItem> items;
  std::vector<Mutant> too_early;
  for (std::size_t i = 0; i < most && !inbox_.empty(); ++i) {
    Item item = std::move(inbox_.front());
    inbox_.pop_front();
    if (item.read) {
      reads_.push_back(std::move(item.read));
      continue;
    }
    if (std::holds_alternative<core::Asked>(item.core.what)) {
      replies_.push_back(std::move(item.reply));
      too_early.push_back(item.too_early);
    }
    items.push_back(std::move(item.core));
  }
  std::optional<BootTime> first_left;
  if (!inbox_.empty()) first_left = inbox_.front().core.heard.boot;
  const Now now = clocks();
  const core::Horizon::Judgement judgement = horizon_.judge(now.boot, first_left);
  if (judgement.late) ++world_.coverage.seen["silence judged later: the controller had stalled"];
  if (first_left) ++world_.coverage.seen["silence judged earlier: items were left over"];
  turned_ = core::turn(state_,
                       {.items = items,
                        .now = now,
                        .limits = limits_,
                        .judge_until = judgement.until,
                        .rounds_max = 32,
                        // So few that turns do go on where earlier ones ended.
                        .placing = {.placements = 2}},
                       *this);
  if (turned_.restless) world_.watch.restless();
  horizon_.set_timer({});
  for (const core::TurnItem& item : items) {
    const auto* observation = std::get_if<core::Observation>(&item.what);
    if (observation == nullptr) continue;
    const auto* heard = std::get_if<core::HeartbeatHeard>(observation);
    if (heard != nullptr && peers_.has_leftovers(*heard))
      read([this, node = heard->node] { send_orders(node, false); });
  }
  for (std::size_t i = 0; i < replies_.size(); ++i) {
    if (too_early[i] == Mutant::None || too_early[i] != world_.mutant || !replies_[i]) continue;
    std::exchange(replies_[i], {})(turned_.answers[i]);
  }
  begin_sync();
}

void ControllerModel::before(const core::Row& row, const core::Ledger& ledger) {
  world_.say([&] { return fmt::format("  [{}] {}", row.index.value, text_of(row.event.body)); });
  world_.watch.accepted(row.event, ledger);
  const auto* registered = std::get_if<core::NodeRegistered>(&row.event.body);
  if (registered != nullptr && unknown_since_loss_.erase(registered->node) > 0)
    ++world_.coverage.seen["a node registered that a loss had taken"];
}

void ControllerModel::after(const core::Row& row, const core::Ledger& ledger) {
  world_.watch.folded(row.event, ledger);
}

void ControllerModel::begin_sync() {
  if (turned_.rows.empty()) return release();
  journal_.begin(turned_.rows);
  if (crash_point_ == CrashPoint::BeforeSync) return die(CrashPoint::BeforeSync);
  if (world_.mutant == Mutant::OrdersBeforeSync && listening_) {
    for (const NodeName& node : core::touched_nodes(turned_.rows, state_.ledger))
      send_orders(node, false);
  }
  Time takes = world_.rng.skewed(100 * kMicrosecond, 6 * kMillisecond);
  if (world_.timeline.now() < slow_until_) {
    takes = world_.rng.between(500 * kMillisecond, 6'000 * kMillisecond);
    if (world_.rng.one_in(4)) takes *= 4;
    world_.coverage.hit(Fault::SlowSync);
  }
  if (crash_point_ == CrashPoint::InSync)
    return Actor::after(takes / 2, [this] { die(CrashPoint::InSync); });
  Actor::after(takes, [this] { synced(); });
}

void ControllerModel::synced() {
  world_.watch.synced(journal_.in_flight());
  journal_.commit();
  for (const journal::Row& row : turned_.rows) {
    if (const auto* archived = std::get_if<core::JobArchived>(&row.event.body))
      journal_.archive(archived->job);
  }
  if (crash_point_ == CrashPoint::AfterSync) return die(CrashPoint::AfterSync);
  release();
}

void ControllerModel::release() {
  const core::Turned turned = std::exchange(turned_, {});
  for (const core::Peers::Ending& ending : peers_.released(turned.rows, state_.ledger))
    end_stream(ending.stream);
  for (const NodeName& node : core::touched_nodes(turned.rows, state_.ledger))
    send_orders(node, false);
  const std::vector<Reply> replies = std::exchange(replies_, {});
  for (std::size_t i = 0; i < replies.size(); ++i) {
    if (replies[i]) replies[i](turned.answers[i]);
  }
  for (const Deed& deed : std::exchange(reads_, {})) {
    deed();
    if (behind_) return end_behind();
  }
  batch_running_ = false;
  if (!inbox_.empty()) wake();
  ++timer_;
  const std::optional<BootTime> next = horizon_.next(turned.wake_at);
  if (!next) return;
  const Time wait = std::max<Time>((*next - clocks().boot).count(), 0) + kMicrosecond;
  horizon_.set_timer(clocks().boot + Duration(wait));
  Actor::after(wait, [this, timer = timer_] {
    if (timer == timer_) wake();
  });
}

// --- clients -------------------------------------------------------------------------------------

void ControllerModel::ask(core::Input input, Reply reply) {
  now([this, input = std::move(input), reply = std::move(reply)]() mutable {
    if (listening_) ask_core(std::move(input), std::move(reply), Mutant::ReplyBeforeSync);
  });
}

}  // namespace muster::sim
