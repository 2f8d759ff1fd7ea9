// The rules of a stage: its job is called CHAIN.STAGE, and `creates` becomes the job's success if
// the spec has none.
#include <fmt/format.h>

#include <string_view>

#include "common/engine/model/engine.h"
#include "common/spec/keys/names.h"
#include "common/spec/keys/values.h"
#include "common/spec/rules/checks.h"

namespace muster::spec {
namespace {

constexpr std::size_t kCreatesMax = 4096, kStageKeyDigits = 64;

// Before a rank exists, ${out} is the only template that the controller can fill in here.
std::string creates_problem(std::string_view path) {
  const std::string_view accepted = accepted_of("stages.NAME.creates");
  if (path.size() > kCreatesMax)
    return fmt::format("has {} bytes, at most {}", path.size(), kCreatesMax);
  const auto names = engine::template_names(path);
  if (!names) return names.error().message;
  for (const std::string& name : *names)
    if (name != "out")
      return fmt::format("'${{{}}}' is not filled in here, only ${{out}} is ({})", shown(name),
                         accepted);
  if (climbs(path))
    return fmt::format("'{}' goes up by '..'; write where it is ({})", shown(path), accepted);
  const std::string_view below = path.starts_with("${out}") ? path.substr(6) : path;
  if (below.find_first_not_of("./") == std::string_view::npos)
    return fmt::format("'{}' is there before the stage is; name what the stage makes ({})",
                       shown(path), accepted);
  return {};
}

}  // namespace

void complete_stage(Draft& draft) {
  v1::JobSpec& spec = draft.spec;
  if (!spec.has_stage()) return;
  const v1::StageSpec& stage = spec.stage();
  if (!is_stage_name(stage.name()))
    draft.problem(
        "stage.name",
        fmt::format("'{}' is not a stage's name (a-z 0-9 _ -, a letter or digit first and last)",
                    shown(stage.name())));
  if (spec.name() != fmt::format("{}.{}", stage.chain_name(), stage.name()))
    draft.problem("stage.chain_name",
                  fmt::format("stage '{}' of chain '{}' is a job '{}.{}', not '{}'",
                              shown(stage.name()), shown(stage.chain_name()),
                              shown(stage.chain_name()), shown(stage.name()), shown(spec.name())));
  if (stage.number() > stage.count() || stage.count() > kStagesMost)
    draft.problem("stage.number", fmt::format("{} of {} is out of range (a chain has 1..{} stages)",
                                              stage.number(), stage.count(), kStagesMost));
  if (!stage.key().empty() &&
      (stage.key().size() != kStageKeyDigits ||
       stage.key().find_first_not_of("0123456789abcdef") != std::string::npos))
    draft.problem("stage.key", "is no SHA-256 (64 hexadecimal digits)");
  if (stage.creates().empty()) return;
  if (std::string wrong = creates_problem(stage.creates()); !wrong.empty())
    return draft.problem("stage.creates", std::move(wrong));
  if (!spec.has_success() || spec.success().means_case() == v1::SuccessSpec::MEANS_NOT_SET)
    spec.mutable_success()->set_file(stage.creates());
}

}  // namespace muster::spec
