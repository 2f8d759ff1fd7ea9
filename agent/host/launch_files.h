// Files that have to be on the node before anything of a run starts: those of the order (rank
// tables), the changed copies of the node's own (patched_files.h), and the script of runtime.setup
// in the run directory. Blocking; any thread.
//
// A file of an order is checked against its hash, written beside its place under a name that nobody
// can guess (O_EXCL, O_NOFOLLOW) and renamed: nobody reads a part of it, and a symbolic link that
// lies in its place is replaced, not followed. Its directory must be one of the order's make_dirs,
// said in the same words. That directory, or one above it, may be a symbolic link: people keep
// outputs behind links. With `owner` the file system is asked with his rights, so that a link that
// he has put there leads no further than he could go himself.
#pragma once

#include "agent/host/launch_record.h"
#include "common/base/error.h"
#include "common/rundir/layout.h"
#include "muster/v1/agent_service.pb.h"

namespace muster::agent {

// of all of an order together: NodeLaunch's own bound
inline constexpr std::size_t kLaunchFilesMost = 12U << 20U;

// Errors: ResourceExhausted: no room; NotFound: what is to be changed, or has to be there, is not;
// InvalidArgument: never here, nor anywhere (a path that may not be written); DataLoss: not the
// bytes that the hash is of; Io: this node's trouble.
Result<void> write_launch_files(const v1::NodeLaunch& order, const rundir::RunLayout& run,
                                const UserEntry* owner);

}  // namespace muster::agent
