// NodeLaunch.code: this node's copy of the code with the patches on it, made before anything of a
// run starts. Blocking; any thread.
//
//   <dir>/                      ${out}/code: one of the order's make_dirs
//     node-K/                   whole, or not there: it comes by one rename
//       NAME/                   the copy: CodeCopy.path
//       made                    of which job, source and patches it is; a copy of others is made
//                               anew
//     .node-K.new-XXXXXXXX/     at work; after a crash the next start takes it away
//     .node-K.old-XXXXXXXX/     on its way out
//
// A copy that is whole is used again by every later attempt, whatever has become of the source
// since: an attempt goes on with the code that it began with, and with what that wrote beside
// itself. What is at work is renamed before it is removed: a start of an earlier attempt that is
// still at it (a slow file system) then finds no place to put its part in, and never passes a half
// for a whole.
#pragma once

#include <chrono>
#include <string>

#include "agent/host/launch_record.h"
#include "common/base/error.h"
#include "muster/v1/agent_service.pb.h"

namespace muster::agent {

// for copying and patching together
inline constexpr auto kCodeCopyTime = std::chrono::minutes(10);

// Nothing to do without NodeLaunch.code. `path`: the agent's PATH. `owner`: another user than the
// agent's, for whom no copy is made in this release. Errors as copy_tree's and apply_patches';
// Conflict: another start was quicker with another copy.
Result<void> make_code_copy(const v1::NodeLaunch& order, const std::string& path,
                            const UserEntry* owner, std::chrono::milliseconds most = kCodeCopyTime);

}  // namespace muster::agent
