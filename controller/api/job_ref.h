// What people type for a job: id, unique prefix of an id, name, "@last", name of a chain, "chain:ID" of a chain for ever. Pure.
//
// "chain:ID" is by the id of any of the chain's jobs, or a unique prefix of the first one's: a name may be a newer chain's tomorrow.
//
// Order: "@last"; "chain:ID"; a whole id; the name of a live job; that of a chain of which some stage has not ended; the newer one of the newest finished job
// and the newest chain of that name; a unique prefix. Ambiguous is Conflict and lists some. A chain's name stands for its stage that matters most
// (chain_view.h).
#pragma once

#include <string>

#include "common/base/error.h"
#include "controller/core/ledger.h"

namespace muster::controller {

struct JobRef {
  JobId id;
  bool archived = false;  // not in the ledger: its rows, if any, are in the archive
  JobId chain = {};       // asked for by the name of this chain; empty: by its own
};
Result<JobRef> resolve_job(const core::Ledger& ledger, const std::string& text);

}  // namespace muster::controller
