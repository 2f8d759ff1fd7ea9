// Reads a job spec file for the verbs that take one. "-" is standard input (relative paths are then below the current directory).
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "common/base/error.h"
#include "muster/v1/spec.pb.h"

namespace muster::client {

struct SpecOptions {
  std::string file;
  std::vector<std::string> set;            // a.b=value
  std::vector<std::string> env;            // K=V
};

// Problems come back as one InvalidArgument whose text has them all, "file:line:column: message" each.
Result<v1::JobSpec> load_spec(const SpecOptions& options);

}  // namespace muster::client
