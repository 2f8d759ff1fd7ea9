// Finds the job that a user names. Pure.
//
// A user may give an id, a name, a unique prefix or end of an id, "@last", the name of a chain, or
// "chain:ID".
//
// Ids begin with the time, so ids of one day differ at their ends; tables show these ends. An end
// needs at least four characters, which are the random ones. A shorter text is more often a
// mistyped name than an id. The beginning of a name is enough only for reading. To end or to
// continue a job, its whole name is needed.
//
// "chain:ID" takes the id of any of the chain's jobs, or a unique prefix of the first one's. A name
// may belong to a newer chain tomorrow; "chain:ID" never does.
//
// The first that matches wins:
//
// 1. "@last"
// 2. "chain:ID"
// 3. a whole id
// 4. the name of a live job
// 5. the name of a chain with a stage that has not ended
// 6. the newer one of the newest finished job and the newest chain with that name
// 7. a unique prefix of an id
// 8. a unique end of an id
// 9. for reading, a unique prefix of the name of something that has not ended, else of any name
//
// An ambiguous text gives Conflict, which lists some matches. A chain's name refers to its stage
// that matters most (chain_view.h). The beginning of a chain's name refers to the chain and all its
// stages.
#pragma once

#include <cstdint>
#include <string>

#include "common/base/error.h"
#include "controller/core/model/ledger.h"

namespace muster::controller {

struct JobRef {
  JobId id;
  bool archived = false;  // not in the ledger: its rows, if any, are in the archive
  JobId chain = {};       // found by the name of this chain; empty: by its own
};
enum class RefFor : std::uint8_t { Reading, Acting };
Result<JobRef> resolve_job(const core::Ledger& ledger, const std::string& text,
                           RefFor use = RefFor::Acting);

}  // namespace muster::controller
