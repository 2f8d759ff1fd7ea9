// Reads a job spec file for the verbs that take one. "-" is standard input (relative paths are then
// below the current directory).
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "common/spec/parse.h"

namespace muster::client {

struct SpecOptions {
  std::string file;
  std::vector<std::string> set;  // a.b=value
  std::vector<std::string> env;  // K=V
};

// The file, --set; --env.
void add_spec_options(CLI::App& command, SpecOptions& into);
void add_env_option(CLI::App& command, SpecOptions& into);

// A job, or the stages of a chain; problems come back as one InvalidArgument whose text has them
// all, "file:line:column: message" each.
Result<spec::Parsed> load_spec(const SpecOptions& options);
// The same of a text that is in hand, with the options over it; relative paths are below
// `base_dir`. Without `file` the problems have no places.
Result<spec::Parsed> read_spec(const std::string& text, const std::string& base_dir,
                               const std::string& file, const SpecOptions& options);

// The options over a spec that is complete (spec::set_over); relative paths are below the current
// directory.
Result<void> set_over(v1::JobSpec& spec, const SpecOptions& options);

}  // namespace muster::client
