#include "agent/stage/step_sums.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "common/base/controls.h"

namespace muster::agent {

const store::Object* find_object(const store::Manifest& manifest, std::string_view name) {
  const auto found = std::ranges::lower_bound(manifest.objects, name, {}, &store::Object::name);
  return found == manifest.objects.end() || found->name != name ? nullptr : &*found;
}

Result<void> keep_step(store::Manifest& manifest, const store::Sums& sums,
                       const engine::CheckpointLayout& layout) {
  std::set<std::string> missing;
  for (const auto& [name, sha256] : sums) missing.insert(name);
  std::erase_if(manifest.objects, [&](const store::Object& one) {
    const std::string name = store::local_name(one.name);
    if (missing.erase(name) > 0) return false;
    return !layout.is_mark(std::string_view(name).substr(name.rfind('/') + 1));
  });
  manifest.empty.clear();
  if (missing.empty()) return {};
  return fail(ErrorCode::Conflict,
              fmt::format("'{}' is not there, and the list of its checkpoint has it; take another "
                          "step, or upload it again",
                          without_controls(*missing.begin())));
}

std::string first_damaged(const store::Contents& contents, const store::Sums& sums) {
  for (const store::Content& one : contents.objects) {
    const auto expected = sums.find(store::local_name(one.name));
    if (expected != sums.end() && expected->second != one.sha256) return one.name;
  }
  return {};
}

}  // namespace muster::agent
