// write_launch_files() writes the files that must be on the node before anything of a run starts.
// It keeps no state. It blocks, and may run on any thread.
//
// The files are those of the order (rank tables), the changed copies of the node's own files
// (patched_files.h), and the script of runtime.setup in the run directory. Files that must exist
// (needed_files.h) are checked after the copies are written.
//
// - A file of an order is checked against its hash. It is written to the same directory under a
//   name that nobody can guess (O_EXCL, O_NOFOLLOW), and is then renamed.
// - So nobody reads an incomplete file. A symbolic link at its path is replaced, not followed.
// - Its directory must be one of the order's make_dirs, spelled the same.
// - That directory, or one above it, may be a symbolic link: people keep outputs behind links.
// - With `owner`, files are accessed with the owner's rights. So a link of the owner leads only to
//   files that the owner may reach.
#pragma once

#include "agent/launch/launch_record.h"
#include "common/base/error.h"
#include "common/rundir/layout.h"
#include "muster/v1/agent_service.pb.h"

namespace muster::agent {

// limit for all files of an order together; NodeLaunch has the same limit
inline constexpr std::size_t kLaunchFilesMost = 12U << 20U;

// Errors:
//
// - ResourceExhausted: no space.
// - NotFound: a file that is to be changed, or that must exist, does not exist.
// - InvalidArgument: wrong on every node (a path that may not be written).
// - DataLoss: the bytes do not match the hash.
// - Io: a problem of this node.
Result<void> write_launch_files(const v1::NodeLaunch& order, const rundir::RunLayout& run,
                                const UserEntry* owner);

}  // namespace muster::agent
