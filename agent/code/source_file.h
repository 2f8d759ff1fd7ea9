// Errors of a file of this node that an order names: patched_files.h and needed_files.h report them
// in the same words, with the key of the spec. Nothing here keeps state. source_failed() may read
// directories (nearest_file.h); the others are pure.
#pragma once

#include <expected>
#include <string>
#include <string_view>

#include "common/base/error.h"
#include "muster/v1/agent_service.pb.h"

namespace muster::agent {

// "launch.patch: '/srv/a.yaml'"
std::string named_source(std::string_view key, std::string_view source);

// Error: InvalidArgument, the path is not absolute.
Result<void> check_source(std::string_view source);

// The error of a file that open(2), stat(2) or read(2) refuses. `error`: their errno.
//
// - NotFound (with the nearest name), NotAllowed, InvalidArgument (a path that leads nowhere): the
//   job's fault.
// - Io: a problem of this node.
std::unexpected<Error> source_failed(const v1::NodeLaunch& order, std::string_view key,
                                     const std::string& source, int error);

}  // namespace muster::agent
