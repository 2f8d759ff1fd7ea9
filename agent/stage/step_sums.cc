#include "agent/stage/step_sums.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/base/controls.h"
#include "common/engine/model/layout.h"
#include "common/store/sums.h"

namespace muster::agent {

const store::Object* find_object(const store::Manifest& manifest, std::string_view name) {
  const auto found = std::ranges::lower_bound(manifest.objects, name, {}, &store::Object::name);
  return found == manifest.objects.end() || found->name != name ? nullptr : &*found;
}

Result<void> take_sums(std::string_view text, const std::string& sha256,
                       const std::set<std::string>& expected, StepSums& all) {
  if (!expected.empty() && !expected.contains(sha256))
    return fail(ErrorCode::DataLoss, "it is another one than its checkpoint was whole with");
  const auto sums = store::parse_sums(text);
  if (!sums) return fail(Error(sums.error()));
  if (sums->empty()) return fail(ErrorCode::DataLoss, "it has no file");
  for (const auto& [name, sum] : *sums) all[name].insert(sum);
  return {};
}

Result<void> keep_step(store::Manifest& manifest, const StepSums& sums) {
  std::set<std::string_view> missing;
  for (const auto& [name, sha256] : sums) missing.insert(name);
  std::erase_if(manifest.objects, [&](const store::Object& one) {
    return missing.erase(store::local_name(one.name)) == 0;
  });
  manifest.empty.clear();
  if (missing.empty()) return {};
  return fail(ErrorCode::Conflict,
              fmt::format("'{}' is not there, and the list of its checkpoint has it; take another "
                          "step, or upload it again",
                          without_controls(std::string(*missing.begin()))));
}

std::string first_damaged(const store::Contents& contents, const StepSums& sums) {
  for (const store::Content& one : contents.objects) {
    const auto expected = sums.find(store::local_name(one.name));
    if (expected != sums.end() && !expected->second.contains(one.sha256)) return one.name;
  }
  return {};
}

Result<std::map<std::string, std::string>> marks_of_step(const std::string& layout,
                                                         std::int64_t step) {
  const auto row = engine::make_layout(layout);
  if (!row) return fail(Error(row.error()));
  std::map<std::string, std::string> marks;
  for (const auto& [name, text] : (*row)->marks(step)) marks.emplace(name, text);
  return marks;
}

}  // namespace muster::agent
