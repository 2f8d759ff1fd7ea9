#include "common/engine/model/template.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "common/engine/model/engine.h"
#include "common/engine/model/secret.h"
#include "common/text/words.h"

namespace muster::engine {
namespace {

// The list is closed: another name is an error, so that a typing mistake never reaches a training
// script.
constexpr std::array<std::string_view, 23> kNames = {
    "job.name",   "out",          "save.dir",    "attempt",    "rank",       "local_rank",
    "device_id",  "device_range", "node.rank",   "node.ip",    "nodes",      "devices",
    "world_size", "master.addr",  "master.port", "rank_table", "resume.dir", "resume.step",
    "start.dir",  "stages.S.out", "inputs.X",    "env:X",      "secret:X",
};

constexpr std::string_view kWordLetters =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
constexpr std::string_view kStageLetters = "abcdefghijklmnopqrstuvwxyz0123456789_-";

bool variable_name(std::string_view text) {
  const auto letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  return !text.empty() && letter(text[0]) &&
         std::ranges::all_of(text, [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

Result<void> check_name(std::string_view name) {
  if (name.starts_with("env:")) {
    if (variable_name(name.substr(4))) return {};
    return fail(
        ErrorCode::InvalidArgument,
        fmt::format(
            "'${{{}}}' does not name a variable (letters, digits and _, as in ${{env:HOME}})",
            name));
  }
  if (name.starts_with(kSecretPrefix))
    return fail(ErrorCode::InvalidArgument,
                fmt::format("'${{{}}}': a secret is the whole value of a variable, in runtime.env "
                            "or resume.env, and stands nowhere else: everybody on a machine sees "
                            "its command lines and many of its files",
                            name));
  if (name.starts_with("inputs.")) {
    const std::string_view input = name.substr(7);
    if (!input.empty() && input.size() <= 63 &&
        input.find_first_not_of(kWordLetters) == std::string_view::npos)
      return {};
    return fail(
        ErrorCode::InvalidArgument,
        fmt::format(
            "'${{{}}}' does not name an input (letters, digits and _, as in ${{inputs.data}})",
            name));
  }
  if (name.starts_with("stages.")) {
    const std::string_view stage =
        name.ends_with(".out") && name.size() > 11 ? name.substr(7, name.size() - 11) : "";
    if (!stage.empty() && stage.size() <= 63 &&
        stage.find_first_not_of(kStageLetters) == std::string_view::npos)
      return {};
    return fail(ErrorCode::InvalidArgument,
                fmt::format("'${{{}}}' is not known: of a stage there is its output directory, as "
                            "in ${{stages.prepare.out}}",
                            name));
  }
  if (std::ranges::find(kNames, name) != kNames.end()) return {};
  const std::string_view near = nearest(name, kNames);
  if (!near.empty())
    return fail(
        ErrorCode::InvalidArgument,
        fmt::format("'${{{}}}' is not known; did you mean '${{{}}}'? ($${{ is a literal ${{)", name,
                    near));
  return fail(ErrorCode::InvalidArgument,
              fmt::format("'${{{}}}' is not known (${{{}}}; $${{ is a literal ${{)", name,
                          fmt::join(kNames, "} ${")));
}

}  // namespace

std::span<const std::string_view> known_templates() { return kNames; }

Result<Template> Template::parse(std::string_view text) {
  Template result;
  std::string plain;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t dollar = text.find('$', at);
    if (dollar == std::string_view::npos || dollar + 1 == text.size()) break;
    plain.append(text.substr(at, dollar - at));
    at = dollar + 2;
    if (text[dollar + 1] == '$') {
      plain.push_back('$');
    } else if (text[dollar + 1] == '{') {
      const std::size_t end = text.find('}', at);
      if (end == std::string_view::npos)
        return fail(
            ErrorCode::InvalidArgument,
            fmt::format("'{}' has no closing }} ($${{ is a literal ${{)", text.substr(dollar, 24)));
      const std::string_view name = text.substr(at, end - at);
      if (auto known = check_name(name.substr(0, 256)); !known) return fail(known.error());
      if (!plain.empty()) result.parts_.push_back({.text = std::move(plain)});
      plain.clear();
      result.parts_.push_back({.text = std::string(name), .name = true});
      at = end + 1;
    } else {
      plain.append(text.substr(dollar, 2));
    }
  }
  plain.append(text.substr(std::min(at, text.size())));
  if (!plain.empty()) result.parts_.push_back({.text = std::move(plain)});
  return result;
}

Result<std::string> Template::expand(const TemplateValues& values, std::size_t most) const {
  std::string result;
  for (const Part& part : parts_) {
    if (part.name) {
      auto value = values.value(part.text);
      if (!value) return fail(std::move(value.error()));
      result += *value;
    } else {
      result += part.text;
    }
    if (result.size() > most)
      return fail(ErrorCode::InvalidArgument,
                  fmt::format("with its templates filled in it is longer than {} bytes", most));
  }
  return result;
}

std::vector<std::string> Template::names() const {
  std::vector<std::string> result;
  for (const Part& part : parts_)
    if (part.name) result.push_back(part.text);
  return result;
}

Result<std::vector<std::string>> template_names(std::string_view text) {
  auto parsed = Template::parse(text);
  if (!parsed) return fail(std::move(parsed.error()));
  return parsed->names();
}

}  // namespace muster::engine
