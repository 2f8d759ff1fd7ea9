#include "client/commands/job/command_job.h"

#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "client/import/launch_draft.h"
#include "client/render/style.h"
#include "common/base/utf8.h"
#include "common/compat/launcher/launch.h"
#include "common/text/words.h"

namespace muster::client {
namespace {

namespace fs = std::filesystem;

// limit of names that are compared with a missing file's name
constexpr std::size_t kNamesMost = 2000;

std::unexpected<Error> wrong(std::string_view what) {
  return fail(ErrorCode::InvalidArgument, fmt::format("reading the command behind '--': {}", what));
}

std::unexpected<Error> no_launcher(const std::vector<std::string>& words) {
  constexpr std::string_view kAccepted =
      "torchrun | msrun | python -m torch.distributed.run | python -m torch.distributed.launch";
  if (words.empty())
    return wrong(fmt::format("there is none ({}, with what it is to start)", kAccepted));
  const std::string name = fs::path(words.front()).filename().string();
  if (name == "bash" || name == "sh" || name.ends_with(".sh"))
    return wrong(
        fmt::format("'{}' is no launcher ({}); 'muster import -- ...' makes a job.yaml of what a "
                    "script launches",
                    words.front(), kAccepted));
  if (name.starts_with("python"))
    return wrong(
        fmt::format("'{}' is called without a launcher ({}); one process of its own is a job with "
                    "launch.run and launch.per: once",
                    words.front(), kAccepted));
  const std::string_view near =
      nearest(name, std::to_array<std::string_view>({"torchrun", "msrun", "python", "python3"}));
  return wrong(fmt::format("'{}' is no launcher{} ({})", words.front(),
                           near.empty() ? "" : fmt::format("; did you mean '{}'?", near),
                           kAccepted));
}

// Returns the name in that directory that the user probably meant.
std::string nearest_file(const fs::path& missing) {
  std::vector<std::string> names;
  std::error_code error;
  const fs::path dir = missing.parent_path();
  for (fs::directory_iterator at(dir, error), last;
       !error && at != last && names.size() < kNamesMost; at.increment(error))
    names.push_back(at->path().filename());
  const std::vector<std::string_view> known(names.begin(), names.end());
  return std::string(nearest(missing.filename().string(), known));
}

Result<void> check_script(const launcher::Launch& launch) {
  if (launch.wanted.kind != launcher::Wanted::Kind::Script) return {};
  const std::string& script = launch.wanted.program.front();
  const fs::path path = fs::path(launch.directory) / script;
  std::error_code error;
  if (fs::is_regular_file(path, error)) return {};
  if (fs::is_directory(path, error))
    return wrong(fmt::format("script '{}': it is a directory; name the file in it", script));
  const std::string near = nearest_file(path);
  return wrong(fmt::format("script '{}': there is no such file below '{}'{}", script,
                           launch.directory,
                           near.empty() ? "" : fmt::format("; nearest: '{}'", near)));
}

Result<launcher::Launch> read_here(const std::vector<std::string>& words) {
  if (!launcher::is_launch(words)) return no_launcher(words);
  std::error_code error;
  const std::string here = fs::current_path(error).string();
  if (error)
    return wrong(fmt::format("the current directory cannot be determined: {}", error.message()));
  for (const std::string& word : words)
    if (!is_utf8(word) || !is_utf8(here))
      return wrong(fmt::format("'{}' is not UTF-8; a spec holds text",
                               render::printable(is_utf8(here) ? word : here)));
  auto launch = launcher::read_launch(words, here);
  if (!launch) return wrong(launch.error().message);
  if (!launch->wanted.processes)
    return wrong(
        fmt::format("--nproc_per_node {} counts the devices of a machine, and which one it will be "
                    "nobody knows yet; write a number",
                    launch->call.value("nproc_per_node")));
  if (auto there = check_script(*launch); !there) return fail(std::move(there.error()));
  if (launch->interpreter.empty()) launch->interpreter = active_python(words.front());
  return launch;
}

void tell(const Context& context, const launcher::Launch& launch, const v1::JobSpec& spec) {
  const v1::ResourceSpec& resources = spec.resources();
  const int devices = resources.device_ids_size() > 0 ? resources.device_ids_size()
                                                      : static_cast<int>(resources.devices());
  std::string text = fmt::format(
      "muster: job '{}', engine '{}': {} node{} with {} process{} each", spec.name(), spec.engine(),
      resources.nodes(), resources.nodes() == 1 ? "" : "s", devices, devices == 1 ? "" : "es");
  if (!launch.interpreter.empty()) text += fmt::format(", by '{}'", launch.interpreter);
  if (const std::string options = launcher::options_given(launch.wanted); !options.empty())
    text += "; " + options;
  fmt::print(stderr, "{}\n", context.err.paint(render::Tint::Dim, render::printable(text)));
}

}  // namespace

void take_command(CLI::App& command, Context& context) {
  context.command_verbs.push_back(command.get_name());
  if (context.command) command.get_option("file")->required(false);
}

Result<spec::Parsed> load_job(const Context& context, const SpecOptions& options) {
  if (!context.command) return load_spec(options);
  if (!options.file.empty())
    return wrong(fmt::format("the job is in '{}' already; leave one of the two out", options.file));
  auto launch = read_here(*context.command);
  if (!launch) return fail(std::move(launch.error()));
  launcher::Draft draft = import::draft_of(*launch, import::Texts::Templates);
  draft.name = launcher::job_name(launch->wanted.program.front());
  auto spec = read_spec(launcher::to_yaml(draft), launch->directory, "", options);
  if (spec) tell(context, *launch, spec->spec);
  return spec;
}

std::string active_python(const std::string& launcher) {
  const auto variable = [](const char* name) -> std::string {
    const char* value = std::getenv(name);
    return value == nullptr ? "" : value;
  };
  if (std::string own = variable("PYTHON_EXEC"); !own.empty()) return own;
  std::error_code error;
  std::vector<fs::path> folders;
  if (launcher.find('/') != std::string::npos)
    folders.push_back(fs::absolute(launcher, error).parent_path());
  for (const char* name : {"VIRTUAL_ENV", "CONDA_PREFIX"})
    if (const std::string root = variable(name); root.starts_with('/'))
      folders.push_back(fs::path(root) / "bin");
  for (const fs::path& folder : folders)
    for (const char* name : {"python3", "python"})
      if (fs::exists(folder / name, error)) return (folder / name).lexically_normal().string();
  return {};
}

}  // namespace muster::client
