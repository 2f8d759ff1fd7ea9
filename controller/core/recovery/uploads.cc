#include "controller/core/recovery/uploads.h"

#include <algorithm>
#include <functional>
#include <set>
#include <utility>

#include "controller/core/model/spec_view.h"
#include "controller/core/recovery/fence.h"

namespace muster::core {

namespace {

// No process of the job writes any more where this part has written.
bool nothing_writes(const JobRecord& job, const AttemptRecord& attempt, const NodePart& part) {
  if (!part.swept || !is_over(attempt.state)) return false;
  const AttemptRecord& latest = *job.current();
  if (is_over(latest.state)) return true;
  return fetches_files(job.spec) && latest.part(part.placed.node) == nullptr;
}

// -1: there is none.
std::int64_t newest_whole(const JobRecord& job, const AttemptRecord& attempt) {
  std::int64_t newest = -1;
  for (const CheckpointRecord& one : job.checkpoints)
    if (one.attempt == attempt.number && !one.quarantined) newest = std::max(newest, one.step);
  return newest;
}

// Of all nodes that have uploaded files of this step. None: one of them has no list.
std::vector<NodeSums> sums_of(const AttemptRecord& attempt, std::int64_t step) {
  std::vector<NodeSums> sums;
  for (const NodePart& part : attempt.parts)
    if (part.sent_step == step && !part.sent_sums.empty())
      sums.push_back({.node = part.placed.node, .sha256 = part.sent_sums});
  if (sums.size() < attempt.uploaders) sums.clear();
  return sums;
}

using CheckpointKey = std::pair<AttemptNo, std::int64_t>;

bool is_suspect(const JobRecord& job, AttemptNo attempt, std::int64_t step) {
  return std::ranges::any_of(job.checkpoints, [&](const CheckpointRecord& one) {
    return one.attempt == attempt && one.step == step && one.quarantined;
  });
}

// Those in the store that are too many, the newest one first: when `sealed` is there, too, if it is
// set. That may be older than others: of an attempt whose node was away. One that may be bad keeps
// no place.
std::vector<RemoteCheckpoint> beyond_keep(const JobRecord& job,
                                          const std::optional<CheckpointKey>& sealed) {
  const std::uint32_t keep = job.spec.outputs().keep();
  if (keep == 0) return {};
  std::set<CheckpointKey, std::greater<>> all;
  for (const CheckpointRecord& one : job.checkpoints)
    if (one.uploaded) all.emplace(one.attempt, one.step);
  if (sealed) all.insert(*sealed);
  std::vector<RemoteCheckpoint> beyond;
  std::uint32_t kept = 0;
  std::set<AttemptNo> attempts;
  for (const auto& [attempt, step] : all) {
    if (kept >= keep && std::pair(attempt, step) != sealed) {
      beyond.push_back({.attempt = attempt, .step = step});
      continue;
    }
    attempts.insert(attempt);
    if (!is_suspect(job, attempt, step)) ++kept;
  }
  for (RemoteCheckpoint& one : beyond) one.mark = !attempts.contains(one.attempt);
  return beyond;
}

// Of the checkpoints that nodes have on their disks, these alone are uploaded in the end: those
// that are there and stay, and the newest ones as long as there is a place, but the newest in any
// case.
std::vector<RemoteCheckpoint> kept_ones(const JobRecord& job,
                                        const std::vector<RemoteCheckpoint>& beyond) {
  const std::uint32_t keep = job.spec.outputs().keep();
  std::vector<RemoteCheckpoint> kept;
  if (keep == 0) return kept;
  std::set<CheckpointKey, std::greater<>> others;
  for (const CheckpointRecord& one : job.checkpoints) {
    const bool goes = std::ranges::any_of(beyond, [&](const RemoteCheckpoint& gone) {
      return gone.attempt == one.attempt && gone.step == one.step;
    });
    if (one.uploaded && !goes)
      kept.push_back({.attempt = one.attempt, .step = one.step});
    else if (!one.uploaded && !one.quarantined)
      others.emplace(one.attempt, one.step);
  }
  CheckpointKey newest_kept(0, -1);
  for (const RemoteCheckpoint& one : kept)
    newest_kept = std::max(newest_kept, CheckpointKey(one.attempt, one.step));
  for (const CheckpointKey& one : others) {
    const bool is_newest = one == *others.begin() && one > newest_kept;
    if (kept.size() >= keep && !is_newest) break;
    kept.push_back({.attempt = one.first, .step = one.second});
  }
  return kept;
}

UploadOrder everything(const JobRecord& job, const AttemptRecord& attempt, const NodePart& part) {
  UploadOrder order;
  const std::vector<RemoteCheckpoint> beyond = beyond_keep(job, std::nullopt);
  order.kept = kept_ones(job, beyond);
  if (&part == &sealing_part(attempt)) order.remove = beyond;
  return order;
}

struct Round {
  std::optional<UploadOrder> due;
  bool is_over = false;  // no checkpoint is left to upload
};
Round checkpoint_round(const JobRecord& job, const AttemptRecord& attempt, const NodePart& part) {
  const AttemptRecord::Sending& sending = attempt.sending;
  const bool all_have = sending.nodes >= attempt.uploaders;
  const bool goes_on =
      all_have ? !sending.failed && sealing_part(attempt).uploads : !attempt.uploader_gone;
  if (sending.step > attempt.sealed_step && goes_on) {
    if (!all_have && part.sent_step < sending.step)
      return {.due = UploadOrder{.step = sending.step}};
    if (all_have && &part == &sealing_part(attempt))
      return {.due =
                  UploadOrder{.step = sending.step,
                              .seal = true,
                              .sums = sums_of(attempt, sending.step),
                              .remove = beyond_keep(job, std::pair(attempt.number, sending.step))}};
    return {};
  }
  if (attempt.uploader_gone) return {.is_over = true};
  const std::int64_t newest = newest_whole(job, attempt);
  if (newest <= std::max(attempt.sealed_step, sending.step)) return {.is_over = true};
  return {.due = UploadOrder{.step = newest}};
}

}  // namespace

const NodePart& sealing_part(const AttemptRecord& attempt) { return attempt.parts.front(); }

std::optional<UploadOrder> upload_due(const JobRecord& job, const AttemptRecord& attempt,
                                      const NodePart& part) {
  if (!part.uploads) return std::nullopt;
  if (!nothing_writes(job, attempt, part)) {
    // Also when this part is swept, and others are not yet: a pause would end what is under way.
    const bool runs = attempt.state == AttemptState::Live && part.started;
    return runs ? checkpoint_round(job, attempt, part).due : std::nullopt;
  }
  // Of several nodes one may be lost; the others wait for it only as long as the job does.
  if (is_final(job.phase) && attempt.uploaders > 1) return everything(job, attempt, part);
  const Round round = checkpoint_round(job, attempt, part);
  return round.is_over ? everything(job, attempt, part) : round.due;
}

std::optional<UploadOrder> checkpoint_lost(const Ledger& ledger, const Presence& presence,
                                           const JobRecord& job, const AttemptRecord& attempt,
                                           const NodePart& part, Now now, const Limits& limits) {
  // One that uploads alone keeps nobody waiting.
  if (job.phase != JobPhase::Completing || attempt.uploaders < 2 || !part.uploads)
    return std::nullopt;
  const PartCheck contact = check_contact(ledger, presence, job, part.placed.node, now, limits);
  if (!can_run_nothing(contact.liveness)) return std::nullopt;
  const std::optional<UploadOrder> due = upload_due(job, attempt, part);
  return due && due->step ? due : std::nullopt;
}

std::optional<OutputsUploaded> lost_outputs(const NodePart& part, const NodeSwept& swept) {
  if (!part.uploads || !part.ran() || swept.logs_follow) return std::nullopt;
  return OutputsUploaded{.job = swept.job,
                         .attempt = swept.attempt,
                         .node = swept.node,
                         .problem = std::string(kDirectoryLost),
                         .node_time = swept.node_time,
                         .controller_time = swept.controller_time,
                         .instance = swept.instance};
}

std::vector<std::string> uploading_nodes(const JobRecord& job) {
  std::set<std::string> nodes;
  for (const AttemptRecord& attempt : job.attempts)
    for (const NodePart& part : attempt.parts)
      if (part.uploads) nodes.insert(part.placed.node.str());
  return {nodes.begin(), nodes.end()};
}

UploadsCheck check_uploads(const Ledger& ledger, const Presence& presence, const JobRecord& job,
                           Now now, const Limits& limits) {
  UploadsCheck check;
  for (const std::string& node : uploading_nodes(job)) {
    const PartCheck contact = check_contact(ledger, presence, job, NodeName(node), now, limits);
    if (can_run_nothing(contact.liveness)) continue;
    check.go_on = true;
    sooner(check.check_at, contact.over_at);
  }
  return check;
}

}  // namespace muster::core
