#include "client/commands/job/plan_code.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>

#include "client/render/text.h"
#include "common/compat/code_patch/builtin.h"
#include "common/compat/code_patch/unified.h"
#include "common/engine/model/engine.h"

namespace muster::client {
namespace {

constexpr std::size_t kFilesShown = 50;

std::string patch_lines(const v1::CodePatch& patch) {
  if (patch.name().starts_with(code_patch::kBuiltinScheme)) {
    const code_patch::Builtin* builtin = code_patch::find_builtin(
        std::string_view(patch.name()).substr(code_patch::kBuiltinScheme.size()));
    if (builtin == nullptr) return fmt::format("{}\n", patch.name());
    return fmt::format("{}: {}\n  {}\n", patch.name(), builtin->summary, builtin->files);
  }
  std::string out = fmt::format("{} ({} bytes)\n", patch.name(), patch.content().size());
  const auto files = code_patch::read_diff(patch.content());
  if (!files) return out + "  " + files.error().message + "\n";
  for (std::size_t i = 0; i < files->size() && i < kFilesShown; ++i) {
    const code_patch::DiffFile& file = (*files)[i];
    out += fmt::format("  {}{}{} +{} -{}\n", file.name,
                       file.created   ? " (new)"
                       : file.deleted ? " (goes away)"
                                      : "",
                       file.old_name.empty() ? "" : fmt::format(" (was {})", file.old_name),
                       file.added, file.removed);
  }
  if (files->size() > kFilesShown)
    out += fmt::format("  and {} more\n", files->size() - kFilesShown);
  return out;
}

// Finds texts that contain the code's own path: the files at that path do not have the patches.
std::map<std::string, std::string> outside_the_copy(const v1::JobSpec& spec) {
  std::string code = spec.code().at();
  while (code.size() > 1 && code.ends_with('/')) code.pop_back();
  const auto names = [&](std::string_view text) {
    for (std::size_t at = text.find(code); at != std::string_view::npos;
         at = text.find(code, at + 1)) {
      const char behind = at + code.size() < text.size() ? text[at + code.size()] : ':';
      if (behind == '/' || behind == ':' || behind == ' ' || behind == '\'' || behind == '"')
        return true;
    }
    return false;
  };
  std::map<std::string, std::string> found;
  for (int i = 0; i < spec.launch().run_size(); ++i)
    if (names(spec.launch().run(i))) found[fmt::format("launch.run[{}]", i)] = spec.launch().run(i);
  for (const auto& [name, value] : spec.runtime().env())
    if (names(value)) found[fmt::format("runtime.env.{}", name)] = value;
  for (int i = 0; i < spec.runtime().setup_size(); ++i)
    if (names(spec.runtime().setup(i)))
      found[fmt::format("runtime.setup[{}]", i)] = spec.runtime().setup(i);
  return found;
}

}  // namespace

std::vector<std::string> code_warnings(const v1::JobSpec& spec) {
  std::vector<std::string> lines;
  if (spec.code().patches().empty()) return lines;
  for (const auto& [key, text] : outside_the_copy(spec))
    lines.push_back(fmt::format(
        "{} names the code without the patches ({}); write it relative to the code directory", key,
        text));
  return lines;
}

std::string code_patches_text(const v1::JobSpec& spec, const render::Style& style) {
  if (spec.code().patches().empty()) return {};
  std::string out;
  const auto note = [&](render::Tint tint, std::string_view text) {
    while (!text.empty()) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      out += style.paint(tint, "# " + render::printable(text.substr(0, end))) + "\n";
      text.remove_prefix(std::min(end + 1, text.size()));
    }
  };
  note(render::Tint::Dim,
       fmt::format(
           "code.patches: node K copies {} to {} and puts on it, in this order:", spec.code().at(),
           engine::code_dir(spec, "${out}", 0)
               .replace(std::string_view("${out}/code/node-").size(), 1, "K")));
  for (const v1::CodePatch& patch : spec.code().patches())
    note(render::Tint::Dim, patch_lines(patch));
  for (const std::string& line : code_warnings(spec)) note(render::Tint::Warn, line);
  return out;
}

}  // namespace muster::client
