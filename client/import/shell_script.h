// The shell script of a command line, and what is said of one that computes from the placement.
// Reads a file, nothing else.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace muster::import {

struct ShellScript {
  std::string name;  // as the command line has it; empty: there is none, or it cannot be read here
  std::string text;
};
// `bash x.sh`, `./x.sh`: relative ones are below `directory`.
ShellScript shell_script_of(const std::vector<std::string>& command, const std::string& directory);

// With launch.per: node: a line for each value that the script computes from its own idea of what
// muster replaces, as NNODES. `replaced`: variables whose assignments the spec replaces
// (launch.vars), which are muster's then.
std::vector<std::string> computed_warnings(const ShellScript& script,
                                           const std::vector<std::string>& replaced);
// A line for each --no-save-optim: what the script saves then is nothing to go on from.
std::vector<std::string> weights_warnings(const ShellScript& script,
                                          const std::vector<std::string>& replaced);

}  // namespace muster::import
