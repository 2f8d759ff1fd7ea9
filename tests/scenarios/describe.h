// Events, orders and jobs as lines of a trace, for people.
#pragma once

#include <string>

#include "controller/core/core.h"

namespace muster::scenarios {

std::string describe(const core::Ledger& ledger, const core::EventBody& body);
std::string describe(const core::Ledger& ledger, const core::AttemptKey& key);  // "train.2": the job's name and the attempt
std::string describe(core::Want want);
std::string describe_job(const core::Ledger& ledger, const core::JobRecord& job);

JobId job_of(const core::EventBody& body);                                     // empty: an event of no job
const core::JobPhase* phase_of(const core::Ledger& ledger, const JobId& job);  // nullptr: not in the fold

}  // namespace muster::scenarios
