#include "client/commands/job/spec_notes.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <system_error>
#include <utility>

#include "client/commands/chain/stage_keys.h"
#include "client/commands/job/config_urls.h"
#include "client/import/shell_script.h"
#include "common/compat/patch/patch.h"
#include "common/compat/shell/slips.h"
#include "common/engine/patch_plan.h"
#include "common/io/file.h"
#include "common/text/options.h"

namespace muster::client {
namespace {

namespace fs = std::filesystem;
using Notes = std::vector<std::string>;

// [0,4] in YAML is a list of two numbers, but tutorials of some engines write it for 0 to 3.
void note_devices(const v1::JobSpec& spec, Notes& notes) {
  const auto& ids = spec.resources().device_ids();
  if (ids.size() != 2 || ids[1] < ids[0] + 2) return;
  notes.push_back(
      fmt::format("resources.devices: [{0},{1}] are two devices, {0} and {1}; \"[{0},{1})\" would "
                  "be the {2} from {0} to {3}",
                  ids[0], ids[1], ids[1] - ids[0], ids[1] - 1));
}

launcher::Flags known_flags(const v1::JobSpec& spec) {
  const engine::Engine* engine = engine::find_engine(spec.engine());
  return engine != nullptr && engine->own_arguments ? launcher::Flags::OfTraining
                                                    : launcher::Flags::OfLaunchers;
}

template <class Words>
void note_words(const Words& words, const std::string& key, launcher::Flags flags, Notes& notes) {
  const std::vector<std::string_view> texts(words.begin(), words.end());
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (!launcher::wants_value(texts[i], flags) || option_at(texts, i, texts[i])->has_value())
      continue;
    notes.push_back(
        fmt::format("{}[{}]: '{}' has no value{}", key, i, texts[i],
                    i + 1 == texts.size() ? "" : fmt::format(": '{}' follows it", texts[i + 1])));
  }
}

// Notes a file of the code that is missing where this machine has the code. Files of an image, and
// files that patches add, cannot be checked here.
void note_missing_file(const v1::JobSpec& spec, const std::string& key, const std::string& name,
                       Notes& notes) {
  if (name.empty() || name.find("${") != std::string::npos || !spec.runtime().image().empty() ||
      !spec.code().patches().empty())
    return;
  const fs::path path = (fs::path(spec.code().at()) / name).lexically_normal();
  std::error_code error;
  const fs::path around = name.starts_with('/') ? path.parent_path() : fs::path(spec.code().at());
  if (!fs::is_directory(around, error) || fs::exists(path, error) || error) return;
  notes.push_back(
      fmt::format("{}: '{}' is not on this machine; every node needs it there under this path", key,
                  path.string()));
}

// Returns the file after the interpreter in "bash run.sh" or "python train.py".
std::string file_of_run(const v1::LaunchSpec& launch) {
  if (launch.run_size() < 2 || !launch.cwd().empty() || launch.run(1).starts_with('-')) return {};
  const std::string program = fs::path(launch.run(0)).filename();
  const bool interpreter = program == "bash" || program == "sh" || program.starts_with("python");
  return interpreter ? launch.run(1) : "";
}

void note_script(const v1::JobSpec& spec, Notes& notes) {
  const v1::LaunchSpec& launch = spec.launch();
  std::vector<std::string> command(launch.run().begin(), launch.run().end());
  if (command.empty()) command.push_back(launch.script());
  const import::ShellScript script = import::shell_script_of(command, spec.code().at());
  for (const launcher::Slip& slip : launcher::slips_of(script.text, known_flags(spec)))
    notes.push_back(fmt::format("{}:{}: {}", script.name, slip.line, slip.text));
}

// Notes a mistyped key of a patched configuration: it would be added, and nothing would change.
void note_patches(const v1::JobSpec& spec, Notes& notes) {
  for (const engine::FilePatch& file : engine::file_patches(spec)) {
    std::error_code error;
    if (file.items.empty() || !fs::is_regular_file(file.source, error)) continue;
    const auto text = io::read_regular_file(file.source, patch::kFileBytesMax);
    std::vector<patch::Change> changes;
    for (const auto& [at, value] : file.items) changes.push_back({.at = at, .value = value});
    std::vector<std::string> near_misses;
    // 'muster plan' and the nodes report what is wrong.
    if (!text || !patch::changed_file(file.source, *text, changes, &near_misses)) continue;
    for (const std::string& miss : near_misses)
      notes.push_back(fmt::format("launch.patch of '{}': {}", file.source, miss));
  }
}

}  // namespace

std::vector<std::string> spec_notes(const v1::JobSpec& spec) {
  Notes notes;
  for (const std::string& missing : missing_paths(spec))
    notes.push_back(fmt::format(
        "{} is not on this machine; every node needs it there under this path", missing));
  note_devices(spec, notes);
  note_words(spec.launch().run(), "launch.run", known_flags(spec), notes);
  note_words(spec.launch().args(), "launch.args", known_flags(spec), notes);
  note_missing_file(spec, "launch.script",
                    spec.launch().run().empty() ? spec.launch().script() : "", notes);
  note_missing_file(spec, "launch.run", file_of_run(spec.launch()), notes);
  note_missing_file(spec, "launch.config", spec.launch().config(), notes);
  note_script(spec, notes);
  note_patches(spec, notes);
  std::ranges::move(config_url_notes(spec), std::back_inserter(notes));
  return notes;
}

}  // namespace muster::client
