// Edits of a training program's own arguments. Engines make them for a node's script, the variable
// MUSTER_SHIM_EDITS carries them as one line of JSON, and muster's launcher shim applies them
// (docs/launcher-shim.md). Pure. Standard library and nlohmann-json only, because every `python` of
// a script starts the shim.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"

namespace muster {

struct ArgumentEdit {
  enum class Kind : std::uint8_t {
    OnlyWith,    // the edits below apply only if one of `options` is present
    OnlyScript,  // the edits below apply only to a program with the file name `value`
    Set,         // gives every `option` that has a value the new `value`
    Put,         // as Set; if no such option has a value, appends it at the end
    Drop,        // removes the flag `option`
    DropValue,   // removes `option` and its value
    Match,       // makes the flag `option` present exactly if the option `value` is present
    // Changes nothing: `option` has the directory to which the script would save. With the flag
    // `value` it would save weights alone.
    Saves,
    // Changes nothing. If the directory of `option` is one that an earlier job's script would have
    // saved to, that job's checkpoints replace it.
    Loads,
  };
  Kind kind{};
  std::string option = {};  // with its dashes: "--save"
  std::string value = {};
  std::vector<std::string> options = {};
  friend bool operator==(const ArgumentEdit&, const ArgumentEdit&) = default;
};
// Applied in this order.
using ArgumentEdits = std::vector<ArgumentEdit>;

// {"edits":[{"set":{"option":"--save","value":"/out"}},{"drop":"--finetune"}]}: one line, and the
// same edits always give the same text.
std::string json_of(const ArgumentEdits& edits);

// Empty text: no edits. Errors: InvalidArgument if it is no such JSON, has a field that is not
// known, or has an edit that names no option.
Result<ArgumentEdits> parse_edits(std::string_view json);

}  // namespace muster
