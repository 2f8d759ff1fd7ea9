// Reads a job spec file, for the verbs that take one. Stateless functions that read files. One
// thread.
//
// "-" is standard input; then relative paths are below the current directory.
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

// Adds the options: the file and --set; or --env.
void add_spec_options(CLI::App& command, SpecOptions& into);
void add_env_option(CLI::App& command, SpecOptions& into);

// Returns a job, or the stages of a chain. All problems come back as one InvalidArgument error with
// a text "file:line:column: message" for each.
Result<spec::Parsed> load_spec(const SpecOptions& options);
// The same for a given text, with the options applied to it. Relative paths are below `base_dir`.
// Without `file` the problems have no positions.
Result<spec::Parsed> read_spec(const std::string& text, const std::string& base_dir,
                               const std::string& file, const SpecOptions& options);

// Applies the options to a complete spec (spec::set_over). Relative paths are below the current
// directory.
Result<void> set_over(v1::JobSpec& spec, const SpecOptions& options);

}  // namespace muster::client
