// Leaves out of answers what a caller may not see of other users' jobs. Pure.
//
// Of such a job there are left: id, name, stage, owner, phase, times, numbers of attempts and
// restarts, nodes, steps, and the class of its verdict. No specs, environments, paths, checkpoints,
// losses or sentences: a program's own words may be in them.
//
// Join tokens and certificates are listed over the unix socket alone, so below operators their
// events have no sentence. Admins alone list the secrets and stores of other users, and see their
// events.
#pragma once

#include <string>

#include "controller/access/access.h"
#include "controller/core/model/ledger.h"
#include "controller/shell/history.h"
#include "muster/v1/job.pb.h"

namespace muster::controller {

// As recorded. Nullptr: neither the ledger's jobs nor its tombstones have the job.
const std::string* owner_of(const core::Ledger& ledger, const JobId& job);

// Names the owner of a job that to_v1() made, and leaves out what this caller may not see.
void show_to(const JobAccess& access, v1::Job& job);

// The same event with another text in place of its sentence: "of WHAT".
EventPtr withheld(const v1::Event& event, const std::string& what);

// Of an event about a join token or a certificate below operators, and of one about a secret or a
// store below admins: its type and time. Another event as it is.
EventPtr without_access(const EventPtr& event, bool is_operator, bool is_admin);

}  // namespace muster::controller
