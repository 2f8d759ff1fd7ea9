#include <algorithm>
#include <array>
#include <cerrno>

#include "agent/core/reconcile.h"
#include "common/proto/proto_time.h"

namespace muster::agent {
namespace {

v1::Fact fact_at(const RunKey& run, WallTime at) {
  v1::Fact fact;
  fact.set_job_id(run.first.str());
  fact.set_attempt(run.second.value);
  *fact.mutable_at() = to_proto(at);
  return fact;
}

v1::Fact started_fact(const RunKey& run, const RunSeen& seen) {
  v1::Fact fact = fact_at(run, seen.started_at);
  v1::NodeStarted* started = fact.mutable_started();
  for (const std::uint32_t rank : seen.ranks) {
    const auto pid = seen.pids.find(rank);
    started->add_pids(pid == seen.pids.end() ? 0 : pid->second);
  }
  started->set_worker_pid(seen.worker_pid);
  *started->mutable_resolved() = seen.resolved;
  return fact;
}

v1::Fact start_failed_fact(const RunKey& run, WallTime at, v1::StartFailure why,
                           const std::string& text) {
  v1::Fact fact = fact_at(run, at);
  fact.mutable_start_failed()->set_why(why);
  fact.mutable_start_failed()->set_text(text);
  return fact;
}

v1::Fact exited_fact(const RunKey& run, const ExitSeen& exit) {
  v1::Fact fact = fact_at(run, exit.at);
  v1::RankExited* exited = fact.mutable_exited();
  exited->set_rank(exit.rank);
  exited->set_code(exit.code);
  exited->set_signal(exit.signal);
  exited->set_stop_requested(exit.stop_requested);
  exited->set_oom(exit.oom);
  exited->set_killed_unasked(exit.killed_unasked);
  exited->set_evidence(exit.evidence);
  exited->set_evidence_kind(exit.evidence_kind);
  exited->set_success_seen(exit.success_seen);
  if (exit.step) exited->set_step(*exit.step);
  if (exit.total) exited->set_total(*exit.total);
  if (exit.training_rank) exited->set_training_rank(*exit.training_rank);
  return fact;
}

v1::Fact outputs_fact(const RunKey& run, const RunSeen::Outputs& ended) {
  v1::Fact fact = fact_at(run, ended.at);
  v1::OutputsUploaded* uploaded = fact.mutable_outputs_uploaded();
  uploaded->set_files(ended.files);
  uploaded->set_bytes(ended.bytes);
  uploaded->set_problem(ended.problem);
  if (ended.step) uploaded->set_step(*ended.step);
  uploaded->set_seal(ended.seal);
  uploaded->set_sums_sha256(ended.sums_sha256);
  uploaded->set_logs(ended.logs);
  for (const RunSeen::Removed& one : ended.removed) {
    v1::RemoteCheckpoint& removed = *uploaded->add_removed();
    removed.set_attempt(one.attempt);
    removed.set_step(one.step);
  }
  uploaded->set_not_removed(ended.not_removed);
  return fact;
}

v1::Fact auxiliary_fact(const RunKey& run, const AuxiliaryExitSeen& exit) {
  v1::Fact fact = fact_at(run, exit.at);
  v1::AuxiliaryExited* exited = fact.mutable_auxiliary_exited();
  exited->set_name(exit.name);
  exited->set_code(exit.code);
  exited->set_signal(exit.signal);
  exited->set_evidence(exit.evidence);
  return fact;
}

// An auxiliary process is not needed once the ranks on this node have ended. Its end is then no
// failure.
bool breaks_the_attempt(const AuxiliaryExitSeen& exit, const RunSeen& seen) {
  if (exit.stop_requested || (exit.code == 0 && exit.signal == 0)) return false;
  return std::ranges::any_of(seen.ranks, [&](std::uint32_t rank) {
    const auto ended = seen.exits.find(rank);
    return ended == seen.exits.end() || ended->second.boot > exit.boot;
  });
}

// A program that cannot be executed is the job's own fault, on every node. A lack of processes,
// memory, descriptors or space, a broken disk, and an unreadable launch record are a problem of
// this node.
v1::StartFailure why_not_started(int error) {
  if (error == ENOSPC || error == EDQUOT) return v1::START_FAILURE_DISK;
  constexpr std::array kOfNode = {0, EAGAIN, ENOMEM, EMFILE, ENFILE, EIO, ESTALE};
  return std::ranges::find(kOfNode, error) != kOfNode.end() ? v1::START_FAILURE_NODE
                                                            : v1::START_FAILURE_LAUNCH;
}

// The status was lost with the worker or with the boot. If a stop was written before, muster may
// have killed the rank, so the exit is not a cause.
v1::Fact lost_fact(const RunKey& run, const RunSeen& seen, std::uint32_t rank) {
  v1::Fact fact = fact_at(run, seen.swept_at);
  v1::RankExited* exited = fact.mutable_exited();
  exited->set_rank(rank);
  exited->set_code(-1);
  exited->set_stop_requested(seen.stop_requested);
  exited->set_lost(true);
  return fact;
}

// Empty result: the fact has no time on the boot clock.
std::optional<BootTime> ended_at(const v1::Fact& fact, const RunSeen& seen) {
  if (fact.has_exited()) {
    const auto exit = seen.exits.find(fact.exited().rank());
    return exit == seen.exits.end() ? std::nullopt : std::optional(exit->second.boot);
  }
  if (!fact.has_auxiliary_exited()) return std::nullopt;
  const auto exit = std::ranges::find(seen.auxiliary_exits, fact.auxiliary_exited().name(),
                                      &AuxiliaryExitSeen::name);
  return exit == seen.auxiliary_exits.end() ? std::nullopt : std::optional(exit->boot);
}

}  // namespace

void set_ages(v1::Facts& facts, const Self& self, const std::map<RunKey, RunSeen>& seen, Now now) {
  for (v1::Fact& fact : *facts.mutable_facts()) {
    const auto run = seen.find({JobId(fact.job_id()), AttemptNo(fact.attempt())});
    Duration age = now.wall - to_wall(fact.at());
    if (run != seen.end() && run->second.boot_id == self.boot_id) {
      if (const std::optional<BootTime> ended = ended_at(fact, run->second))
        age = now.boot - *ended;
    }
    *fact.mutable_age() = to_proto(std::max(age, Duration::zero()));
  }
}

std::vector<v1::Fact> facts_of(const RunKey& run, const RunSeen& seen) {
  std::vector<v1::Fact> facts;
  if (seen.refused && seen.refused->first != v1::START_FAILURE_UNSPECIFIED) {
    facts.push_back(
        start_failed_fact(run, seen.refused_at, seen.refused->first, seen.refused->second));
    facts.back().mutable_start_failed()->set_step(seen.refused_step);
    if (seen.refused->first == v1::START_FAILURE_CHECKPOINT)
      *facts.back().mutable_start_failed()->mutable_checkpoint() = seen.refused_for;
  }
  if (seen.started) facts.push_back(started_fact(run, seen));
  if (seen.start_failed)
    facts.push_back(start_failed_fact(
        run, seen.start_failed_at, why_not_started(seen.start_failed_error), *seen.start_failed));
  if (seen.checkpoint_sent) facts.push_back(outputs_fact(run, *seen.checkpoint_sent));
  if (seen.checkpoint_sealed) facts.push_back(outputs_fact(run, *seen.checkpoint_sealed));
  if (seen.first_step) {
    v1::Fact fact = fact_at(run, seen.first_step_at);
    fact.mutable_first_step()->set_step(*seen.first_step);
    facts.push_back(std::move(fact));
  }
  if (seen.clock_ahead) {
    v1::Fact fact = fact_at(run, seen.clock_ahead_at);
    *fact.mutable_node_clock_skewed()->mutable_ahead() = to_proto(*seen.clock_ahead);
    facts.push_back(std::move(fact));
  }
  if (seen.script_launch) {
    v1::Fact fact = fact_at(run, seen.script_launch->at);
    v1::ScriptLaunched* launched = fact.mutable_script_launched();
    launched->set_first_rank(seen.script_launch->first_rank);
    launched->set_ranks(seen.script_launch->ranks);
    launched->set_save(seen.script_launch->save);
    launched->set_weights_alone(seen.script_launch->weights_alone);
    facts.push_back(std::move(fact));
  }
  // Sorted by the boot clock, which nobody can set, because the first end decides the cause. Equal
  // times keep rank order: the same directory always gives the same facts in the same order.
  std::vector<std::pair<std::pair<BootTime, WallTime>, v1::Fact>> exits;
  for (const auto& [rank, exit] : seen.exits)
    exits.emplace_back(std::pair(exit.boot, exit.at), exited_fact(run, exit));
  for (const AuxiliaryExitSeen& exit : seen.auxiliary_exits) {
    if (breaks_the_attempt(exit, seen))
      exits.emplace_back(std::pair(exit.boot, exit.at), auxiliary_fact(run, exit));
  }
  std::ranges::stable_sort(exits, {}, [](const auto& one) { return one.first; });
  for (auto& [when, fact] : exits) facts.push_back(std::move(fact));
  if (seen.swept) {
    if (!seen.refused) {
      for (const std::uint32_t rank : seen.ranks) {
        // If the start failed or was stopped in its setup, a rank never existed.
        const bool was_there =
            seen.pids.contains(rank) || !(seen.start_failed || seen.swept_by_worker);
        if (was_there && !seen.exits.contains(rank)) facts.push_back(lost_fact(run, seen, rank));
      }
    }
    v1::Fact fact = fact_at(run, seen.swept_at);
    fact.mutable_swept()->set_why(seen.swept_why);
    fact.mutable_swept()->set_logs_follow(seen.launch_sound && !seen.refused);
    facts.push_back(std::move(fact));
    if (seen.outputs) facts.push_back(outputs_fact(run, *seen.outputs));
    if (seen.logs_end) facts.push_back(outputs_fact(run, *seen.logs_end));
  }
  return facts;
}

}  // namespace muster::agent
