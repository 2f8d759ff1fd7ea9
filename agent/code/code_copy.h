// make_code_copy() makes this node's copy of the code with the patches applied (NodeLaunch.code),
// before anything of a run starts. It keeps no state. It blocks, and may run on any thread.
//
//   <dir>/                      ${out}/code: one of the order's make_dirs
//     node-K/                   complete, or absent: one rename creates it
//       NAME/                   the copy: CodeCopy.path
//       made                    its job, source and patches; a copy with other ones is made again
//     .node-K.new-XXXXXXXX/     in progress; after a crash the next start removes it
//     .node-K.old-XXXXXXXX/     being removed
//
// Every later attempt uses a complete copy again, whatever has happened to the source since. An
// attempt continues with the code that it began with, and with the files that the code wrote next
// to itself.
//
// A directory in progress is renamed before it is removed. A start of an earlier attempt may still
// work on it (a slow file system). That start then finds no directory for its part, and never
// treats an incomplete copy as complete.
#pragma once

#include <chrono>
#include <string>

#include "agent/launch/launch_record.h"
#include "common/base/error.h"
#include "muster/v1/agent_service.pb.h"

namespace muster::agent {

// for copying and patching together
inline constexpr auto kCodeCopyTime = std::chrono::minutes(10);

// Does nothing without NodeLaunch.code. `path`: the agent's PATH. `owner`: a user other than the
// agent's; this release makes no copy for such a user. Errors are those of copy_tree() and
// apply_patches(), and Conflict: another start was quicker with another copy.
Result<void> make_code_copy(const v1::NodeLaunch& order, const std::string& path,
                            const UserEntry* owner, std::chrono::milliseconds most = kCodeCopyTime);

}  // namespace muster::agent
