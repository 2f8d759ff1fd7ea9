#include "common/spec/complete_schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>

#include "common/spec/key_table.h"
#include "common/spec/values.h"

namespace muster::spec {
namespace {

// A job's name, a whole id, or the beginning of one: letters and digits are in all of them.
bool may_be_job(std::string_view text) {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz0123456789._-";
  return text == "@last" || (!text.empty() && text.size() <= 63 && text.find_first_not_of(kLetters) == std::string_view::npos);
}

}  // namespace

void complete_schedule(v1::JobSpec& spec, const std::function<void(std::string key, std::string message)>& problem) {
  const auto& after = spec.schedule().after();
  if (after.empty()) return spec.clear_schedule();
  const std::string_view accepted = find_key("schedule.after")->accepted;
  if (after.size() > kAfterMost) return problem("schedule.after", fmt::format("names {} jobs ({})", after.size(), accepted));
  std::set<std::string_view> seen;
  for (int i = 0; i < after.size(); ++i) {
    const std::string key = fmt::format("schedule.after[{}]", i);
    if (!may_be_job(after[i]))
      problem(key, fmt::format("'{}' is no job's name or id ({})", shown(after[i]), accepted));
    else if (after[i] == spec.name())
      problem(key, fmt::format("'{}' is this job itself; an earlier job of that name is named by its id", after[i]));
    else if (!seen.insert(after[i]).second)
      problem(key, fmt::format("'{}' is there twice", after[i]));
  }
}

}  // namespace muster::spec
