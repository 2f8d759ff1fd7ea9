#include "common/engine/model/secret.h"

#include <fmt/format.h>

#include "common/base/names.h"

namespace muster::engine {
namespace {

constexpr std::string_view kOpen = "${secret:";

// Whether the text names a secret: "$${secret:x}" is a text.
bool has_reference(std::string_view value) {
  for (std::size_t at = 0; at + 1 < value.size();) {
    const std::size_t dollar = value.find('$', at);
    if (dollar == std::string_view::npos) return false;
    if (value.substr(dollar).starts_with(kOpen)) return true;
    at = dollar + (value.substr(dollar).starts_with("$$") ? 2 : 1);
  }
  return false;
}

}  // namespace

Result<std::optional<std::string>> secret_of(std::string_view value) {
  if (!has_reference(value)) return std::nullopt;
  const bool whole =
      value.starts_with(kOpen) && value.find('}') == value.size() - 1 && value.ends_with('}');
  if (!whole)
    return fail(ErrorCode::InvalidArgument,
                "a secret is the whole value of a variable, as in ${secret:hf-token}; put what "
                "stands beside it into the secret, too");
  const std::string_view name =
      value.substr(kOpen.size(), value.size() - kOpen.size() - std::string_view("}").size());
  if (!is_node_name(name))
    return fail(ErrorCode::InvalidArgument,
                fmt::format("'{}' is no name of a secret (letters, digits, '.', '_', '-', at most "
                            "63, the first a letter or digit)",
                            name.substr(0, 64)));
  return std::string(name);
}

std::map<std::string, std::string> secrets_of(const v1::JobSpec& spec) {
  std::map<std::string, std::string> found;
  const auto add = [&](std::string_view key, const auto& environment) {
    for (const auto& [variable, value] : environment) {
      if (auto secret = secret_of(value); secret && *secret)
        found.emplace(fmt::format("{}.{}", key, variable), **std::move(secret));
    }
  };
  add("runtime.env", spec.runtime().env());
  add("resume.env", spec.resume().env());
  return found;
}

}  // namespace muster::engine
