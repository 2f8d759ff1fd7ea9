// What people type for a job: id, unique prefix of an id, name, "@last". Pure.
//
// Order: "@last"; a whole id; the name of a live job; the newest finished job of that name; a unique prefix. Ambiguous is Conflict and lists some.
#pragma once

#include <string>

#include "common/base/error.h"
#include "controller/core/ledger.h"

namespace muster::controller {

struct JobRef {
  JobId id;
  bool archived = false;  // not in the ledger: its rows, if any, are in the archive
};
Result<JobRef> resolve_job(const core::Ledger& ledger, const std::string& text);

}  // namespace muster::controller
