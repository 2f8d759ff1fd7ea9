#include "tests/sim/controller_model.h"

#include <fmt/format.h>

#include "common/base/assert.h"
#include "controller/core/dump.h"
#include "controller/core/journal_end/lost_end.h"
#include "controller/journal/codec.h"
#include "tests/sim/agent_model.h"
#include "tests/sim/event_text.h"
#include "tests/sim/world.h"

namespace muster::sim {

using core::AttemptBroke;
using core::AttemptEnded;
using core::RankExited;

ControllerModel::ControllerModel(World& world)
    : Actor(world.timeline), world_(world), boot_origin_(-world.rng.between(10, 10'000) * kSecond) {
  limits_.archive_after = Duration(world.scenario.archive_after);
  limits_.start_timeout = std::chrono::seconds(20);
  limits_.hear_first = std::chrono::seconds(3);
  if (world.mutant == Mutant::ShortGrace) limits_.grace_margin = std::chrono::seconds(-20);
}

Now ControllerModel::clocks() const {
  const Time now = world_.timeline.now();
  return {.wall = WallTime(Duration(kWallStart + now + wall_offset_)),
          .boot = BootTime(Duration(now - boot_origin_))};
}

std::string ControllerModel::why(const core::JobRecord& job) const {
  return fmt::format("{}",
                     fmt::join(core::explain(ledger_, presence_, job, clocks(), limits_), "; "));
}

// --- an incarnation ------------------------------------------------------------------------------

void ControllerModel::launch() {
  if (alive()) return;
  begin_incarnation();
  listening_ = batch_running_ = woken_ = behind_ = false;
  inbox_.clear();
  release_.clear();
  reads_.clear();
  batch_.clear();
  synced_.clear();
  streams_.clear();
  spoken_for_.clear();
  crash_point_ = CrashPoint::None;
  presence_ = core::Presence();
  replay();
  peers_ = core::Peers(kHeartbeatInterval);
  peers_.set_start(journal_.last());
  const std::uint64_t lost = journal_.lost().value_or(
      core::rows_unknown(journal_.unknown_losses(),
                         static_cast<std::uint64_t>(world_.timeline.now() / (10 * kMillisecond))));
  batch_running_ = true;  // The epoch is a batch of its own, before any agent is admitted.
  batch_at_ = clocks().wall;
  accept(core::ControllerStarted{.epoch = core::next_epoch(ledger_.epoch, lost),
                                 .cluster = ClusterId("sim"),
                                 .version = "0.1.0"});
  release_.emplace_back([this] {
    listening_ = true;
    presence_.listening_since = clocks().boot;
    world_.say([&] { return fmt::format("controller listens, epoch {}", ledger_.epoch.value); });
  });
  begin_sync(true);
}

void ControllerModel::replay() {
  ledger_ = core::Ledger();
  if (world_.rng.one_in(2)) journal_.prune();
  for (const journal::Row& row : journal_.rows()) {
    if (world_.mutant == Mutant::ForgetfulReplay &&
        std::holds_alternative<core::FirstStep>(row.event.body))
      continue;
    const auto back = journal::decode(journal::encode(row.event));
    MUSTER_ASSERT(back.has_value(), "the codec reads what it wrote");
    fold(ledger_, row.index, *back);
  }
  world_.watch.replayed(ledger_);
}

// Checks, at any moment, that the rows on the disk and in flight fold into the ledger in memory.
void ControllerModel::check_replay() {
  core::Ledger again;
  for (const journal::Row& row : journal_.rows()) fold(again, row.index, row.event);
  for (const journal::Row& row : journal_.in_flight()) fold(again, row.index, row.event);
  // A hint where to begin the search; archived jobs take their hints with them.
  again.port_cursor = ledger_.port_cursor;
  const std::string live = core::dump(ledger_), replayed = core::dump(again);
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

bool ControllerModel::lose_journal_end(std::size_t rows) {
  if (!journal_.lose_end(rows)) return false;
  world_.say([&] {
    return fmt::format("the journal's end is lost behind row {}",
                       journal_.rows().back().index.value);
  });
  world_.watch.journal_end_lost(journal_.rows());
  return true;
}

bool ControllerModel::put_back_copy(std::size_t rows) {
  if (!journal_.put_back_copy(rows)) return false;
  if (world_.mutant != Mutant::AcceptWithoutBridge) journal_.accept_unknown_loss();
  world_.say([&] {
    return fmt::format("a copy of the journal is put back that ends at row {}",
                       journal_.rows().back().index.value);
  });
  world_.watch.journal_end_lost(journal_.rows());
  return true;
}

// The controller ends. The person who restored the copy accepts the loss once more.
void ControllerModel::end_behind() {
  ++world_.coverage.seen["loss accepted once more: an agent had been told more"];
  world_.storm.controller_died();
  crash();
  journal_.accept_unknown_loss();
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

void ControllerModel::put(Deed item) {
  inbox_.push_back(std::move(item));
  wake();
}

void ControllerModel::wake() {
  if (batch_running_ || woken_) return;
  woken_ = true;
  after(world_.rng.skewed(5 * kMicrosecond, 500 * kMicrosecond), [this] {
    woken_ = false;
    if (!batch_running_) run_batch();
  });
}

void ControllerModel::run_batch() {
  batch_running_ = true;
  batch_at_ = clocks().wall;
  const std::vector<Deed> inbox = std::move(inbox_);
  inbox_.clear();
  for (const Deed& item : inbox) item();
  if (placing_goes_on_ && !inbox.empty()) placing_goes_on_->again = true;
  settle();
  begin_sync(!batch_.empty());
}

void ControllerModel::settle() {
  if (world_.mutant != Mutant::None) break_by_mutant();
  // So few that batches do continue where earlier ones ended.
  core::PlacingTurn turn{.placements = 2, .cursor = placing_goes_on_};
  for (int round = 0; round < 32; ++round) {
    const core::Proposal proposal = core::propose(ledger_, presence_, clocks(), limits_, turn);
    placing_goes_on_ = turn.cursor;
    wake_at_ = placing_goes_on_ ? clocks().boot : proposal.wake_at;
    bool news = false;
    for (const core::Input& input : proposal.inputs) {
      if (ignored_by_mutant(input)) continue;
      news = !take(input).events.empty() || news;
    }
    if (!news) return;
  }
  world_.watch.restless();
}

core::Decision ControllerModel::take(const core::Input& input) {
  core::Decision decision = core::decide(ledger_, presence_, input, clocks(), limits_);
  if (world_.mutant == Mutant::DeafToEnds) forget_what_ends_mean(decision);
  if (const auto* submitted = std::get_if<core::SubmitJob>(&input);
      world_.mutant == Mutant::HalfAChain && submitted != nullptr && !submitted->behind.empty() &&
      !decision.events.empty()) {
    std::erase_if(decision.events, [&](const core::EventBody& body) {
      const auto* event = std::get_if<core::JobSubmitted>(&body);
      return event != nullptr && event->job == submitted->behind.back().job;
    });
  }
  for (const core::EventBody& body : decision.events) accept(body);
  return decision;
}

void ControllerModel::accept(core::EventBody body) {
  if (auto* placed = std::get_if<core::AttemptPlaced>(&body);
      placed != nullptr && world_.mutant == Mutant::ReuseNumbers) {
    const core::AttemptRecord* last = ledger_.jobs.at(placed->job).current();
    placed->attempt = AttemptNo(last == nullptr ? 1 : last->number.value + 1);
  }
  break_starts(body);
  core::Event event{.at = batch_at_, .body = std::move(body)};
  const JournalIndex index(journal_.last().value + batch_.size() + 1);
  world_.say([&] { return fmt::format("  [{}] {}", index.value, text_of(event.body)); });
  world_.watch.accepted(event, ledger_);
  fold(ledger_, index, event);
  world_.watch.folded(event, ledger_);
  batch_.push_back({.index = index, .event = std::move(event)});
}

void ControllerModel::fold(core::Ledger& ledger, JournalIndex index,
                           const core::Event& event) const {
  core::apply(ledger, index, event);
  if (world_.mutant == Mutant::LossMeansNothing) {
    for (auto& [id, job] : ledger.jobs) job.attempts_lost = 0;
  }
  if (world_.mutant != Mutant::ForgetHolders) return;
  const auto* ended = std::get_if<AttemptEnded>(&event.body);
  if (ended == nullptr) return;
  for (auto& [node, holders] : ledger.device_holders) {
    std::erase_if(holders, [&](const auto& holder) {
      return holder.second == core::AttemptKey{ended->job, ended->attempt};
    });
  }
}

void ControllerModel::begin_sync(bool more) {
  if (more) journal_.begin(batch_);
  if (!more) return release();
  if (crash_point_ == CrashPoint::BeforeSync) return die(CrashPoint::BeforeSync);
  if (world_.mutant == Mutant::OrdersBeforeSync && listening_) {
    for (const NodeName& node : core::touched_nodes(batch_, ledger_)) send_orders(node, false);
  }
  Time takes = world_.rng.skewed(100 * kMicrosecond, 6 * kMillisecond);
  if (world_.timeline.now() < slow_until_) {
    takes = world_.rng.between(500 * kMillisecond, 6'000 * kMillisecond);
    world_.coverage.hit(Fault::SlowSync);
  }
  if (crash_point_ == CrashPoint::InSync)
    return after(takes / 2, [this] { die(CrashPoint::InSync); });
  after(takes, [this] { synced(); });
}

void ControllerModel::synced() {
  world_.watch.synced(journal_.in_flight());
  journal_.commit();
  for (const journal::Row& row : batch_) {
    if (const auto* archived = std::get_if<core::JobArchived>(&row.event.body))
      journal_.archive(archived->job);
  }
  synced_ = std::move(batch_);
  batch_.clear();
  if (crash_point_ == CrashPoint::AfterSync) return die(CrashPoint::AfterSync);
  release();
}

void ControllerModel::release() {
  const std::vector<journal::Row> rows = std::move(synced_);
  synced_.clear();
  for (const core::Peers::Ending& ending : peers_.released(rows, ledger_))
    end_stream(ending.stream);
  for (const NodeName& node : core::touched_nodes(rows, ledger_)) send_orders(node, false);
  for (std::vector<Deed>* leaving : {&release_, &reads_}) {
    for (const Deed& deed : std::exchange(*leaving, {})) {
      deed();
      if (behind_) return end_behind();
    }
  }
  batch_running_ = false;
  if (!inbox_.empty()) wake();
  ++timer_;
  if (!wake_at_) return;
  const Time wait = std::max<Time>((*wake_at_ - clocks().boot).count(), 0) + kMicrosecond;
  after(wait, [this, timer = timer_] {
    if (timer == timer_) wake();
  });
}

// --- clients -------------------------------------------------------------------------------------

void ControllerModel::ask(core::Input input, Reply reply) {
  now([this, input = std::move(input), reply = std::move(reply)]() mutable {
    if (!listening_) return;
    put([this, input = std::move(input), reply = std::move(reply)]() mutable {
      if (world_.mutant == Mutant::DoubleSubmit && std::holds_alternative<core::SubmitJob>(input)) {
        const JobId id = std::get<core::SubmitJob>(input).job;
        std::get<core::SubmitJob>(input).request_id = RequestId();
        std::get<core::SubmitJob>(input).spec.mutable_name()->append("~" + id.str());
      }
      const core::Decision decision = take(input);
      if (world_.mutant == Mutant::ReplyBeforeSync) return reply(decision);
      release_.emplace_back([reply = std::move(reply), decision] { reply(decision); });
    });
  });
}

}  // namespace muster::sim
