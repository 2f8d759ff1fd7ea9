#include <fmt/format.h>

#include "controller/core/core.h"
#include "controller/core/journal_end/lost_end.h"
#include "controller/core/model/spec_view.h"
#include "controller/core/model/text.h"
#include "controller/core/nodes/drain.h"
#include "controller/core/placement/fitting_jobs.h"
#include "controller/core/placement/placing.h"
#include "controller/core/recovery/checkpoints.h"
#include "controller/core/recovery/fence.h"
#include "controller/core/recovery/next_attempt.h"
#include "controller/core/recovery/notes.h"
#include "controller/core/recovery/uploads.h"

namespace muster::core {
namespace {

constexpr std::size_t kQueueConsideredMax = 1'024;  // checked in one call; the next turn continues
constexpr std::size_t kArchiveMax = 64;

class Proposer {
 public:
  Proposer(const Ledger& ledger, const Presence& presence, Now now, const Limits& limits,
           PlacingTurn& turn)
      : ledger_(ledger), presence_(presence), now_(now), limits_(limits), turn_(turn) {}

  Proposal run() && {
    // Checkpoints come first: an attempt that ends accepts no checkpoint any more. A checkpoint
    // that was completed just before the fault saves an interval of steps.
    checkpoints();
    notes();
    for (const JobId& id : ledger_.indexes.live) consider_live(ledger_.jobs.at(id));
    for (const auto& [id, number] : ledger_.indexes.lingering) {
      const JobRecord& job = ledger_.jobs.at(id);
      find_vanished(job, *job.attempt(number));
    }
    for (const JobId& id : ledger_.indexes.unsettled)
      out_.inputs.emplace_back(ProposeSettle{.predecessor = id});
    placements();
    for (const auto& [node, parts] : ledger_.indexes.node_parts) find_lost_parts(node, parts);
    archive();
    return std::move(out_);
  }

 private:
  void consider_live(const JobRecord& job) {
    const AttemptRecord& attempt = *job.current();
    find_vanished(job, attempt);
    if (job.phase == JobPhase::Draining) return consider_draining(job, attempt);
    if (job.phase == JobPhase::Completing) return consider_completing(job, attempt);
    if (const std::string cause = broken(job, attempt); !cause.empty()) {
      out_.inputs.emplace_back(
          ProposeBreak{.job = job.id, .attempt = attempt.number, .cause = cause});
      return;
    }
    const DrainCheck drains = check_drains(ledger_, attempt, now_);
    if (drains.over != nullptr) {
      out_.inputs.emplace_back(ProposeBreak{.job = job.id,
                                            .attempt = attempt.number,
                                            .cause = drain_over_text(*drains.over),
                                            .drained = drains.over->name});
      return;
    }
    sooner(out_.wake_at, drains.check_at);
    const std::int64_t before = std::max<std::int64_t>(step_to_beat(job), 0);
    if (attempt.number.value > 1 && !attempt.caught_up_at) {
      if (const std::int64_t best = best_step_of(presence_, job, attempt); best >= before) {
        out_.inputs.emplace_back(
            ProposeCaughtUp{.job = job.id, .attempt = attempt.number, .step = best});
      }
    }
  }

  void consider_draining(const JobRecord& job, const AttemptRecord& attempt) {
    const FenceCheck fence = check_fence(ledger_, presence_, job, attempt, now_, limits_);
    if (fence.holds || is_over(attempt.state)) {
      out_.inputs.emplace_back(
          ProposeEnd{.job = job.id, .attempt = attempt.number, .fence = fence.rule});
    } else {
      sooner(out_.wake_at, fence.check_at);
    }
  }

  void consider_completing(const JobRecord& job, const AttemptRecord& attempt) {
    const bool completed = attempt.state == AttemptState::Completed;
    const UploadsCheck uploads =
        completed ? check_uploads(ledger_, presence_, job, now_, limits_) : UploadsCheck();
    if (completed ? job.cancel_requested || !uploads.go_on
                  : nothing_runs(ledger_, presence_, job, attempt, now_, limits_)) {
      out_.inputs.emplace_back(ProposeComplete{.job = job.id, .attempt = attempt.number});
      return;
    }
    sooner(out_.wake_at, uploads.check_at);
    if (completed) return find_lost_checkpoints(job);
    for (const NodePart& part : attempt.parts)
      sooner(out_.wake_at, check_part(ledger_, presence_, job, part, now_, limits_).over_at);
  }

  void find_lost_checkpoints(const JobRecord& job) {
    for (const AttemptRecord& attempt : job.attempts) {
      for (const NodePart& part : attempt.parts) {
        if (checkpoint_lost(ledger_, presence_, job, attempt, part, now_, limits_))
          out_.inputs.emplace_back(ProposeCheckpointLost{
              .job = job.id, .attempt = attempt.number, .node = part.placed.node});
      }
    }
  }

  // What no fact of a rank reports: the node itself is gone, has changed, or does not answer the
  // order.
  std::string broken(const JobRecord& job, const AttemptRecord& attempt) {
    for (const NodePart& part : attempt.parts) {
      if (part.idle()) continue;
      const NodeName& name = part.placed.node;
      // The message about a part's end breaks the attempt in the same batch, unless the journal was
      // cut between the two (an accepted loss).
      const bool over = part.swept || part.start_failed;
      if (attempt.ranks_exited > attempt.ranks_well || !part.auxiliaries.empty() ||
          (over && part.exits.size() < part.placed.rank_count))
        return fmt::format("attempt {} had broken when the journal's end was lost",
                           attempt.number.value);
      if (part.swept) continue;
      const PartCheck check = check_part(ledger_, presence_, job, part, now_, limits_);
      if (check.liveness == PartLiveness::Dead)
        return fmt::format("node '{}' was declared dead", name.str());
      if (check.liveness == PartLiveness::GraceOver)
        return fmt::format("node '{}' was silent for longer than the orphan grace", name.str());
      sooner(out_.wake_at, check.over_at);
      if (const auto node = ledger_.nodes.find(name); node != ledger_.nodes.end()) {
        if (node->second.boot_id != part.placed.boot_id)
          return fmt::format("node '{}' was restarted", name.str());
        if (node->second.instance != part.placed.instance)
          return fmt::format("node '{}' came back with another state directory", name.str());
      }
      if (const auto seen = presence_.nodes.find(name); seen != presence_.nodes.end()) {
        const AttemptKey key{job.id, attempt.number};
        if (seen->second.missing.contains(key))
          return fmt::format("node '{}' {}", name.str(), came_back_without(job, attempt.number));
        if (job.attempts_lost > 0 && !part.started && seen->second.heard &&
            !seen->second.present.contains(key))
          return fmt::format(
              "node '{}' does not have attempt {}, which was being started when the journal's end "
              "was lost",
              name.str(), attempt.number.value);
      }
      // This does not apply to a silent node: its ranks may run, and the message about it may be on
      // its way. Silence has its own limit.
      if (!part.started && !part.start_failed && is_connected(presence_, name) &&
          check.liveness == PartLiveness::Reachable) {
        const Duration since = std::min<Duration>(
            since_placed(job, attempt), now_.boot - presence_.nodes.at(name).connected_at);
        const Duration most = limits_.start_timeout + setup_time(job.spec);
        if (since >= most)
          return fmt::format("node '{}' did not start its part within {}", name.str(),
                             age_text(most));
        sooner(out_.wake_at, now_.boot + (most - since));
      }
    }
    return {};
  }

  // The wall clock may jump. It counts only for what an earlier controller placed.
  [[nodiscard]] Duration since_placed(const JobRecord& job, const AttemptRecord& attempt) const {
    const auto placed = presence_.placed_at.find({job.id, attempt.number});
    if (placed != presence_.placed_at.end()) return now_.boot - placed->second;
    return now_.wall - attempt.placed_at;
  }

  // The part was placed on a boot that is over, and the agent is back without the run directory.
  // Nobody else will ever report that it is swept.
  void find_vanished(const JobRecord& job, const AttemptRecord& attempt) {
    for (const NodePart& part : attempt.parts) {
      if (part.swept || part.idle()) continue;
      const auto node = ledger_.nodes.find(part.placed.node);
      if (node == ledger_.nodes.end() || node->second.dead ||
          node->second.boot_id == part.placed.boot_id)
        continue;
      const auto seen = presence_.nodes.find(part.placed.node);
      if (seen == presence_.nodes.end() || seen->second.connection.value == 0 ||
          seen->second.instance != node->second.instance)
        continue;
      if (!seen->second.boot_id.empty() && seen->second.boot_id != node->second.boot_id) continue;
      const bool may_say_so = seen->second.instance == part.placed.instance;
      // The agent will report it itself, and better: with its exits.
      if (may_say_so && seen->second.present.contains({job.id, attempt.number})) continue;
      out_.inputs.emplace_back(
          ProposeSwept{.job = job.id, .attempt = attempt.number, .node = part.placed.node});
    }
  }

  // The part is swept, and its logs and outputs are gone. Nobody else will report that.
  void find_lost_parts(const NodeName& name, const NodeParts& parts) {
    for (const AttemptKey& key : parts.open) {
      if (parts.unswept.contains(key)) continue;
      const NodePart& part = *ledger_.jobs.at(key.first).attempt(key.second)->part(name);
      if (!directory_gone(key, part.placed) && !is_forgotten(presence_, name, key)) continue;
      if (!part.logs_collected)
        out_.inputs.emplace_back(
            ReportLogsCollected{.job = key.first, .attempt = key.second, .node = name});
      if (part.uploads)
        out_.inputs.emplace_back(
            ProposeOutputsLost{.job = key.first, .attempt = key.second, .node = name});
      if (part.uploads_logs)
        out_.inputs.emplace_back(ProposeOutputsLost{
            .job = key.first, .attempt = key.second, .node = name, .logs = true});
    }
  }
  // The node is back with another state directory, or on another boot without this run directory.
  [[nodiscard]] bool directory_gone(const AttemptKey& key, const PlacedNode& placed) const {
    const auto seen = presence_.nodes.find(placed.node);
    const auto node = ledger_.nodes.find(placed.node);
    if (seen == presence_.nodes.end() || node == ledger_.nodes.end() || node->second.dead)
      return false;
    if (seen->second.connection.value == 0 || seen->second.instance != node->second.instance)
      return false;
    if (seen->second.instance != placed.instance) return true;
    return !seen->second.boot_id.empty() && seen->second.boot_id != placed.boot_id &&
           !seen->second.present.contains(key);
  }

  void checkpoints() {
    for (const auto& [id, number, step] : presence_.whole) {
      const auto job = ledger_.jobs.find(id);
      const AttemptRecord* attempt =
          job == ledger_.jobs.end() ? nullptr : job->second.attempt(number);
      if (attempt == nullptr || !accepts_checkpoints(job->second, *attempt) ||
          has_checkpoint(job->second, number, step))
        continue;
      const auto seen = presence_.attempts.find({id, number});
      if (seen == presence_.attempts.end()) continue;
      const auto checkpoint = seen->second.checkpoints.find(step);
      if (checkpoint == seen->second.checkpoints.end() || !checkpoint->second.complete()) continue;
      ProposeCheckpoint proposal{
          .job = id, .attempt = number, .step = step, .path = checkpoint->second.path};
      for (const auto& [name, shard] : checkpoint->second.shards) proposal.bytes += shard.bytes;
      proposal.shards = static_cast<std::uint32_t>(checkpoint->second.shards.size());
      out_.inputs.emplace_back(std::move(proposal));
    }
  }

  void notes() {
    for (const auto& [key, note] : presence_.notes) {
      const auto job = ledger_.jobs.find(note.job);
      const AttemptRecord* attempt =
          job == ledger_.jobs.end() ? nullptr : job->second.attempt(note.attempt);
      if (attempt == nullptr || !takes_note(job->second, *attempt, note.note)) continue;
      out_.inputs.emplace_back(ProposeNote{.note = note});
    }
  }

  // First in, first out: the first job that must wait lets no other job pass, otherwise a wide job
  // would wait for ever. Two kinds of jobs block nobody. A job that the registered nodes could
  // never hold waits for other nodes. A job that only avoids a node, or that backs off, waits for
  // the end of a pause. When the turn is used up, the next one continues from there.
  void placements() {
    QueueCursor cursor = std::exchange(turn_.cursor, std::nullopt).value_or(QueueCursor());
    if (ledger_.indexes.queue.empty()) return;
    if (ledger_.indexes.queue.begin()->first < cursor.front) cursor.behind = INT64_MIN;
    if (cursor.behind == INT64_MIN) cursor.again = false;
    FittingJobs jobs(ledger_, presence_, now_, limits_, cursor.behind, &turn_.checks);
    std::set<JobId> placed;
    if (place_in_turn(jobs, placed, cursor.wake_at)) {
      cursor.behind = jobs.reached();
    } else if (cursor.again) {
      cursor.behind = INT64_MIN;
    } else {
      return sooner(out_.wake_at, cursor.wake_at);
    }
    const auto left = std::ranges::find_if(
        ledger_.indexes.queue, [&](const auto& entry) { return !placed.contains(entry.second); });
    cursor.front = left == ledger_.indexes.queue.end() ? INT64_MAX : left->first;
    turn_.cursor = cursor;
  }

  // True: the turn is used up, and there may be more jobs. `wake_at`: when one of the jobs that
  // were passed may be placed.
  bool place_in_turn(FittingJobs& jobs, std::set<JobId>& placed, std::optional<BootTime>& wake_at) {
    Taken taken;
    for (std::size_t considered = 0;
         considered < kQueueConsideredMax && turn_.placements > 0 && turn_.checks > 0;
         ++considered) {
      const JobRecord* job = jobs.next();
      if (job == nullptr) return jobs.ran_out();
      if (const std::optional<Unheard> unheard =
              unheard_since_start(ledger_, presence_, *job, now_, limits_)) {
        sooner(wake_at, unheard->until);
        // The other jobs wait for the same nodes, at least as long.
        if (job->attempts_lost == 0) return false;
        continue;
      }
      // Cheap, and first: many jobs may wait so, after a fault of what all of them use.
      if (const auto end = backoff_end(*job, presence_, now_, limits_)) {
        sooner(wake_at, end);
        continue;
      }
      PlaceResult result =
          place_around(taken, ledger_, presence_, *job, now_, limits_, &turn_.checks);
      sooner(wake_at, result.retry_at);
      if (result.retry_at) continue;
      if (result.nodes.empty()) return false;
      taken.take(result);
      placed.insert(job->id);
      --turn_.placements;
      out_.inputs.emplace_back(ProposePlacement{.job = job->id,
                                                .attempt = next_attempt(*job, presence_),
                                                .nodes = std::move(result.nodes),
                                                .master_port = result.master_port});
    }
    return true;
  }

  void archive() {
    std::size_t proposed = 0;
    for (const auto& [ended_at, id] : ledger_.indexes.archivable) {
      if (!due(ended_at, limits_.archive_after) || proposed++ == kArchiveMax) break;
      out_.inputs.emplace_back(ProposeArchive{.job = id});
    }
    // The oldest tombstones are dropped: those past their time, and those beyond the maximum
    // number.
    const std::size_t there = ledger_.tombstones.size(),
                      over = there > limits_.tombstones_max ? there - limits_.tombstones_max : 0;
    proposed = 0;
    for (const auto& [ended_at, id] : ledger_.indexes.tombstone_ages) {
      if (proposed >= over && !due(ended_at, limits_.tombstone_keep)) break;
      if (proposed++ == kArchiveMax) break;
      out_.inputs.emplace_back(ProposeDropTombstone{.job = id});
    }
    for (const NodeName& node : ledger_.indexes.dead_nodes) {
      const auto parts = ledger_.indexes.node_parts.find(node);
      if (parts == ledger_.indexes.node_parts.end()) continue;
      for (const auto& [id, number] : parts->second.open) archive_without(ledger_.jobs.at(id));
    }
  }

  // A dead node sends neither facts nor logs. If it returns after all, its worker's own timer has
  // ended its ranks before the job is forgotten and its devices are released.
  void archive_without(const JobRecord& job) {
    if (!is_final(job.phase) ||
        !due(*job.ended_at,
             std::max(limits_.archive_after, outlives_contact(job.spec) + limits_.grace_margin)))
      return;
    for (const AttemptRecord& attempt : job.attempts) {
      for (const NodePart& part : attempt.parts) {
        if (!part.idle() && !part.closed() &&
            !ledger_.indexes.dead_nodes.contains(part.placed.node))
          return;
      }
    }
    if (given_up_.insert(job.id).second) out_.inputs.emplace_back(ProposeArchive{.job = job.id});
  }

  bool due(WallTime since, Duration after) {
    const Duration left = after - (now_.wall - since);
    if (left <= Duration::zero()) return true;
    sooner(out_.wake_at, now_.boot + left);
    return false;
  }

  const Ledger& ledger_;
  const Presence& presence_;
  Now now_;
  const Limits& limits_;
  PlacingTurn& turn_;
  Proposal out_;
  std::set<JobId> given_up_;
};

}  // namespace

Proposal propose(const Ledger& ledger, const Presence& presence, Now now, const Limits& limits,
                 PlacingTurn& turn) {
  return Proposer(ledger, presence, now, limits, turn).run();
}

Proposal propose(const Ledger& ledger, const Presence& presence, Now now, const Limits& limits) {
  PlacingTurn turn;
  return propose(ledger, presence, now, limits, turn);
}

}  // namespace muster::core
