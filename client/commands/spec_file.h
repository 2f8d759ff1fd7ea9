// Reads a job spec file for the verbs that take one. "-" is standard input (relative paths are then below the current directory).
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "muster/v1/spec.pb.h"

namespace muster::client {

struct SpecOptions {
  std::string file;
  std::vector<std::string> set;  // a.b=value
  std::vector<std::string> env;  // K=V
};

// The file, --set; --env.
void add_spec_options(CLI::App& command, SpecOptions& into);
void add_env_option(CLI::App& command, SpecOptions& into);

// Problems come back as one InvalidArgument whose text has them all, "file:line:column: message" each.
Result<v1::JobSpec> load_spec(const SpecOptions& options);
// The same of a text that is in hand, with the options over it; relative paths are below `base_dir`. Without `file` the problems have no places.
Result<v1::JobSpec> read_spec(const std::string& text, const std::string& base_dir, const std::string& file, const SpecOptions& options);

}  // namespace muster::client
