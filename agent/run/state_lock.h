// Takes the lock of an agent's state directory: flock on `lock`, which also has the pid of its
// owner and the start time of that process. Blocking, about a second at most; any thread. The
// caller owns the descriptor, and with it the lock.
//
// The kernel frees the lock when the last thread of the owner is gone. A thread that hangs in the
// kernel (a dead disk) stays after SIGKILL, and the lock with it. Such an owner runs no program any
// more, and its first thread is a zombie already. take_state_lock() then replaces the file, and the
// old file stays locked without a name.
//
// Agents take turns by a lock of the directory while they look and decide, so that none replaces a
// file that another one has just locked. Where a directory cannot be locked (NFS), nothing is
// replaced.
#pragma once

#include "common/base/error.h"
#include "common/io/unique_fd.h"
#include "common/rundir/layout.h"

namespace muster::agent {

// Conflict: a running agent has it.
Result<io::UniqueFd> take_state_lock(const rundir::AgentLayout& layout);

}  // namespace muster::agent
