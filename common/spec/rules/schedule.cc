// The rules of schedule: whether the names in it can be jobs.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>

#include "common/spec/keys/names.h"
#include "common/spec/keys/values.h"
#include "common/spec/rules/checks.h"

namespace muster::spec {
namespace {

constexpr int kAfterMost = 64;  // jobs that one job may wait for

}  // namespace

void complete_schedule(Draft& draft) {
  v1::JobSpec& spec = draft.spec;
  const auto& after = spec.schedule().after();
  // Such a spec equals one without a schedule.
  if (after.empty()) return spec.clear_schedule();
  const std::string_view accepted = accepted_of("schedule.after");
  if (after.size() > kAfterMost)
    return draft.problem("schedule.after",
                         fmt::format("names {} jobs ({})", after.size(), accepted));
  std::set<std::string_view> seen;
  for (int i = 0; i < after.size(); ++i) {
    const std::string key = fmt::format("schedule.after[{}]", i);
    const Source source = source_of(after[i]);
    const bool stage = spec.has_stage() && source.kind == "stage" && is_stage_name(source.name) &&
                       !source.slash && source.name != spec.stage().name();
    if (!stage && !may_be_job(after[i]))
      draft.problem(key,
                    fmt::format("'{}' is no job's name or id ({})", shown(after[i]), accepted));
    else if (after[i] == spec.name())
      draft.problem(
          key,
          fmt::format("'{}' is this job itself; an earlier job of that name is named by its id",
                      after[i]));
    else if (!seen.insert(after[i]).second)
      draft.problem(key, fmt::format("'{}' is there twice", after[i]));
  }
}

}  // namespace muster::spec
