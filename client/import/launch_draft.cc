#include "client/import/launch_draft.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "common/base/assert.h"
#include "common/text/options.h"

namespace muster::import {
namespace {

// npos + 1 is 0
std::string_view file_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

// Removes `name VALUE` or `name=VALUE` from the words; the last value counts. Empty: the option is
// missing, or has no name.
std::string take_option(std::vector<std::string>& args, std::string_view name) {
  if (name.empty()) return {};
  const std::vector<std::string_view> words(args.begin(), args.end());
  std::vector<OptionSpan> found = find_options(words, name, ValueRule::AnyWord);
  std::erase_if(found, [](const OptionSpan& option) { return !option.has_value(); });
  std::string value(found.empty() ? std::string_view() : found.back().value);
  erase_options(args, found);
  return value;
}

void put_program(launcher::Draft& draft, const launcher::Wanted& wanted) {
  using enum launcher::Wanted::Kind;
  if (wanted.kind == Script) {
    draft.script = wanted.program.front();
    draft.args.assign(wanted.program.begin() + 1, wanted.program.end());
    // a launcher runs every script with the interpreter
    if (!draft.script.ends_with(".py") && draft.python.empty()) draft.python = "python3";
    return;
  }
  if (wanted.kind == Module)
    draft.run = {draft.python.empty() ? "python3" : draft.python, "-u", "-m"};
  draft.run.insert(draft.run.end(), wanted.program.begin(), wanted.program.end());
}

}  // namespace

launcher::Draft draft_of(const launcher::Launch& launch, Texts texts) {
  const launcher::Wanted& wanted = launch.wanted;
  const engine::Engine& engine = engine_of(launch.call.launcher, wanted.program);
  launcher::Draft draft;
  draft.engine = engine.name;
  draft.code = launch.directory;
  draft.python = launch.interpreter;
  draft.nodes = wanted.nodes;
  draft.devices = wanted.processes.value_or(0);
  // a launcher's workers share the directory in which it was called
  if (engine.signs.rank_cwd) draft.cwd = launcher::literal(launch.directory);
  if (launch.call.launcher == launcher::Launcher::Msrun) {
    draft.launcher = "msrun";
    draft.rank_table = launch.call.value("rank_table_file");
    if (launch.call.has("cluster_time_out"))
      draft.env["MS_CLUSTER_TIMEOUT"] = launch.call.value("cluster_time_out");
  }
  if (launch.call.launcher == launcher::Launcher::TorchLaunch && !launch.call.has("use_env")) {
    draft.per_node = true;
    draft.run = launch.words;
    // the launcher shim does not answer a launcher that is called by its path
    draft.run.front() = std::string(file_name(draft.run.front()));
  } else {
    put_program(draft, wanted);
    take_options(engine, draft);
  }
  if (texts == Texts::Literal) {
    draft.run = launcher::literal(draft.run);
    draft.args = launcher::literal(draft.args);
    draft.script = launcher::literal(draft.script);
    draft.config = launcher::literal(draft.config);
  }
  return draft;
}

const engine::Engine& engine_of(launcher::Launcher launcher, std::span<const std::string> args) {
  const engine::Engine* found = nullptr;
  for (const engine::Engine& engine : engine::engine_table()) {
    const engine::LaunchSigns& signs = engine.signs;
    if (std::ranges::find(signs.launchers, launcher::name_of(launcher)) == signs.launchers.end())
      continue;
    if (signs.by_arguments == nullptr ? found == nullptr : signs.by_arguments(args))
      found = &engine;
  }
  MUSTER_ASSERT(found != nullptr, "an engine takes any program of the launcher");
  return *found;
}

void take_options(const engine::Engine& engine, launcher::Draft& draft) {
  if (file_name(draft.script) != engine.script) return;
  draft.config = take_option(draft.args, engine.signs.config_option);
  if (const std::size_t slash = draft.script.rfind('/');
      slash != std::string::npos && !draft.config.empty() && draft.config.front() != '/')
    draft.config = draft.script.substr(0, slash + 1) + draft.config;
  draft.mode = take_option(draft.args, engine.signs.mode_option);
}

}  // namespace muster::import
