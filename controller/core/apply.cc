// Every branch of the fold is total: no branch can refuse, fail, or read anything except its
// arguments. An event that makes no sense is a bug of muster.
#include <fmt/format.h>

#include <algorithm>

#include "common/base/assert.h"
#include "common/engine/model/named_dirs.h"
#include "controller/core/access/fold.h"
#include "controller/core/chains/chains.h"
#include "controller/core/chains/predecessors.h"
#include "controller/core/chains/start_point.h"
#include "controller/core/core.h"
#include "controller/core/journal_end/lost_end.h"
#include "controller/core/model/attempt_inputs.h"
#include "controller/core/model/queue.h"
#include "controller/core/model/spec_view.h"
#include "controller/core/model/text.h"
#include "controller/core/placement/table_hosts.h"
#include "controller/core/recovery/checkpoints.h"

namespace muster::core {
namespace {

JobPhase phase_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::Succeeded: return JobPhase::Succeeded;
    case Outcome::Failed: return JobPhase::Failed;
    case Outcome::Cancelled: return JobPhase::Cancelled;
  }
  return JobPhase::Failed;
}

class Folder {
 public:
  Folder(Ledger& ledger, JournalIndex index, WallTime at)
      : ledger_(ledger), indexes_(ledger.indexes), index_(index), at_(at) {}

  void operator()(const ControllerStarted& event) {
    ledger_.epoch = event.epoch;
    ledger_.cluster = event.cluster;
    ledger_.version = event.version;
  }

  void operator()(const JournalEndLost& event) {
    ledger_.lineage = event.lineage;
    for (auto& [id, job] : ledger_.jobs) {
      job.attempts_lost = static_cast<std::uint32_t>(std::min<std::uint64_t>(
          std::uint64_t{job.attempts_lost} + event.attempts_skipped, kAttemptReportedMax));
    }
    // It may have come back in the lost time, and run something since.
    for (auto& [name, node] : ledger_.nodes) node.dead = false;
    indexes_.dead_nodes.clear();
  }

  // Changes this node's record only: a replay may lack registrations between the first and the
  // last. What operators have said of the node stays.
  void operator()(const NodeRegistered& event) {
    NodeRecord& node = ledger_.nodes[event.node];
    node = NodeRecord{.name = event.node,
                      .instance = event.instance,
                      .boot_id = event.boot_id,
                      .inventory = event.inventory,
                      .version = event.version,
                      .dead = false,
                      .registered_at = at_,
                      .drain = std::move(node.drain),
                      .labels = std::move(node.labels)};
    indexes_.dead_nodes.erase(event.node);
  }

  void operator()(const NodeDeclaredDead& event) {
    const auto node = ledger_.nodes.find(event.node);
    if (node == ledger_.nodes.end()) return;
    node->second.dead = true;
    indexes_.dead_nodes.insert(event.node);
  }

  void operator()(const AccessKind auto& event) { fold_access(ledger_.access, at_, event); }

  void operator()(const SecretSet& event) {
    ledger_.secrets[event.key] = {.item = event.item, .set_at = at_, .actor = event.actor};
  }

  void operator()(const SecretRemoved& event) { ledger_.secrets.erase(event.key); }

  void operator()(const StoreSet& event) {
    ledger_.stores[event.key] = {.profile = event.profile, .set_at = at_, .actor = event.actor};
  }

  void operator()(const StoreRemoved& event) { ledger_.stores.erase(event.key); }

  void operator()(const NodeDrained& event) {
    if (const auto node = ledger_.nodes.find(event.node); node != ledger_.nodes.end())
      node->second.drain = event;
  }

  void operator()(const NodeUndrained& event) {
    if (const auto node = ledger_.nodes.find(event.node); node != ledger_.nodes.end())
      node->second.drain.reset();
  }

  void operator()(const NodeLabelled& event) {
    if (const auto node = ledger_.nodes.find(event.node); node != ledger_.nodes.end())
      node->second.labels = event.labels;
  }

  void operator()(const NodeRemoved& event) {
    ledger_.nodes.erase(event.node);
    indexes_.dead_nodes.erase(event.node);
  }

  void operator()(const NodeRenamed& event) {
    auto renamed = ledger_.nodes.extract(event.node);
    indexes_.dead_nodes.erase(event.node);
    if (renamed.empty() || ledger_.nodes.contains(event.new_name)) return;
    NodeRecord& node = renamed.mapped();
    node.name = renamed.key() = event.new_name;
    node.instance = InstanceId();
    node.boot_id = BootId();
    node.dead = false;
    if (node.drain) node.drain->node = event.new_name;
    ledger_.nodes.insert(std::move(renamed));
  }

  void operator()(const JobSubmitted& event) {
    JobRecord job;
    job.id = event.job;
    job.request_id = event.request_id;
    job.spec = event.spec;
    job.resolved = event.resolved;
    job.spec_hash = event.spec_hash;
    job.owner = event.owner;
    job.own_table = read_own_table(event.spec);
    job.start = known_start(event.resolved);
    job.submitted_at = at_;
    job.last_index = index_;
    if (!event.request_id.empty()) indexes_.request_ids[event.request_id] = event.job;
    indexes_.live_names[event.spec.name()] = event.job;
    join_chain(ledger_, event.job, JobId(event.resolved.stage().chain()),
               event.spec.stage().chain_name());
    const auto [place, inserted] = ledger_.jobs.emplace(event.job, std::move(job));
    MUSTER_ASSERT(inserted, "a job id was used twice");
    if (!engine::named_dirs(event.spec).save.empty()) indexes_.savers.insert(event.job);
    await_predecessors(ledger_, place->second);
    join_queue(ledger_, place->second, QueueEnd::Back);
  }

  void operator()(const CancelRequested& event) {
    JobRecord& job = job_of(event.job);
    job.cancel_requested = true;
    job.cancel_reason = event.reason;
    job.cancelled_by = event.by;
  }

  void operator()(const PredecessorSucceeded& event) {
    JobRecord& job = job_of(event.job);
    if (event.checkpoint) job.start = event.checkpoint;
    if (event.owned) job.owned[event.predecessor] = *event.owned;
    predecessor_succeeded(ledger_, job, event.predecessor);
  }

  void operator()(const AttemptPlaced& event) {
    JobRecord& job = job_of(event.job);
    MUSTER_ASSERT(event.attempt.value > 0 &&
                      (job.current() == nullptr || job.current()->number < event.attempt),
                  "attempts have rising numbers");
    job.attempts_lost = 0;
    move(job, JobStep::Placed);
    leave_queue(ledger_, job);
    indexes_.live.insert(job.id);
    AttemptRecord attempt;
    attempt.number = event.attempt;
    attempt.master_port = event.master_port;
    attempt.resume = event.resume;
    attempt.table_sha256 = event.table_sha256;
    attempt.saved = event.saved;
    attempt.secrets = event.secrets;
    attempt.inputs = event.inputs;
    attempt.output = event.output;
    attempt.logs_output = event.logs_output;
    attempt.placed_at = at_;
    for (const PlacedNode& placed : event.nodes) {
      hold_devices(event, placed);
      NodePart part{.placed = placed,
                    .uploads = event.output && placed.rank_count > 0 &&
                               (attempt.parts.empty() || fetches_files(job.spec)),
                    .uploads_logs = event.logs_output && placed.rank_count > 0};
      if (part.uploads) ++attempt.uploaders;
      attempt.part_index[placed.node] = attempt.parts.size();
      if (part.idle()) {
        part.started = part.logs_collected = true;
        ++attempt.parts_started;
      } else {
        NodeParts& orders = indexes_.node_parts[placed.node];
        orders.unswept.insert({event.job, event.attempt});
        orders.open.insert({event.job, event.attempt});
        ++job.open_parts;
      }
      attempt.parts.push_back(std::move(part));
    }
    const std::string& address = event.nodes.front().address;
    indexes_.ports_reserved[{address, event.master_port}] = {event.job, event.attempt};
    ledger_.port_cursor[address] = event.master_port;
    job.attempts.push_back(std::move(attempt));
  }

  void operator()(const NodeStarted& event) {
    JobRecord& job = job_of(event.job);
    AttemptRecord& attempt = attempt_of(job, event.attempt);
    NodePart& part = part_of(attempt, event.node);
    if (!part.started) ++attempt.parts_started;
    part.started = true;
    if (part.uploads) take_uploads_over(job, attempt, part);
    part.pids = event.pids;
    part.resolved = event.resolved;
    if (!is_current(job, attempt) || attempt.state != AttemptState::Live ||
        attempt.parts_started != attempt.parts.size())
      return;
    for (const v1::InputState& input : event.resolved.inputs())
      if (all_agree(attempt, event.node, input))
        job.input_pins[input.name()] = {.contents_sha256 = input.contents_sha256()};
    if (job.phase == JobPhase::Launching) {
      attempt.running_at = at_;
      move(job, JobStep::AllNodesUp);
    }
  }

  // This does not sweep the part. The agent's NodeSwept follows, after the agent has searched for
  // processes of an earlier incarnation.
  void operator()(const NodeStartFailed& event) {
    JobRecord& job = job_of(event.job);
    AttemptRecord& attempt = attempt_of(job, event.attempt);
    part_of(attempt, event.node).start_failed = event;
    if (event.why == StartFailure::InputsChanged && is_current(job, attempt)) list_anew(job);
  }

  void operator()(const RankExited& event) {
    JobRecord& job = job_of(event.job);
    AttemptRecord& attempt = attempt_of(job, event.attempt);
    if (!part_of(attempt, event.node).exits.emplace(event.rank, event).second) return;
    ++attempt.ranks_exited;
    if (attempt.ranks_exited == attempt.world_size() && !is_over(attempt.state))
      attempt.exits_known_at = at_;
    if (ended_well(event)) ++attempt.ranks_well;
    if (is_current(job, attempt) && attempt.state == AttemptState::Live &&
        attempt.ranks_well == attempt.world_size()) {
      if (!attempt.running_at) attempt.running_at = at_;
      move(job, JobStep::AllRanksDone);
    }
  }

  void operator()(const AuxiliaryExited& event) {
    JobRecord& job = job_of(event.job);
    part_of(attempt_of(job, event.attempt), event.node).auxiliaries.emplace(event.name, event);
  }

  void operator()(const NodeSwept& event) {
    JobRecord& job = job_of(event.job);
    AttemptRecord& attempt = attempt_of(job, event.attempt);
    NodePart& part = part_of(attempt, event.node);
    if (part.swept) return;
    if (!event.logs_follow && !part.ran()) end_uploads(attempt, part);  // it ran nothing
    sweep(job, attempt, part, event.why);
    const bool only_idle_left = std::ranges::all_of(
        attempt.parts, [](const NodePart& other) { return other.swept || other.idle(); });
    if (!attempt.all_swept() && only_idle_left) {
      for (NodePart& other : attempt.parts) {
        if (!other.swept) sweep(job, attempt, other, std::nullopt);
      }
    }
    settle_attempt(job, attempt);
  }

  void operator()(const FirstStep& event) {
    AttemptRecord& attempt = attempt_of(job_of(event.job), event.attempt);
    if (attempt.first_step) return;
    attempt.first_step = event.step;
    attempt.first_step_at = at_;
  }

  void operator()(const NodeClockSkewed& event) {
    part_of(attempt_of(job_of(event.job), event.attempt), event.node).clock_ahead = event.ahead;
  }

  void operator()(const ScriptLaunched& event) {
    JobRecord& job = job_of(event.job);
    AttemptRecord& attempt = attempt_of(job, event.attempt);
    if (attempt.script_launch) return;
    attempt.script_launch = event;
    indexes_.savers.insert(event.job);
    if (!event.weights_alone) return;
    for (CheckpointRecord& known : job.checkpoints) {
      if (known.attempt == event.attempt) known.quarantined = known.weights_alone = true;
    }
  }

  void operator()(const CheckpointCompleted& event) {
    JobRecord& job = job_of(event.job);
    const AttemptRecord* writer = job.attempt(event.attempt);
    const bool weights_alone =
        writer != nullptr && writer->script_launch && writer->script_launch->weights_alone;
    job.checkpoints.push_back(CheckpointRecord{.attempt = event.attempt,
                                               .step = event.step,
                                               .path = event.path,
                                               .bytes = event.bytes,
                                               .shards = event.shards,
                                               .at = at_,
                                               .quarantined = weights_alone,
                                               .weights_alone = weights_alone});
    if (AttemptRecord* attempt = job.attempt(event.attempt))
      attempt->best_saved = std::max(attempt->best_saved, event.step);
    if (job.checkpoints.size() > kCheckpointsMax)
      job.checkpoints.erase(first_to_drop(job.checkpoints));
  }

  void operator()(const CheckpointQuarantined& event) {
    JobRecord& job = job_of(event.job);
    const auto known = std::ranges::find_if(job.checkpoints, [&](const CheckpointRecord& one) {
      return one.attempt == event.attempt && one.step == event.step;
    });
    MUSTER_ASSERT(known != job.checkpoints.end(),
                  "a checkpoint is quarantined that its job does not have");
    known->quarantined = true;
  }

  void operator()(const AttemptBroke& event) {
    JobRecord& job = job_of(event.job);
    AttemptRecord& attempt = attempt_of(job, event.attempt);
    move(job, attempt, AttemptStep::Broke);
    attempt.broke_at = at_;
    attempt.broke_cause = event.cause;
    attempt.differing_input = event.differing_input;
    if (!event.differing_input.empty()) list_anew(job);
    attempt.fault_time = event.fault_time;
    attempt.detected_at = event.detected_at;
    attempt.cancelled = job.cancel_requested;
    attempt.drained = event.drained;
    move(job, JobStep::Broke);
  }

  void operator()(const AttemptEnded& event) {
    JobRecord& job = job_of(event.job);
    AttemptRecord& attempt = attempt_of(job, event.attempt);
    move(job, attempt, AttemptStep::TornDown);
    attempt.verdict = event.verdict;
    attempt.charged = event.charged;
    attempt.fence = event.fence;
    end_attempt(job, attempt, event.best_step);
    if (event.charged)
      job.attempts_without_progress =
          event.best_step > step_to_beat(job) ? 0 : job.attempts_without_progress + 1;
    job.best_step = std::max(job.best_step, event.best_step);
    if (event.job_ends) return;
    move(job, JobStep::TornDown);
    indexes_.live.erase(job.id);
    join_queue(ledger_, job, QueueEnd::Front);
  }

  void operator()(const AttemptNoted& event) {
    attempt_of(job_of(event.job), event.attempt).notes.emplace(event.note, event);
  }

  void operator()(const CaughtUp& event) {
    attempt_of(job_of(event.job), event.attempt).caught_up_at = at_;
  }

  void operator()(const AttemptCompleted& event) {
    JobRecord& job = job_of(event.job);
    AttemptRecord& attempt = attempt_of(job, event.attempt);
    move(job, attempt, AttemptStep::AllDone);
    end_attempt(job, attempt, event.best_step);
    job.best_step = std::max(job.best_step, event.best_step);
  }

  void operator()(const JobEnded& event) {
    JobRecord& job = job_of(event.job);
    const bool queued = job.phase == JobPhase::Queued;
    switch (event.outcome) {
      case Outcome::Succeeded: move(job, JobStep::Finished); break;
      case Outcome::Failed: move(job, JobStep::GaveUp); break;
      case Outcome::Cancelled:
        move(job, !queued                ? JobStep::StoppedForCancel
                  : job.cancel_requested ? JobStep::CancelAsked
                                         : JobStep::PredecessorLost);
        break;
    }
    if (queued) leave_queue(ledger_, job);
    await_nobody(ledger_, job);
    ended_or_gone(ledger_, job.id);
    job.ended_at = at_;
    job.verdict = event.verdict;
    indexes_.live.erase(job.id);
    indexes_.live_names.erase(job.spec.name());
    note_archivable(job);
  }

  void operator()(const LogsCollected& event) {
    JobRecord& job = job_of(event.job);
    NodePart& part = part_of(attempt_of(job, event.attempt), event.node);
    if (part.logs_collected) return;
    part.logs_collected = true;
    if (part.closed()) close(job, event.attempt, part);
  }

  void operator()(const OutputsUploaded& event) {
    JobRecord& job = job_of(event.job);
    AttemptRecord& attempt = attempt_of(job, event.attempt);
    NodePart& part = part_of(attempt, event.node);
    if (event.logs) return end_logs(job, part, event);
    if (event.seal) return seal(job, attempt, event);
    if (event.step) return note_sent(attempt, part, event);
    if (!part.uploads) return;
    note_removed(job, event);
    end_uploads(attempt, part);
    part.outputs = event;
    if (part.closed()) close(job, event.attempt, part);
  }

  void operator()(const JobArchived& event) {
    if (const auto found = ledger_.jobs.find(event.job); found != ledger_.jobs.end()) {
      drop(found->second);
      await_nobody(ledger_, found->second);
      ledger_.jobs.erase(found);
      ended_or_gone(ledger_, event.job);
    }
    ledger_.tombstones[event.job] = Tombstone{.id = event.job,
                                              .name = event.name,
                                              .request_id = event.request_id,
                                              .phase = phase_of(event.outcome),
                                              .ended_at = event.ended_at,
                                              .chain = event.chain,
                                              .chain_name = event.chain_name,
                                              .saved = event.saved,
                                              .owner = event.owner};
    indexes_.savers.erase(event.job);
    if (!event.saved.empty()) indexes_.savers.insert(event.job);
    join_chain(ledger_, event.job, event.chain, event.chain_name);
    indexes_.tombstone_ages.insert({event.ended_at, event.job});
    if (!event.request_id.empty()) indexes_.request_ids[event.request_id] = event.job;
  }

  void operator()(const TombstoneDropped& event) {
    const auto found = ledger_.tombstones.find(event.job);
    if (found == ledger_.tombstones.end()) return;
    indexes_.tombstone_ages.erase({found->second.ended_at, event.job});
    if (!found->second.request_id.empty()) indexes_.request_ids.erase(found->second.request_id);
    leave_chain(ledger_, event.job, found->second.chain, found->second.chain_name);
    indexes_.savers.erase(event.job);
    ledger_.tombstones.erase(found);
  }

 private:
  // The checkpoint that was accepted first. It is never the newest one by step that is not
  // quarantined, because the job resumes from that one.
  static std::vector<CheckpointRecord>::iterator first_to_drop(
      std::vector<CheckpointRecord>& checkpoints) {
    auto newest = checkpoints.end();
    for (auto one = checkpoints.begin(); one != checkpoints.end(); ++one) {
      if (!one->quarantined &&
          (newest == checkpoints.end() ||
           std::pair(one->step, one->attempt) > std::pair(newest->step, newest->attempt)))
        newest = one;
    }
    return newest == checkpoints.begin() ? std::next(newest) : checkpoints.begin();
  }

  JobRecord& job_of(const JobId& id) {
    const auto found = ledger_.jobs.find(id);
    MUSTER_ASSERT(found != ledger_.jobs.end(),
                  "an event names a job that the ledger does not have");
    found->second.last_index = index_;
    return found->second;
  }
  static AttemptRecord& attempt_of(JobRecord& job, AttemptNo number) {
    AttemptRecord* attempt = job.attempt(number);
    MUSTER_ASSERT(attempt != nullptr, "an event names an attempt that its job does not have");
    return *attempt;
  }
  static NodePart& part_of(AttemptRecord& attempt, const NodeName& node) {
    NodePart* part = attempt.part(node);
    MUSTER_ASSERT(part != nullptr, "an event names a node that the attempt was not placed on");
    return *part;
  }
  static bool is_current(const JobRecord& job, const AttemptRecord& attempt) {
    return &attempt == job.current();
  }

  static void move(JobRecord& job, JobStep step) {
    const std::optional<JobPhase> to = next_phase(job.phase, step);
    if (!to)
      MUSTER_ASSERT(false, fmt::format("job '{}' is {}: there is no arrow {} from there",
                                       job.id.str(), to_string(job.phase), to_string(step))
                               .c_str());
    job.phase = *to;
  }

  static void move(const JobRecord& job, AttemptRecord& attempt, AttemptStep step) {
    const std::optional<AttemptState> to = next_state(attempt.state, step);
    MUSTER_ASSERT(to && is_current(job, attempt), "only the current attempt moves, by the table");
    attempt.state = *to;
  }

  void hold_devices(const AttemptPlaced& event, const PlacedNode& placed) {
    for (const std::uint32_t device : placed.devices) {
      const bool was_free = indexes_.device_holders[placed.node]
                                .emplace(device, AttemptKey{event.job, event.attempt})
                                .second;
      MUSTER_ASSERT(was_free, "a device was given to a second attempt before the first was swept");
    }
  }

  void release_devices(const AttemptKey& key, const PlacedNode& placed) {
    const auto found = indexes_.device_holders.find(placed.node);
    if (found == indexes_.device_holders.end()) return;
    for (const std::uint32_t device : placed.devices) {
      const auto holder = found->second.find(device);
      if (holder != found->second.end() && holder->second == key) found->second.erase(holder);
    }
    if (found->second.empty()) indexes_.device_holders.erase(found);
  }

  void sweep(JobRecord& job, AttemptRecord& attempt, NodePart& part, std::optional<SweptWhy> why) {
    const AttemptKey key{job.id, attempt.number};
    part.swept = true;
    part.swept_why = why;
    ++attempt.parts_swept;
    if (is_over(attempt.state)) release_devices(key, part.placed);
    if (part.idle()) return;
    indexes_.node_parts[part.placed.node].unswept.erase(key);
    if (part.closed()) close(job, attempt.number, part);
  }

  // All of its inputs: what made one of them differ may have changed others.
  static void list_anew(JobRecord& job) {
    for (auto& [name, pin] : job.input_pins) pin.anew = true;
  }

  static void end_uploads(AttemptRecord& attempt, NodePart& part) {
    attempt.uploader_gone |= part.uploads;
    part.uploads = false;
  }

  void end_logs(JobRecord& job, NodePart& part, const OutputsUploaded& event) {
    if (!part.uploads_logs) return;
    part.uploads_logs = false;
    part.logs_end = event;
    if (part.closed()) close(job, event.attempt, part);
  }

  static void note_sent(AttemptRecord& attempt, NodePart& part, const OutputsUploaded& event) {
    if (*event.step > part.sent_step) {
      part.sent_step = *event.step;
      part.sent_sums = event.sums_sha256;
    }
    if (*event.step > attempt.sending.step) attempt.sending = {.step = *event.step};
    if (*event.step < attempt.sending.step) return;
    ++attempt.sending.nodes;
    attempt.sending.failed |= !event.problem.empty();
  }

  static void seal(JobRecord& job, AttemptRecord& attempt, const OutputsUploaded& event) {
    attempt.sealed_step = std::max(attempt.sealed_step, event.step.value_or(-1));
    const auto known = std::ranges::find_if(job.checkpoints, [&](const CheckpointRecord& one) {
      return one.attempt == attempt.number && one.step == event.step;
    });
    if (known != job.checkpoints.end() && event.problem.empty()) known->uploaded = true;
    note_removed(job, event);
  }

  static void note_removed(JobRecord& job, const OutputsUploaded& event) {
    for (CheckpointRecord& one : job.checkpoints)
      for (const RemoteCheckpoint& gone : event.removed)
        if (one.attempt == gone.attempt && one.step == gone.step) one.uploaded = false;
  }

  // The earlier attempts have written to the same directory.
  void take_uploads_over(JobRecord& job, const AttemptRecord& attempt, const NodePart& part) {
    for (AttemptRecord& earlier : job.attempts) {
      if (earlier.number >= attempt.number || earlier.parts.empty()) continue;
      NodePart* other =
          fetches_files(job.spec) ? earlier.part(part.placed.node) : &earlier.parts.front();
      if (other == nullptr || !other->uploads) continue;
      end_uploads(earlier, *other);
      if (other->closed()) close(job, earlier.number, *other);
    }
  }

  void close(JobRecord& job, AttemptNo number, NodePart& part) {
    NodeParts& orders = indexes_.node_parts[part.placed.node];
    orders.open.erase({job.id, number});
    part.closed_index = index_;
    orders.closed.insert({index_, {job.id, number}});
    --job.open_parts;
    note_archivable(job);
  }

  void end_attempt(JobRecord& job, AttemptRecord& attempt, std::int64_t best_step) {
    attempt.ended_at = at_;
    attempt.best_step = best_step;
    // An idle part runs nothing. So its devices must not wait for a node that may never return to
    // sweep the part that did run.
    for (NodePart& part : attempt.parts) {
      if (part.idle() && !part.swept) sweep(job, attempt, part, std::nullopt);
    }
    // The devices are released only now, when the job is next in the queue. Otherwise other jobs
    // could take its nodes one by one while the last of them is being swept.
    for (const NodePart& part : attempt.parts) {
      if (part.swept) release_devices({job.id, attempt.number}, part.placed);
    }
    if (!attempt.all_swept()) indexes_.lingering.insert({job.id, attempt.number});
    settle_attempt(job, attempt);
  }

  // The port and the attempt itself are not needed any more once it has ended and nothing of it is
  // left.
  void settle_attempt(const JobRecord& job, const AttemptRecord& attempt) {
    if (!is_over(attempt.state)) return;
    if (attempt.parts.front().swept) release_port(job, attempt);
    if (attempt.all_swept()) indexes_.lingering.erase({job.id, attempt.number});
  }

  void release_port(const JobRecord& job, const AttemptRecord& attempt) {
    const auto owned =
        indexes_.ports_reserved.find({attempt.parts.front().placed.address, attempt.master_port});
    if (owned != indexes_.ports_reserved.end() &&
        owned->second == AttemptKey{job.id, attempt.number})
      indexes_.ports_reserved.erase(owned);
  }

  void note_archivable(const JobRecord& job) {
    if (is_final(job.phase) && job.open_parts == 0)
      indexes_.archivable.insert({*job.ended_at, job.id});
  }

  void drop(const JobRecord& job) {
    if (job.ended_at) indexes_.archivable.erase({*job.ended_at, job.id});
    for (const AttemptRecord& attempt : job.attempts) {
      const AttemptKey key{job.id, attempt.number};
      indexes_.lingering.erase(key);
      release_port(job, attempt);
      for (const NodePart& part : attempt.parts) {
        if (!part.swept) release_devices(key, part.placed);
        const auto orders = indexes_.node_parts.find(part.placed.node);
        if (orders == indexes_.node_parts.end()) continue;
        orders->second.unswept.erase(key);
        orders->second.open.erase(key);
        orders->second.closed.erase({part.closed_index, key});
        if (orders->second.open.empty() && orders->second.closed.empty())
          indexes_.node_parts.erase(orders);
      }
    }
  }

  Ledger& ledger_;
  Indexes& indexes_;
  JournalIndex index_;
  WallTime at_;
};

}  // namespace

void apply(Ledger& ledger, JournalIndex index, const Event& event) {
  ledger.index = index;
  std::visit(Folder(ledger, index, event.at), event.body);
}

}  // namespace muster::core
