// Applies muster's changes to the training program's own arguments: where it saves and what it
// loads. Pure.
//
// MUSTER_SHIM_EDITS has one change in each line, with the verbs of docs/launcher-shim.md. Both
// spellings of options are handled, `--name VALUE` and `--name=VALUE`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"

namespace muster::shim {

// `program` is the training program and its arguments. Errors: a line is no valid change.
Result<void> edit_arguments(std::string_view edits, std::vector<std::string>& program);

// The directories that the script itself names before it is changed, from the options in the lines
// `saves` and `loads`. Empty if these lines do not apply.
struct ScriptOptions {
  std::string save;            // as written in the script; empty: it does not save
  bool weights_alone = false;  // without the optimizer
  std::string load;            // empty: it loads nothing, or no line asks for it
};
ScriptOptions script_options(std::string_view edits, const std::vector<std::string>& program);

// Returns the number of the first argument that has only blanks, counted from 1; 0: there is none.
// A backslash followed by a blank at the end of a script's line makes such an argument.
std::size_t blank_argument(const std::vector<std::string>& program);

}  // namespace muster::shim
