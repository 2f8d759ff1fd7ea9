// What a Bring of another node's order means on this node's disk: which files, by name and size.
// Blocking; any thread.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "agent/host/launch_record.h"
#include "common/base/error.h"
#include "muster/v1/agent_service.pb.h"

namespace muster::agent {

// Below `what.path`: of a layout those of the one step, else all; regular files alone, in order of
// their names. NotFound: there is none.
Result<std::vector<std::string>> files_wanted(const v1::Fetch& what);

// Those files, part after part, FilesEnd last, to `part`, which returns false when no more are
// taken. Read with the rights of `user` (nullptr: the agent's own). Links are neither followed nor
// sent. An error is what FilesFailed says: a file that has gone, or changes while it is read.
Result<void> read_files(const v1::Fetch& what, const UserEntry* user,
                        const std::function<bool(v1::FilePart)>& part);

}  // namespace muster::agent
