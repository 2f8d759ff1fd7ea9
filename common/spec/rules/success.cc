// The rules of success.
#include <fmt/format.h>

#include "common/engine/model/training_end.h"
#include "common/spec/rules/checks.h"

namespace muster::spec {
namespace {

void choose_means(Draft& draft, v1::SuccessSpec& success) {
  const std::string unknown_why = engine::no_last_step(draft.spec);
  // A node's script prints anything, and its ranks' lines may go into files of their own.
  const bool lines = draft.engine != nullptr && draft.engine->last_step &&
                     draft.spec.launch().per() != v1::LAUNCH_PER_NODE &&
                     engine::trains_surely(draft.spec);
  if (success.means_case() == v1::SuccessSpec::MEANS_NOT_SET && lines && unknown_why.empty())
    success.set_last_step(true);
  if (const std::string file = engine::rank_file(draft.spec);
      success.means_case() == v1::SuccessSpec::MEANS_NOT_SET && !file.empty())
    success.set_rank_file(file);
  if (success.means_case() == v1::SuccessSpec::MEANS_NOT_SET ||
      success.means_case() == v1::SuccessSpec::kExit0)
    success.set_exit0(true);
  if (success.means_case() != v1::SuccessSpec::kLastStep) return;
  success.set_last_step(true);
  if (!unknown_why.empty())
    draft.problem("success", fmt::format("last-step could not be determined: {} ({})", unknown_why,
                                         accepted_of("success")));
}

}  // namespace

void complete_success(Draft& draft) {
  v1::SuccessSpec& success = *draft.spec.mutable_success();
  choose_means(draft, success);
  if (success.means_case() == v1::SuccessSpec::kRegex)
    check_pattern(draft, "success.regex", success.regex(), 0);
  if (success.means_case() == v1::SuccessSpec::kFile && success.file().empty())
    draft.problem("success.file", fmt::format("is empty ({})", accepted_of("success.file")));
  if (success.means_case() == v1::SuccessSpec::kRankFile && success.rank_file().empty())
    draft.problem("success.rank_file", "is empty (a path, below ${out} unless absolute)");
}

}  // namespace muster::spec
