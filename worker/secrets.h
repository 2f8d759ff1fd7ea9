// Reads the values of the launch record's secrets, which the agent puts into the worker's standard
// input (rundir.proto, SecretValues). A plain function; Supervisor calls it on the worker's one
// thread, before any process is started.
#pragma once

#include <string>
#include <vector>

#include "common/base/error.h"
#include "muster/rundir/v1/rundir.pb.h"

namespace muster::worker {

// The controller gives at most 1 MiB to a process.
inline constexpr std::size_t kSecretsBytesMost = 2 << 20;

// NAME=value, one for each secret of the record; without secrets nothing is read. `fd` is read to
// its end: a file in memory, or a pipe of the container's tool, which has the bytes already.
// Afterwards nothing of the values is left in the descriptor, which becomes /dev/null.
Result<std::vector<std::string>> read_secrets(const rundir::v1::Launch& launch, int fd);

}  // namespace muster::worker
