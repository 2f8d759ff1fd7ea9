// Changed copies of configurations and scripts. The file is the input; its lines "#at PLACE: VALUE"
// are the changes, and "#var NAME=VALUE" the assignments.
#include <algorithm>
#include <string>
#include <vector>

#include "common/base/utf8.h"
#include "common/compat/patch/patch.h"
#include "common/compat/patch/path.h"
#include "common/compat/patch/shell_vars.h"
#include "tests/fuzz/target.h"

namespace muster::fuzz {
namespace {

constexpr std::size_t kChangesMax = 16;

void check_file(std::string_view input, const char* name,
                const std::vector<patch::Change>& changes) {
  const auto changed = patch::changed_file(name, input, changes);
  if (!changed)
    return require(is_message(changed.error().message), "an error is a sentence",
                   changed.error().message);
  require(is_utf8(*changed), "a copy is text");
  const auto again = patch::changed_file(name, *changed, {});
  if (!again) {
    // The values of changes may have made it deeper than a file may be.
    return require(!changes.empty() && is_message(again.error().message), "a copy can be read",
                   again.error().message);
  }
  require(*again == *changed, "a copy of a copy is the copy", *changed);
}

}  // namespace

void patch(std::string_view input) {
  std::vector<patch::Change> changes;
  patch::Variables variables;
  for (std::size_t at = 0;
       at < input.size() && changes.size() < kChangesMax && variables.size() < kChangesMax;) {
    const std::size_t end = std::min(input.find('\n', at), input.size());
    const std::string_view line = input.substr(at, end - at);
    at = end + 1;
    const std::size_t colon = line.find(": "), equals = line.find('=');
    if (line.starts_with("#at ") && colon != std::string_view::npos)
      changes.push_back(
          {std::string(line.substr(4, colon - 4)), std::string(line.substr(colon + 2))});
    if (line.starts_with("#var ") && equals != std::string_view::npos && equals > 5)
      variables[std::string(line.substr(5, equals - 5))] = std::string(line.substr(equals + 1));
  }
  for (const char* name : {"a.yaml", "a.json"}) {
    check_file(input, name, {});
    if (!changes.empty()) check_file(input, name, changes);
  }
  for (const patch::Change& change : changes) {
    const auto steps = patch::parse_path(change.at);
    if (!steps)
      require(is_message(steps.error().message), "an error is a sentence", steps.error().message);
    // escaped text becomes longer
    if (steps && 2 * change.at.size() <= patch::kPathBytesMax) {
      const auto again = patch::parse_path(patch::path_text(*steps, steps->size()));
      require(again && again->size() == steps->size(), "a place is read back as it is", change.at);
    }
  }
  const auto script = patch::replaced_assignments("a.sh", input, variables);
  if (!script)
    require(is_message(script.error().message), "an error is a sentence", script.error().message);
  if (script && variables.empty())
    require(*script == input, "nothing to replace is nothing replaced");
}

}  // namespace muster::fuzz
