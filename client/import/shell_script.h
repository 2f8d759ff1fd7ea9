// Finds the shell script of a command line, and warns about a script that computes values from the
// placement. Stateless functions; the only I/O is reading the script.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace muster::import {

struct ShellScript {
  std::string name;  // as in the command line; empty: none, or not readable here
  std::string text;
};
// Accepts `bash x.sh` and `./x.sh`; relative paths are below `directory`.
ShellScript shell_script_of(const std::vector<std::string>& command, const std::string& directory);

// For launch.per: node. Returns a line for each value that the script computes from its own setting
// of something that muster replaces, such as NNODES. `replaced` are the variables whose assignments
// the spec replaces (launch.vars); muster sets these.
std::vector<std::string> computed_warnings(const ShellScript& script,
                                           const std::vector<std::string>& replaced);
// Returns a line for each --no-save-optim: no job can resume from what the script saves then.
std::vector<std::string> weights_warnings(const ShellScript& script,
                                          const std::vector<std::string>& replaced);

}  // namespace muster::import
