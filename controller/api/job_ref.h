// What people type for a job: id, name, unique prefix or end of an id, "@last", name of a chain,
// "chain:ID" of a chain for ever. Pure.
//
// Ids begin with the time, so those of a day differ at their end: that is what tables show. An end
// counts from four characters on, which are of chance: less would be a name mistyped more often
// than an id. The beginning of a name will do for who only reads: who ends or goes on with a job
// has to name it.
//
// "chain:ID" is by the id of any of the chain's jobs, or a unique prefix of the first one's: a name
// may be a newer chain's tomorrow.
//
// Order: "@last"; "chain:ID"; a whole id; the name of a live job; that of a chain of which some
// stage has not ended; the newer one of the newest finished job and the newest chain of that name;
// a unique prefix of an id; a unique end of one; to read, a unique prefix of the name of what has
// not ended, else of any. Ambiguous is Conflict and lists some. A chain's name stands for its stage
// that matters most (chain_view.h), its beginning for the chain and all its stages.
#pragma once

#include <cstdint>
#include <string>

#include "common/base/error.h"
#include "controller/core/ledger.h"

namespace muster::controller {

struct JobRef {
  JobId id;
  bool archived = false;  // not in the ledger: its rows, if any, are in the archive
  JobId chain = {};       // asked for by the name of this chain; empty: by its own
};
enum class RefFor : std::uint8_t { Reading, Acting };
Result<JobRef> resolve_job(const core::Ledger& ledger, const std::string& text,
                           RefFor use = RefFor::Acting);

}  // namespace muster::controller
