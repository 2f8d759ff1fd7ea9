#include "common/spec/complete_schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>

#include "common/spec/key_table.h"
#include "common/spec/names.h"
#include "common/spec/values.h"

namespace muster::spec {
void complete_schedule(v1::JobSpec& spec,
                       const std::function<void(std::string key, std::string message)>& problem) {
  const auto& after = spec.schedule().after();
  if (after.empty()) return spec.clear_schedule();
  const std::string_view accepted = find_key("schedule.after")->accepted;
  if (after.size() > kAfterMost)
    return problem("schedule.after", fmt::format("names {} jobs ({})", after.size(), accepted));
  std::set<std::string_view> seen;
  for (int i = 0; i < after.size(); ++i) {
    const std::string key = fmt::format("schedule.after[{}]", i);
    const Source source = source_of(after[i]);
    const bool stage = spec.has_stage() && source.kind == "stage" && is_stage_name(source.name) &&
                       !source.slash && source.name != spec.stage().name();
    if (!stage && !may_be_job(after[i]))
      problem(key, fmt::format("'{}' is no job's name or id ({})", shown(after[i]), accepted));
    else if (after[i] == spec.name())
      problem(key,
              fmt::format("'{}' is this job itself; an earlier job of that name is named by its id",
                          after[i]));
    else if (!seen.insert(after[i]).second)
      problem(key, fmt::format("'{}' is there twice", after[i]));
  }
}

}  // namespace muster::spec
