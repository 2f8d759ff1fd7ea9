#include "common/engine/model/named_dirs.h"

#include <fmt/format.h>

#include <vector>

#include "common/engine/model/arguments.h"
#include "common/engine/model/rows.h"

namespace muster::engine {
namespace {

// "/a/./b/../c/" becomes "/a/c". The path is only changed as text; the file system is not read.
std::string without_dots(std::string_view path) {
  std::vector<std::string_view> parts;
  while (!path.empty()) {
    const std::size_t end = std::min(path.find('/'), path.size());
    const std::string_view part = path.substr(0, end);
    path.remove_prefix(std::min(end + 1, path.size()));
    if (part == ".." && !parts.empty()) parts.pop_back();
    if (!part.empty() && part != "." && part != "..") parts.push_back(part);
  }
  std::string text;
  for (const std::string_view part : parts) text += fmt::format("/{}", part);
  return text.empty() ? "/" : text;
}

std::string absolute(const v1::JobSpec& spec, const CommandLine& command, std::string_view name) {
  const auto option = find_option(command, name);
  if (!option || !option->has_value || option->value.empty() ||
      option->value.find('$') != std::string_view::npos)
    return {};
  if (option->value.starts_with('/')) return without_dots(option->value);
  const std::string& cwd = spec.launch().cwd();
  if (cwd.find('$') != std::string::npos || !spec.code().at().starts_with('/')) return {};
  const std::string below =
      cwd.starts_with('/') ? cwd : fmt::format("{}/{}", spec.code().at(), cwd);
  return without_dots(fmt::format("{}/{}", below, option->value));
}

}  // namespace

NamedDirs named_dirs(const v1::JobSpec& spec) {
  const Engine* engine = find_engine(spec.engine());
  if (engine == nullptr || !engine->names_dirs || spec.launch().per() == v1::LAUNCH_PER_NODE)
    return {};
  const CommandLine command = spec_words(spec);
  return {.save = absolute(spec, command, "--save"), .load = absolute(spec, command, "--load")};
}

}  // namespace muster::engine
