// A chain as it stands: of its jobs those in the ledger and those that are archived, as long as
// their tombstones are kept. Pure.
#pragma once

#include <vector>

#include "controller/core/ledger.h"
#include "muster/v1/job_service.pb.h"

namespace muster::controller {

// In order. Empty: there is no such chain (any more).
std::vector<v1::ChainStage> chain_stages(const core::Ledger& ledger, const JobId& chain);

// Who is meant by the chain's name: the stage that runs (the first one), else the first that
// failed, else the first that was cancelled and is not another's consequence, else the next that
// waits, else the last. `chain` is one of ledger.chains.
JobId stage_that_matters(const core::Ledger& ledger, const JobId& chain);

// Some stage of it has not ended.
bool is_live_chain(const core::Ledger& ledger, const JobId& chain);

}  // namespace muster::controller
