#include <algorithm>
#include <cmath>

#include "common/base/controls.h"
#include "common/base/utf8.h"
#include "common/proto/proto_time.h"
#include "controller/core/core.h"
#include "controller/core/journal_end/lost_end.h"
#include "controller/core/recovery/checkpoints.h"
#include "controller/core/recovery/notes.h"

namespace muster::core {
namespace {

// The newest steps of an attempt that are checked for completeness.
constexpr std::size_t kCheckpointsKept = 4;
// Limits for what is kept of a checkpoint. Some hundred thousand shards fit. A checkpoint with more
// never counts as complete.
constexpr std::size_t kShardsBytes = 16 << 20, kShardCost = 64, kPathBytes = 4'096;
constexpr double kRecentWeight = 0.2;  // of a new sample in the mean step time
constexpr double kStepSecondsMost = 365.0 * 24 * 3600;

void heard_now(NodeSeen& seen, Now now) {
  seen.heard = true;
  seen.last_heard = std::max(seen.last_heard, now.boot);
  seen.last_heard_wall = now.wall;
}

// The oldest step, unless it is the only complete one: the newer steps may never become complete.
std::map<std::int64_t, CheckpointSeen>::iterator checkpoint_to_drop(
    std::map<std::int64_t, CheckpointSeen>& checkpoints) {
  const auto oldest = checkpoints.begin();
  const bool newer_is_complete =
      std::any_of(std::next(oldest), checkpoints.end(),
                  [](const auto& checkpoint) { return checkpoint.second.complete(); });
  return oldest->second.complete() && !newer_is_complete ? std::next(oldest) : oldest;
}

// A finished shard stays finished: nodes see a shared directory through caches of different age,
// and a save directory belongs to one attempt.
void fold_shard(CheckpointSeen& checkpoint, const v1::ShardReading& reading) {
  auto known = checkpoint.shards.find(reading.shard());
  if (known == checkpoint.shards.end()) {
    const std::size_t cost = reading.shard().size() + kShardCost;
    if (reading.path().size() > kPathBytes || checkpoint.names_bytes + cost > kShardsBytes) return;
    checkpoint.names_bytes += cost;
    known = checkpoint.shards.try_emplace(reading.shard()).first;
  }
  ShardSeen& shard = known->second;
  shard.bytes = reading.bytes();
  shard.finished = shard.finished || reading.finished();
  checkpoint.expected = std::max(checkpoint.expected, reading.expected());
  checkpoint.sealed = checkpoint.sealed || reading.sealed();
  if (!reading.path().empty() && reading.path().size() <= kPathBytes)
    checkpoint.path = reading.path();
}

std::string shortened(std::string text, std::size_t most) {
  if (text.size() > most) text.resize(utf8_prefix(std::string_view(text).substr(0, most)));
  return text;
}

constexpr std::size_t kSetupTextBytes = 512;  // a path, and for how long
constexpr std::size_t kDiskTextBytes = 512;   // a path and a reason
constexpr std::size_t kFileBytes = 1024;

Duration lease_left(const v1::AttemptReading& reading) {
  constexpr Duration kMost = std::chrono::hours(24 * 365);
  return std::clamp(to_duration(reading.lease_left()), Duration::zero(), kMost);
}

// Cuts a reading to what an agent of this release sends. Longer data of another agent is not kept.
v1::DeviceReading bounded(v1::DeviceReading reading) {
  constexpr std::size_t kTextBytes = 512, kWordBytes = 128;
  constexpr int kOccupants = 16;
  const auto cut = [](std::string& text, std::size_t most) {
    if (text.size() > most) text.resize(utf8_prefix(std::string_view(text).substr(0, most)));
  };
  reading.DiscardUnknownFields();
  cut(*reading.mutable_health_text(), kTextBytes);
  auto& occupants = *reading.mutable_occupants();
  if (occupants.size() > kOccupants)
    occupants.DeleteSubrange(kOccupants, occupants.size() - kOccupants);
  for (v1::DeviceOccupant& one : occupants) {
    cut(*one.mutable_name(), kWordBytes);
    cut(*one.mutable_user(), kWordBytes);
  }
  return reading;
}

OutputsSeen bounded(const v1::OutputsReading& reading) {
  constexpr std::size_t kTextBytes = 1024, kIdBytes = 64;
  constexpr int kInstances = 4'096;
  OutputsSeen seen{.root = reading.root(),
                   .trouble = without_controls(shortened(reading.trouble(), kTextBytes)),
                   .storage_id = without_controls(shortened(reading.storage_id(), kIdBytes)),
                   .instances = {}};
  for (const std::string& one : reading.instances()) {
    if (std::ssize(seen.instances) == kInstances) break;
    if (one.size() <= kIdBytes) seen.instances.emplace_back(one);
  }
  std::ranges::sort(seen.instances);
  return seen;
}

// Without `outputs`, which is kept apart.
v1::HostReading bounded(v1::HostReading reading) {
  constexpr std::size_t kTextBytes = 512, kWordBytes = 128;
  constexpr int kTools = 16, kAuthorities = 8;
  reading.DiscardUnknownFields();
  reading.clear_outputs();
  for (std::string* text : {reading.mutable_state_dir(), reading.mutable_disk_error(),
                            reading.mutable_cgroup_trouble()})
    *text = without_controls(shortened(std::move(*text), kTextBytes));
  auto& tools = *reading.mutable_missing_tools();
  if (tools.size() > kTools) tools.DeleteSubrange(kTools, tools.size() - kTools);
  for (std::string& one : tools) one = without_controls(shortened(std::move(one), kWordBytes));
  auto& cas = *reading.mutable_trusted_authorities();
  if (cas.size() > kAuthorities) cas.DeleteSubrange(kAuthorities, cas.size() - kAuthorities);
  for (std::string& one : cas) one = without_controls(shortened(std::move(one), kWordBytes));
  std::string& signer = *reading.mutable_certificate_authority();
  signer = without_controls(shortened(std::move(signer), kWordBytes));
  return reading;
}

// A step beyond the total of the same reading is no step, whatever an agent sends.
bool is_step(std::int64_t step, std::int64_t total) { return total <= 0 || step <= total; }

// Uses the age that the agent measured, which no clock error affects. Each reading measures anew,
// so a smaller difference means the same step.
void fold_step_age(AttemptSeen& seen, const v1::AttemptReading& reading, Now now) {
  constexpr Duration kJitter = std::chrono::seconds(1), kMost = std::chrono::hours(24 * 366);
  if (!reading.has_step_age()) return;
  const WallTime at =
      now.wall - std::clamp(to_duration(reading.step_age()), Duration::zero(), kMost);
  if (!reading.samples().empty() || at > seen.last_step_at + kJitter)
    seen.last_step_at = std::max(seen.last_step_at, at);
}

// Takes only readings of the part's own ranks: no other node knows them, and the node knows no
// others.
void fold_progress(AttemptSeen& seen, const v1::AttemptReading& reading, const PlacedNode& placed,
                   Now now) {
  const auto here = [&](std::uint32_t rank) {
    return rank >= placed.first_rank.value && rank - placed.first_rank.value < placed.rank_count;
  };
  std::int64_t total = 0;
  for (const v1::RankReading& from : reading.ranks()) {
    if (!here(from.rank())) continue;
    total = std::max(total, from.total());
    RankSeen& to = seen.ranks[RankNo(from.rank())];
    to.log_bytes = from.log_bytes();
    const std::int64_t step = from.has_step() ? from.step() : -1;
    if (!is_step(step, from.total())) continue;
    const bool finite = std::isfinite(from.loss());
    to = RankSeen{.step = step,
                  .total = from.total(),
                  .loss = finite ? from.loss() : 0,
                  .has_loss = from.has_loss() && finite,
                  .loss_not_finite = from.loss_not_finite() || (from.has_loss() && !finite),
                  .log_bytes = from.log_bytes()};
    seen.best_step = std::max(seen.best_step, step);
  }
  fold_step_age(seen, reading, now);
  for (const v1::StepSample& sample : reading.samples()) {
    if (!here(sample.rank()) || !is_step(sample.step(), total)) continue;
    seen.best_step = std::max(seen.best_step, sample.step());
    // The check also refuses a value that is no number.
    if (!(sample.seconds() > 0 && sample.seconds() <= kStepSecondsMost)) continue;
    seen.step_seconds =
        seen.step_seconds <= 0
            ? sample.seconds()
            : seen.step_seconds + kRecentWeight * (sample.seconds() - seen.step_seconds);
  }
}

class Observer {
 public:
  Observer(Presence& presence, const Ledger& ledger, Now now)
      : presence_(presence), ledger_(ledger), now_(now) {}

  void operator()(const Connected& from) {
    NodeSeen& seen = presence_.nodes[from.node];
    seen.connection = from.connection;
    seen.instance = from.instance;
    seen.boot_id = from.boot_id;
    seen.connected_at = now_.boot;
    // The Welcome answers the Hello. The agent may count its grace from the sending of the Hello,
    // before now.
    seen.last_ack_sent = std::max(seen.last_ack_sent, now_.boot);
    seen.present.clear();
    seen.unknown_runs.clear();
    seen.devices.clear();
    seen.outputs.reset();
    for (const v1::PresentAttempt& present : from.present) {
      const AttemptKey key{JobId(present.job_id()), AttemptNo(present.attempt())};
      seen.present.insert(key);
      if (!present.swept() && !is_known(from.node, key)) seen.unknown_runs.insert(key);
      note_number(key);
    }
    note_absent(from, seen);
    heard_now(seen, now_);
  }

  void operator()(const Disconnected& from) {
    NodeSeen* seen = on_connection(from.node, from.connection);
    if (seen != nullptr) seen->connection = ConnectionId();
  }

  void operator()(const HeartbeatHeard& from) {
    NodeSeen* seen = on_connection(from.node, from.connection);
    if (seen == nullptr) return;
    heard_now(*seen, now_);
    seen->disk_trouble = without_controls(shortened(from.heartbeat.disk_trouble(), kDiskTextBytes));
    if (from.heartbeat.has_host()) seen->host = bounded(from.heartbeat.host());
    if (from.heartbeat.host().has_outputs()) {
      const bool good = seen->outputs && seen->outputs->good();
      seen->outputs = bounded(from.heartbeat.host().outputs());
      if (!good && seen->outputs->good()) seen->outputs_good_since = now_.boot;
    }
    if (from.heartbeat.has_wall()) seen->clock_ahead = to_wall(from.heartbeat.wall()) - now_.wall;
    for (const v1::AttemptReading& reading : from.heartbeat.readings())
      fold_reading(from.node, seen->instance, reading);
    if (!from.heartbeat.devices().empty()) fold_devices(from.node, *seen, from.heartbeat);
    prune();
  }

  void operator()(const HeartbeatAcked& from) {
    NodeSeen* seen = on_connection(from.node, from.connection);
    if (seen != nullptr) seen->last_ack_sent = now_.boot;
  }

  void operator()(const SweptHeard& from) {
    NodeSeen* seen = on_connection(from.node, from.connection);
    if (seen != nullptr) seen->unknown_runs.erase({from.job, from.attempt});
  }

 private:
  [[nodiscard]] bool is_known(const NodeName& node, const AttemptKey& key) const {
    // A run of an archived job is unknown too: its processes use devices that nobody reserves any
    // more.
    const auto job = ledger_.jobs.find(key.first);
    const AttemptRecord* attempt =
        job == ledger_.jobs.end() ? nullptr : job->second.attempt(key.second);
    return attempt != nullptr && attempt->part(node) != nullptr;
  }

  // Swept or not: the directory, the number, and whatever was saved under it exist.
  void note_number(const AttemptKey& key) {
    const auto job = ledger_.jobs.find(key.first);
    if (job == ledger_.jobs.end() || is_final(job->second.phase)) return;
    const std::uint32_t last =
        job->second.attempts.empty() ? 0 : job->second.attempts.back().number.value;
    if (key.second.value <= last || key.second.value > kAttemptReportedMax) return;
    AttemptNo& reported = presence_.numbers_reported[key.first];
    reported = std::max(reported, key.second);
  }

  // A run directory is durable before its start is reported. An agent forgets only runs that it was
  // ordered to forget, after they were swept and their logs were at the controller. So if a swept
  // part waits for its logs, and the node does not have it, the journal's end was lost, or the
  // node's state directory was put back from an older copy. No logs will come.
  void note_absent(const Connected& from, NodeSeen& seen) const {
    seen.forgotten.clear();
    seen.missing.clear();
    const auto parts = ledger_.indexes.node_parts.find(from.node);
    if (parts == ledger_.indexes.node_parts.end()) return;
    for (const AttemptKey& key : parts->second.open) {
      const JobRecord& job = ledger_.jobs.at(key.first);
      const NodePart& part = *job.attempt(key.second)->part(from.node);
      const bool same_instance_and_boot =
          part.placed.instance == from.instance && part.placed.boot_id == from.boot_id;
      if (!same_instance_and_boot || seen.present.contains(key)) continue;
      if (part.swept) {
        seen.forgotten.insert(key);
      } else if (part.was_there()) {
        seen.missing.insert(key);
      }
    }
  }

  // A message from a connection that another one has replaced is outdated.
  NodeSeen* on_connection(const NodeName& node, ConnectionId connection) {
    const auto found = presence_.nodes.find(node);
    return found == presence_.nodes.end() || found->second.connection != connection
               ? nullptr
               : &found->second;
  }

  // All devices come in one heartbeat. Readings of a device that the node never announced are
  // ignored.
  void fold_devices(const NodeName& name, NodeSeen& seen, const v1::Heartbeat& heartbeat) const {
    const auto node = ledger_.nodes.find(name);
    if (node == ledger_.nodes.end()) return;
    std::set<std::uint32_t> announced;
    for (const v1::Device& device : node->second.inventory.devices()) announced.insert(device.id());
    seen.devices.clear();
    for (const v1::DeviceReading& reading : heartbeat.devices()) {
      if (announced.contains(reading.id())) seen.devices[reading.id()] = bounded(reading);
    }
  }

  // Takes only readings of the state directory that the placement pinned. A machine that has
  // replaced another one under its name has not run the other's part. Facts are judged the same
  // way.
  void fold_reading(const NodeName& node, const InstanceId& instance,
                    const v1::AttemptReading& reading) {
    const JobId id(reading.job_id());
    const auto job = ledger_.jobs.find(id);
    if (job == ledger_.jobs.end()) return;
    const AttemptRecord* attempt = job->second.attempt(AttemptNo(reading.attempt()));
    const NodePart* part = attempt == nullptr ? nullptr : attempt->part(node);
    if (part == nullptr || part->placed.instance != instance ||
        !accepts_checkpoints(job->second, *attempt))
      return;
    AttemptSeen& seen = presence_.attempts[{id, attempt->number}];
    fold_progress(seen, reading, part->placed, now_);
    fold_notes(node, job->second, *attempt, reading);
    if (reading.setting_up() || !reading.start_step().empty()) {
      seen.starts[node] = {
          .setting_up = reading.setting_up(),
          .step = without_controls(shortened(reading.start_step(), kStartStepBytes)),
          .progress = without_controls(shortened(reading.setup_text(), kSetupTextBytes))};
    } else {
      seen.starts.erase(node);
    }
    if (reading.has_lease_left()) {
      seen.leases_end[node] = now_.boot + lease_left(reading);
    } else {
      seen.leases_end.erase(node);
    }
    std::optional<std::int64_t> step;
    for (const v1::ShardReading& shard : reading.shards()) {
      // One heartbeat may contain any number of steps. A step is not dropped between its shards: it
      // may be the oldest, and complete.
      if (step != shard.step()) drop_checkpoints({id, attempt->number}, seen);
      step = shard.step();
      CheckpointSeen& checkpoint = seen.checkpoints[shard.step()];
      fold_shard(checkpoint, shard);
      if (checkpoint.complete() && !has_checkpoint(job->second, attempt->number, shard.step()))
        presence_.whole.insert({id, attempt->number, shard.step()});
    }
    drop_checkpoints({id, attempt->number}, seen);
  }

  void drop_checkpoints(const AttemptKey& key, AttemptSeen& seen) {
    while (seen.checkpoints.size() > kCheckpointsKept) {
      const auto dropped = checkpoint_to_drop(seen.checkpoints);
      presence_.whole.erase({key.first, key.second, dropped->first});
      seen.checkpoints.erase(dropped);
    }
  }

  // Notes for users. For a loss that is no number, the samples have the first step. If they are
  // gone already, a rank's latest reading is used.
  void fold_notes(const NodeName& node, const JobRecord& job, const AttemptRecord& attempt,
                  const v1::AttemptReading& reading) {
    const auto note = [&](Note what, std::optional<std::int64_t> step, std::string text) {
      if (is_noted(job, attempt, what)) return;
      presence_.notes.try_emplace({job.id, attempt.number, what},
                                  AttemptNoted{.job = job.id,
                                               .attempt = attempt.number,
                                               .note = what,
                                               .node = node,
                                               .step = step,
                                               .text = std::move(text)});
    };
    if (!reading.unknown_file().empty())
      note(Note::UnknownFiles, std::nullopt,
           without_controls(shortened(reading.unknown_file(), kFileBytes)));
    for (const v1::StepSample& sample : reading.samples()) {
      if (sample.loss_not_finite()) return note(Note::LossNotFinite, sample.step(), {});
    }
    for (const v1::RankReading& rank : reading.ranks()) {
      if (!rank.loss_not_finite()) continue;
      return note(Note::LossNotFinite, rank.has_step() ? std::optional(rank.step()) : std::nullopt,
                  {});
    }
  }

  // The ledger decides what may be removed. A full scan runs only when the map has doubled, which
  // keeps a heartbeat cheap.
  void prune() {
    std::erase_if(presence_.whole, [&](const auto& key) {
      const auto& [id, number, step] = key;
      const auto job = ledger_.jobs.find(id);
      return job == ledger_.jobs.end() || job->second.attempt(number) == nullptr ||
             !accepts_checkpoints(job->second, *job->second.attempt(number)) ||
             has_checkpoint(job->second, number, step);
    });
    std::erase_if(presence_.notes, [&](const auto& entry) {
      const auto& [id, number, what] = entry.first;
      const auto job = ledger_.jobs.find(id);
      const AttemptRecord* attempt =
          job == ledger_.jobs.end() ? nullptr : job->second.attempt(number);
      return attempt == nullptr || !takes_note(job->second, *attempt, what);
    });
    std::erase_if(presence_.numbers_reported,
                  [&](const auto& reported) { return !ledger_.jobs.contains(reported.first); });
    if (presence_.attempts.size() < presence_.prune_at) return;
    std::erase_if(presence_.attempts, [&](const auto& entry) {
      const auto job = ledger_.jobs.find(entry.first.first);
      return job == ledger_.jobs.end() || job->second.current() == nullptr ||
             job->second.current()->number != entry.first.second;
    });
    presence_.prune_at = std::max<std::size_t>(64, 2 * presence_.attempts.size());
  }

  Presence& presence_;
  const Ledger& ledger_;
  Now now_;
};

}  // namespace

void observe(Presence& presence, const Ledger& ledger, const Observation& observation, Now now) {
  std::visit(Observer(presence, ledger, now), observation);
}

}  // namespace muster::core
