// Applies muster's changes to the training program's own arguments: where it saves and what it
// loads. Pure.
//
// common/compat/arguments/edits.h has the meaning of each kind of edit. Both spellings of options
// are handled, `--name VALUE` and `--name=VALUE`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/compat/arguments/edits.h"

namespace muster::shim {

// `program` is the training program and its arguments.
void edit_arguments(const ArgumentEdits& edits, std::vector<std::string>& program);

// Gives every option of this name that has a value the new value. Returns whether there is one.
bool set_option(std::vector<std::string>& program, std::string_view name, std::string_view value);

// The directories that the script itself names before it is changed, from the options in the edits
// `saves` and `loads`. Empty if these edits do not apply.
struct ScriptOptions {
  std::string save;            // as written in the script; empty: it does not save
  bool weights_alone = false;  // without the optimizer
  std::string load;            // empty: it loads nothing, or no edit asks for it
};
ScriptOptions script_options(const ArgumentEdits& edits, const std::vector<std::string>& program);

// Returns the number of the first argument that has only blanks, counted from 1; 0: there is none.
// A backslash followed by a blank at the end of a script's line makes such an argument.
std::size_t blank_argument(const std::vector<std::string>& program);

}  // namespace muster::shim
