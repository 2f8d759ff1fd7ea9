// The rules of inputs.
#include <fmt/format.h>

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "common/spec/keys/names.h"
#include "common/spec/keys/values.h"
#include "common/spec/rules/checks.h"
#include "common/store/selection.h"
#include "common/store/store_url.h"

namespace muster::spec {
namespace {

constexpr int kInputsMost = 64;
constexpr std::string_view kInputForms =
    "a path, absolute or relative to the spec's directory | URL of a store | stage:S/DIR | "
    "job:J/DIR";

}  // namespace

void check_inputs(Draft& draft) {
  const v1::JobSpec& spec = draft.spec;
  if (spec.inputs_size() > kInputsMost)
    return draft.problem(
        "inputs", fmt::format("has {} entries ({})", spec.inputs_size(), accepted_of("inputs")));
  std::set<std::string_view> names, variables;
  for (const v1::InputSpec& input : spec.inputs()) {
    const std::string key = fmt::format("inputs.{}", shown(input.name()));
    if (!is_input_name(input.name()))
      draft.problem(key, "is not an input's name (letters, digits and _, at most 63 characters)");
    else if (!names.insert(input.name()).second)
      draft.problem(key, "is there twice");
    const Source source = source_of(input.from());
    if (input.from().empty())
      draft.problem(key, fmt::format("does not say where it is ({})", kInputForms));
    else if (store::is_url(input.from())) {
      if (const auto url = store::parse_url(input.from()); !url)
        draft.problem(key, fmt::format("'{}': {}", shown(input.from()), url.error().message));
      else if (const auto sound = store::Selection::check(
                   std::vector<std::string>(input.include().begin(), input.include().end()));
               !sound)
        draft.problem(key + ".include", sound.error().message);
    } else if (!input.include().empty())
      draft.problem(key + ".include",
                    fmt::format("'{}' is used in place, whole; include is for the URL of a store",
                                shown(input.from())));
    else if (std::string wrong = source_problem(spec, input.from(), kInputForms); !wrong.empty())
      draft.problem(key, std::move(wrong));
    else if (!source.kind.empty() && source.below.empty())
      draft.problem(
          key, fmt::format("'{}' names nothing below the output directory of that {} ({}:{}/DIR)",
                           shown(input.from()), source.kind, source.kind, source.name));
    const std::string& variable = input.env();
    if (variable.empty()) continue;
    const std::string at = fmt::format("inputs.{}.env", shown(input.name()));
    if (!is_variable_name(variable))
      draft.problem(
          at,
          fmt::format("'{}' is not a variable's name (letters, digits and _, not a digit first)",
                      shown(variable)));
    else if (draft.engine != nullptr && engine::is_identity(*draft.engine, variable))
      draft.problem(
          at, fmt::format("'{}' is set by muster for every rank, each its own; choose another name",
                          variable));
    else if (spec.runtime().env().contains(variable))
      draft.problem(
          at, fmt::format("'{}' is set by runtime.env, too; leave one of the two out", variable));
    else if (!variables.insert(variable).second)
      draft.problem(at, fmt::format("'{}' is the variable of another input, too", variable));
  }
}

}  // namespace muster::spec
