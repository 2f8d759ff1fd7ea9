// Jobs that wait for others (spec.schedule.after): placed only when all of those have succeeded.
// Pure.
//
// Its own rows alone tell for whom a job still waits: from its submission on for all that its spec
// names, but those of which a PredecessorSucceeded followed. So it does not matter what becomes of
// the others' rows: archived, the tombstone dropped. What the end of a job means for those that
// wait for it, and for those behind them, is decided with that end, in one batch (follow_ends):
// they are told that it succeeded, or end cancelled. Cancelled as well is a job that was to go on
// from a checkpoint of a stage that has succeeded without one (start_point.h).
//
// Ledger::unsettled holds what that leaves open, because the journal's end was lost between the
// two, or a job that is waited for is not there any more: propose() asks for it. It is empty
// between batches of a journal that is whole.
//
// While it waits a job stands in the queue at the place of its submission, but in none of its
// lines: nobody looks at it, and it holds nobody up.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "controller/core/core.h"

namespace muster::core {

inline constexpr std::size_t kPredecessorsNamed = 6;  // in what a person is told

// --- for apply() alone ---------------------------------------------------------------------------
void await_predecessors(Ledger& ledger, JobRecord& job);  // submitted; before it joins the queue
void predecessor_succeeded(Ledger& ledger, JobRecord& job, const JobId& predecessor);
void await_nobody(Ledger& ledger, JobRecord& job);     // it ended
void ended_or_gone(Ledger& ledger, const JobId& job);  // whoever still waits for it has to hear it

// --- for decide() --------------------------------------------------------------------------------
// Behind the ends of jobs that a decision holds, what they mean for the jobs that wait for these.
void follow_ends(const Ledger& ledger, Decision& decision);

// A job that is named in spec.schedule.after, as it stands. Nothing: there is none, neither here
// nor, as far as the submission says, in the archive.
struct Predecessor {
  std::string name;
  JobPhase phase{};
  const JobRecord* job = nullptr;  // nullptr: archived
  std::string chain_name = {};     // of a stage
};
std::optional<Predecessor> find_predecessor(const Ledger& ledger,
                                            const std::map<JobId, ArchivedEnd>& archived,
                                            const JobId& id);
// Why a job with this spec cannot be taken; nothing: it can, and waits for those that have not
// succeeded. `siblings`: jobs that are submitted with it.
std::optional<Error> refuse_predecessors(const Ledger& ledger,
                                         const std::map<JobId, ArchivedEnd>& archived,
                                         const v1::JobSpec& spec,
                                         const std::set<JobId>& siblings = {});
// Behind the submission of a job that is accepted: of those that it names, which have succeeded
// already. An error: without the checkpoint that it goes on from.
Result<std::vector<PredecessorSucceeded>> succeeded_already(
    const Ledger& ledger, const std::map<JobId, ArchivedEnd>& archived, const JobId& job,
    const v1::JobSpec& spec);

// --- for people ----------------------------------------------------------------------------------
// "waits for job 'prepare' (0j5...), which is running, step 30 of 100": a line for each, the first
// few.
std::vector<std::string> waits_for_text(const Ledger& ledger, const Presence& presence,
                                        const std::set<JobId>& predecessors);

}  // namespace muster::core
