// Functions that find and read the files that a Fetch of another node's order requests from this
// node. They keep no state. They block, and may run on any thread.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "agent/launch/launch_record.h"
#include "common/base/error.h"
#include "muster/v1/agent_service.pb.h"

namespace muster::agent {

// Returns the names below `what.path`: with a layout the files of the one step, else all. Only
// regular files count, sorted by name. NotFound: there are none.
Result<std::vector<std::string>> files_wanted(const v1::Fetch& what);

// Passes those files to `part`, in order, with FilesEnd last, until `part` returns false. Reads
// with the rights of `user` (nullptr: the agent's own). Links are neither followed nor sent. The
// text of an error goes into FilesFailed: a file disappeared or changed while it was read.
Result<void> read_files(const v1::Fetch& what, const UserEntry* user,
                        const std::function<bool(v1::FilePart)>& part);

}  // namespace muster::agent
