#include "client/commands/job/plan_patches.h"

#include <fmt/format.h>

#include <filesystem>
#include <functional>
#include <system_error>
#include <vector>

#include "client/render/line_diff.h"
#include "client/render/text.h"
#include "common/compat/patch/patch.h"
#include "common/compat/patch/shell_vars.h"
#include "common/engine/patch_plan.h"
#include "common/io/file.h"

namespace muster::client {
namespace {

// Returns the file as it is, and as the copy will be.
Result<std::pair<std::string, std::string>> both(const engine::FilePatch& file,
                                                 const std::string& text) {
  std::pair<std::string, std::string> texts{text, text};
  if (!file.items.empty()) {
    std::vector<patch::Change> changes;
    for (const auto& [at, value] : file.items) changes.push_back({.at = at, .value = value});
    auto before = patch::changed_file(file.source, text, {});
    if (!before) return fail(std::move(before.error()));
    auto after = patch::changed_file(file.source, text, changes);
    if (!after) return fail(std::move(after.error()));
    texts = {std::move(*before), std::move(*after)};
  }
  if (file.vars.empty()) return texts;
  auto after = patch::replaced_assignments(file.source, texts.second, file.vars);
  if (!after) return fail(std::move(after.error()));
  texts.second = std::move(*after);
  return texts;
}

std::string printed(std::string_view text, const render::Style& style) {
  std::string out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string line = render::printable(text.substr(0, end));
    out += (line.starts_with('+')   ? style.paint(render::Tint::Good, line)
            : line.starts_with('-') ? style.paint(render::Tint::Bad, line)
                                    : line) +
           "\n";
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

// The spec names the files. The plan of a node has the same files in the same order, with their
// templates filled in. A controller of another release may change other files: then the templates
// are shown.
std::vector<engine::FilePatch> filled(const v1::PlanJobResponse& plan) {
  std::vector<engine::FilePatch> files = engine::file_patches(plan.spec());
  std::vector<const v1::LaunchedFile*> made;
  for (const v1::LaunchedFile& file : plan.files())
    if (file.changes_size() > 0 || !file.vars().empty()) made.push_back(&file);
  for (std::size_t i = 0; made.size() == files.size() && i < files.size(); ++i) {
    files[i].items.clear();
    for (const v1::FileChange& change : made[i]->changes())
      files[i].items.emplace_back(change.at(), change.value());
    files[i].vars = {made[i]->vars().begin(), made[i]->vars().end()};
  }
  return files;
}

struct Visitor {
  std::function<void(const std::string& why)> elsewhere;  // the file is not on this machine
  std::function<void(const std::string& why)> refused;    // the change does not fit the file
  std::function<void(const std::string& source, const std::string& before,
                     const std::string& after)>
      changed;
};
void visit_each(const v1::PlanJobResponse& plan, const Visitor& visitor) {
  for (const engine::FilePatch& file : filled(plan)) {
    std::error_code error;
    const auto text =
        std::filesystem::is_regular_file(file.source, error)
            ? io::read_regular_file(file.source, patch::kFileBytesMax)
            : Result<std::string>(fail(ErrorCode::NotFound,
                                       fmt::format("'{}' is not on this machine", file.source)));
    if (!text) {
      visitor.elsewhere(text.error().message);
      continue;
    }
    const auto texts = both(file, *text);
    if (texts)
      visitor.changed(file.source, texts->first, texts->second);
    else
      visitor.refused(texts.error().message);
  }
}

}  // namespace

std::string patches_text(const v1::PlanJobResponse& plan, const render::Style& style) {
  std::string out;
  const auto note = [&](render::Tint tint, const std::string& text) {
    out += style.paint(tint, "# " + render::printable(text)) + "\n";
  };
  visit_each(
      plan,
      {.elsewhere =
           [&](const std::string& why) {
             note(render::Tint::Dim, why + ": it is changed on each node");
           },
       .refused = [&](const std::string& why) { note(render::Tint::Warn, why); },
       .changed =
           [&](const std::string& source, const std::string& before, const std::string& after) {
             out += printed(render::line_diff(source, "its copy", before, after), style);
           }});
  return out;
}

std::vector<std::string> patch_warnings(const v1::PlanJobResponse& plan) {
  std::vector<std::string> lines;
  visit_each(plan, {.elsewhere = [](const std::string&) {},
                    .refused = [&](const std::string& why) { lines.push_back(why); },
                    .changed = [](const std::string&, const std::string&, const std::string&) {}});
  return lines;
}

}  // namespace muster::client
