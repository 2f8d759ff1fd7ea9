// Chains: jobs that one submission has put in a sequence (spec.stage). Pure.
//
// All jobs of a chain are accepted, or none. Each is a job of its own. A chain has an id, which is
// that of its first job, and a name. No other live chain or job has that name.
#pragma once

#include <optional>
#include <string>

#include "controller/core/model/ledger.h"

namespace muster::core {

// --- for apply() alone ---------------------------------------------------------------------------
// They do nothing for a job or a tombstone that is no stage. The jobs of a chain are sorted by
// their ids, which rise along the chain. The chains of a name are sorted by their ids too.
void join_chain(Ledger& ledger, const JobId& job, const JobId& chain, const std::string& name);
void leave_chain(Ledger& ledger, const JobId& job, const JobId& chain, const std::string& name);

// A job that has not ended, of the newest chain with this name. Nullptr: there is none.
const JobRecord* live_stage(const Ledger& ledger, const std::string& chain_name);

// The chain of a job, archived or not. Empty: the job is in no chain.
JobId chain_of(const Ledger& ledger, const JobId& job);

// --- for people ----------------------------------------------------------------------------------
// "stage 'train' of chain 'llama' (0j5...)", "job 'train' (0j5...)", "job '0j5...'".
std::string display_name(const JobId& id, const std::string& name, const std::string& chain_name);
std::string display_name(const JobRecord& job);

}  // namespace muster::core
