// Shows the state of a chain. Pure.
//
// It contains the chain's jobs in the ledger, and the archived ones as long as their tombstones are
// kept.
#pragma once

#include <vector>

#include "controller/core/model/ledger.h"
#include "muster/v1/job_service.pb.h"

namespace muster::controller {

// In order. Empty: there is no such chain (any more).
std::vector<v1::ChainStage> chain_stages(const core::Ledger& ledger, const JobId& chain);

// The stage that a chain's name refers to. It is the first of these that exists:
//
// - the first stage that runs
// - the first that failed
// - the first that was cancelled, but not because of another job's end
// - the next that waits
// - the last stage
//
// `chain` is one of ledger.indexes.chains.
JobId stage_that_matters(const core::Ledger& ledger, const JobId& chain);

// Some stage of the chain has not ended.
bool is_live_chain(const core::Ledger& ledger, const JobId& chain);

}  // namespace muster::controller
