// Chains: jobs that one submission has put behind each other (spec.stage), taken all or none. Each
// is a job of its own; what makes them a chain is its id, that of the first of them, and its name,
// which no other live chain or job has. Pure.
#pragma once

#include <optional>
#include <string>

#include "controller/core/core.h"

namespace muster::core {

// --- for apply() alone ---------------------------------------------------------------------------
// Of a job, or a tombstone, that is no stage they do nothing. The jobs of a chain stand by their
// ids, which rise along it; so do the chains of a name.
void join_chain(Ledger& ledger, const JobId& job, const JobId& chain, const std::string& name);
void leave_chain(Ledger& ledger, const JobId& job, const JobId& chain, const std::string& name);

// A job that has not ended of the newest chain of this name; nullptr: there is none.
const JobRecord* live_stage(const Ledger& ledger, const std::string& chain_name);

// The chain that a job is of, archived or not; empty: of none.
JobId chain_of(const Ledger& ledger, const JobId& job);

// --- for people ----------------------------------------------------------------------------------
// "stage 'train' of chain 'llama' (0j5...)", "job 'train' (0j5...)", "job '0j5...'".
std::string display_name(const JobId& id, const std::string& name, const std::string& chain_name);
std::string display_name(const JobRecord& job);

}  // namespace muster::core
