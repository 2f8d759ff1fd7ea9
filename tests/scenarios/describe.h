// Formats events, orders and jobs as lines of a trace, for people. Pure.
#pragma once

#include <string>

#include "controller/core/core.h"

namespace muster::scenarios {

std::string describe(const core::Ledger& ledger, const core::EventBody& body);
// "train.2": the job's name and the attempt.
std::string describe(const core::Ledger& ledger, const core::AttemptKey& key);
std::string describe(core::Want want);
std::string describe_job(const core::Ledger& ledger, const core::JobRecord& job);

// Empty: the event belongs to no job.
JobId job_of(const core::EventBody& body);
// nullptr: the job is not in the ledger.
const core::JobPhase* phase_of(const core::Ledger& ledger, const JobId& job);

}  // namespace muster::scenarios
