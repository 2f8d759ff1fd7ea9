// What muster changes in the training program's own arguments: where checkpoints go and what is
// loaded. MUSTER_SHIM_EDITS, a line each; the words are those of docs/launcher-shim.md. Options in
// both spellings, `--name VALUE` and `--name=VALUE`. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"

namespace muster::shim {

// `program`: the training program and its arguments. Errors: a line that is none of these.
Result<void> edit_arguments(std::string_view edits, std::vector<std::string>& program);

// What the script itself says of directories, before it is changed: of the options that the lines
// `saves` and `loads` name. Nothing where these do not count.
struct ScriptOptions {
  std::string save;            // as it stands there; empty: it saves nowhere
  bool weights_alone = false;  // and would save no optimizer
  std::string load;            // empty: it loads nothing, or nobody asks
};
ScriptOptions script_options(std::string_view edits, const std::vector<std::string>& program);

// The number of the first argument that is nothing but blanks, from 1 on; 0: none is. A backslash
// with a blank behind it at the end of a script's line makes one.
std::size_t blank_argument(const std::vector<std::string>& program);

}  // namespace muster::shim
