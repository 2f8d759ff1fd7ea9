#include "controller/core/turn.h"

#include <algorithm>
#include <chrono>

#include "common/base/assert.h"
#include "controller/core/journal_end/lost_end.h"

namespace muster::core {
namespace {

class Turning {
 public:
  Turning(State& state, Now now, const Limits& limits, TurnWatcher& watcher)
      : state_(state), now_(now), limits_(limits), watcher_(watcher) {}

  void put(EventBody body) {
    state_.last = JournalIndex(state_.last.value + 1);
    const Row& row = turned_.rows.emplace_back(
        Row{.index = state_.last, .event = {.at = now_.wall, .body = std::move(body)}});
    watcher_.before(row, state_.ledger);
    apply(state_.ledger, row.index, row.event);
    note_times(row.event.body);
    watcher_.after(row, state_.ledger);
  }

  Answer accept(const Input& input, Now heard) {
    Decision decision = decide(state_.ledger, state_.presence, input, heard, limits_);
    Answer answer{.refusal = std::move(decision.refusal),
                  .job = std::move(decision.job),
                  .repeated = decision.repeated,
                  .rows = decision.events.size()};
    for (EventBody& body : decision.events) put(std::move(body));
    return answer;
  }

  void take(const TurnItem& item, std::string_view paused) {
    if (const auto* observation = std::get_if<Observation>(&item.what))
      return observe(state_.presence, state_.ledger, *observation, item.heard);
    const auto& asked = std::get<Asked>(item.what);
    Answer answer = paused.empty() ? accept(asked.input, item.heard) : refused(paused);
    if (asked.then && !answer.refusal)
      observe(state_.presence, state_.ledger, *asked.then, item.heard);
    turned_.answers.push_back(std::move(answer));
  }

  // `news`: something else than heartbeats has arrived.
  void propose_all(const TurnInput& input, bool news) {
    // By both clocks: what is measured by the wall clock is a deadline, too.
    const Now judged{.wall = now_.wall - (now_.boot - *input.judge_until),
                     .boot = *input.judge_until};
    PlacingTurn placing = input.placing;
    placing.cursor = state_.placing_goes_on;
    if (placing.cursor && news) placing.cursor->again = true;
    for (std::size_t round = 1;; ++round) {
      const Proposal proposal = propose(state_.ledger, state_.presence, judged, limits_, placing);
      turned_.wake_at = proposal.wake_at;
      const std::size_t before = turned_.rows.size();
      for (const Input& proposed : proposal.inputs) {
        const Answer answer = accept(proposed, judged);
        if (answer.rows == 0)
          turned_.moot.push_back(answer.refusal ? answer.refusal->message : "it is known already");
      }
      if (turned_.rows.size() == before) break;
      turned_.restless = round == input.rounds_max;
      if (turned_.restless) break;
    }
    state_.placing_goes_on = placing.cursor;
    // All others that wait come first.
    if (turned_.restless || placing.cursor) turned_.wake_at = now_.boot;
  }

  Turned finish() { return std::move(turned_); }

 private:
  void note_times(const EventBody& body) {
    Presence& presence = state_.presence;
    if (const auto* placed = std::get_if<AttemptPlaced>(&body)) {
      presence.placed_at[{placed->job, placed->attempt}] = now_.boot;
      presence.queued_again_at.erase(placed->job);
    }
    if (const auto* ended = std::get_if<AttemptEnded>(&body)) {
      presence.placed_at.erase({ended->job, ended->attempt});
      if (!ended->job_ends) presence.queued_again_at[ended->job] = now_.boot;
    }
    if (const auto* completed = std::get_if<AttemptCompleted>(&body))
      presence.placed_at.erase({completed->job, completed->attempt});
    if (const auto* ended = std::get_if<JobEnded>(&body))
      presence.queued_again_at.erase(ended->job);
  }
  static Answer refused(std::string_view why) {
    return {.refusal = Error{.code = ErrorCode::DataLoss, .message = std::string(why)}, .job = {}};
  }

  State& state_;
  const Now now_;
  const Limits& limits_;
  TurnWatcher& watcher_;
  Turned turned_;
};

}  // namespace

bool is_heartbeat(const TurnItem& item) {
  const auto* observation = std::get_if<Observation>(&item.what);
  return observation != nullptr && (std::holds_alternative<HeartbeatHeard>(*observation) ||
                                    std::holds_alternative<HeartbeatAcked>(*observation));
}

Turned turn(State& state, const TurnInput& input, TurnWatcher& watcher) {
  Turning turning(state, input.now, input.limits, watcher);
  bool news = false;
  for (const TurnItem& item : input.items) {
    turning.take(item, input.paused);
    news = news || !is_heartbeat(item);
  }
  if (input.judge_until) turning.propose_all(input, news);
  return turning.finish();
}

Turned first_turn(State& state, const FirstTurn& input, const Limits& limits,
                  TurnWatcher& watcher) {
  Turning turning(state, input.now, limits, watcher);
  if (input.lost) {
    MUSTER_ASSERT(!input.lineage_id.empty(), "a lineage without an id");
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(
        std::max(input.now.wall.time_since_epoch(), Duration::zero()));
    turning.put(end_lost(state.ledger.lineage, *input.lost, input.lineage_id,
                         static_cast<std::uint64_t>(seconds.count())));
  }
  turning.put(ControllerStarted{
      .epoch = Epoch(state.ledger.epoch.value + 1),
      .cluster = state.ledger.cluster.empty() ? input.new_cluster : state.ledger.cluster,
      .version = input.version});
  for (const auto& [id, why] : input.unreadable) {
    const auto job = state.ledger.jobs.find(id);
    if (job == state.ledger.jobs.end() || is_final(job->second.phase)) continue;
    (void)turning.accept(
        CancelJob{.job = id, .reason = "unreadable at the controller's start: " + why}, input.now);
  }
  return turning.finish();
}

}  // namespace muster::core
