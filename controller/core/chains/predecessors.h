// Jobs that wait for others (spec.schedule.after): they are placed only after all of those have
// succeeded. Pure.
//
// A job's own rows alone decide which jobs it still waits for. It waits for all jobs of its
// resolved.after, except those for which a PredecessorSucceeded followed. So it does not matter if
// the rows of the others are archived, or their tombstones dropped.
//
// The end of a job and its effect on the jobs behind it are decided in one batch (follow_ends). If
// it succeeded, each job that waits gets a PredecessorSucceeded. Otherwise the job that waits ends
// cancelled, and so do all jobs behind it. A job also ends cancelled if it needs the checkpoint of
// a stage that has succeeded without one (start_point.h).
//
// Ledger::unsettled keeps the cases that this leaves open: the journal's end was lost between the
// two events, or a job that is waited for does not exist any more. propose() asks for a decision
// about them. The set is empty between batches of an undamaged journal.
//
// While it waits, a job keeps the queue position of its submission, but is in no line of the queue.
// So it costs no checks and delays no other job.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "controller/core/model/decision.h"
#include "controller/core/model/input.h"
#include "controller/core/model/ledger.h"
#include "controller/core/model/presence.h"

namespace muster::core {

inline constexpr std::size_t kPredecessorsNamed = 6;  // in sentences for users

// One job as it was submitted.
struct Submitted {
  const JobId& job;
  const v1::JobSpec& spec;
  const v1::ResolvedSpec& resolved;
  const std::string& spec_hash;
};
inline Submitted submitted(const JobRecord& job) {
  return {.job = job.id, .spec = job.spec, .resolved = job.resolved, .spec_hash = job.spec_hash};
}

// --- for apply() alone ---------------------------------------------------------------------------
void await_predecessors(Ledger& ledger, JobRecord& job);  // at submission, before the queue
void predecessor_succeeded(Ledger& ledger, JobRecord& job, const JobId& predecessor);
void await_nobody(Ledger& ledger, JobRecord& job);     // it ended
void ended_or_gone(Ledger& ledger, const JobId& job);  // marks it unsettled if jobs wait for it

// --- for decide() --------------------------------------------------------------------------------
// Appends the effects of the job ends in `decision` on the jobs that wait for those jobs.
void follow_ends(const Ledger& ledger, Decision& decision);

// The present state of a job that spec.schedule.after names. Nothing: there is no such job, neither
// here nor in the archive, as far as the submission knows.
struct Predecessor {
  std::string name;
  JobPhase phase{};
  const JobRecord* job = nullptr;  // nullptr: archived
  std::string chain_name = {};     // for a stage
};
std::optional<Predecessor> find_predecessor(const Ledger& ledger,
                                            const std::map<JobId, ArchivedEnd>& archived,
                                            const JobId& id);
// Why a job that names these jobs is refused. Nothing: it is accepted, and waits for the jobs that
// have not succeeded. `siblings`: jobs that are submitted with it.
std::optional<Error> refuse_predecessors(const Ledger& ledger,
                                         const std::map<JobId, ArchivedEnd>& archived,
                                         const v1::ResolvedSpec& resolved,
                                         const std::set<JobId>& siblings = {});
// For an accepted submission: the events for the jobs that it names and that have already
// succeeded. An error: the checkpoint that the job starts with does not exist.
Result<std::vector<PredecessorSucceeded>> succeeded_already(
    const Ledger& ledger, const std::map<JobId, ArchivedEnd>& archived, const Submitted& one);

// --- for users -----------------------------------------------------------------------------------
// "waits for job 'prepare' (0j5...), which is running, step 30 of 100": a line for each of the
// first few jobs.
std::vector<std::string> waits_for_text(const Ledger& ledger, const Presence& presence,
                                        const std::set<JobId>& predecessors);

// Either the predecessor's end is known, and its effect on others is not. Or the predecessor does
// not exist, and nobody knows whether it succeeded: then the jobs that wait for it are not run.
Decision settle(const Ledger& ledger, const JobId& predecessor);

}  // namespace muster::core
