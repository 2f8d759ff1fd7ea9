// complete() fills in every default and checks how values work together, by the rules of the
// sections. It is the same for a YAML file (parse.cc adds the positions of the problems) and for a
// spec from the API, where nothing was checked before.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "common/engine/model/engine.h"
#include "common/spec/keys/key_table.h"
#include "common/spec/keys/values.h"
#include "common/spec/parse.h"
#include "common/spec/rules/rules.h"
#include "common/spec/strings.h"
#include "common/spec/yaml_tree.h"

namespace muster::spec {
namespace {

// Problems are in this order, and later rules need what earlier ones fill in.
constexpr auto kRules = std::to_array<void (*)(Draft&)>(
    {complete_job, complete_code, complete_runtime, complete_launch, complete_arguments,
     complete_resources, complete_network, complete_stage, complete_checkpoint, complete_resume,
     check_outputs, complete_start, check_inputs, complete_observe, complete_success,
     complete_recovery, complete_schedule});

}  // namespace

std::vector<Problem> complete(v1::JobSpec& spec, const v1::ResolvedSpec* resolved) {
  std::vector<Problem> problems;
  // Keeps at most kProblemsMax problems: each is compared with all earlier ones, and a spec of the
  // API may have a problem in every word.
  const auto add = [&](std::string key, const std::string& message) {
    if (problems.size() < kProblemsMax &&
        std::ranges::find(problems, key, &Problem::key) == problems.end())
      problems.push_back({.key = std::move(key), .message = readable(message)});
  };
  if (spec.ByteSizeLong() > kSpecBytesMax) {
    add("", fmt::format(
                "the spec has {} bytes, more than the {} that one may have; put data into files",
                spec.ByteSizeLong(), kSpecBytesMax));
    return problems;
  }
  for (const std::string& field : strings_with_nul(spec))
    add(key_of_field(field), "has a byte 0 in it: no program can be given that");
  if (!problems.empty()) return problems;
  Draft draft{.spec = spec, .problem = add};
  for (const auto rule : kRules) rule(draft);
  for (const std::string& field : lines_with_controls(spec))
    add(key_of_field(field), "has control characters in it");
  if (draft.too_many_words) return problems;
  for (engine::KeyedProblem& found : engine::check_launch(spec, resolved))
    add(std::move(found.key), found.message);
  return problems;
}

}  // namespace muster::spec
