#include "common/compat/launcher/launch_draft.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>
#include <span>

#include "common/text/options.h"

namespace muster::launcher {
namespace {

constexpr std::string_view kMindformers = "run_mindformer.py";

// npos + 1 is 0
std::string_view file_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

// The position of the launcher's own words: after its name, or after `python -m
// torch.distributed.run`.
struct Found {
  Launcher launcher = Launcher::Torchrun;
  std::size_t rest = 0;
};
std::optional<Found> find_launcher(const std::vector<std::string>& words) {
  if (words.empty()) return std::nullopt;
  const std::string_view name = file_name(words.front());
  if (name == "torchrun") return Found{.launcher = Launcher::Torchrun, .rest = 1};
  if (name == "msrun") return Found{.launcher = Launcher::Msrun, .rest = 1};
  if (!name.starts_with("python")) return std::nullopt;
  const PythonCall call = parse_python(std::span(words).subspan(1));
  if (!call.launches) return std::nullopt;
  return Found{.launcher = call.launcher, .rest = call.rest + 1};
}

bool has_option(const std::vector<std::string>& args, std::string_view name) {
  return std::ranges::any_of(args,
                             [name](std::string_view word) { return option_name(word) == name; });
}

// Removes `name VALUE` or `name=VALUE` from the words; the last value counts. Empty: the option is
// missing.
std::string take_option(std::vector<std::string>& args, std::string_view name) {
  const std::vector<std::string_view> words(args.begin(), args.end());
  std::vector<OptionSpan> found = find_options(words, name, ValueRule::AnyWord);
  std::erase_if(found, [](const OptionSpan& option) { return !option.has_value(); });
  std::string value(found.empty() ? std::string_view() : found.back().value);
  erase_options(args, found);
  return value;
}

void put_program(Draft& draft, const Wanted& wanted) {
  if (wanted.kind == Wanted::Kind::Script) {
    draft.script = wanted.program.front();
    draft.args.assign(wanted.program.begin() + 1, wanted.program.end());
    // a launcher runs every script with the interpreter
    if (!draft.script.ends_with(".py") && draft.python.empty()) draft.python = "python3";
    return;
  }
  if (wanted.kind == Wanted::Kind::Module)
    draft.run = {draft.python.empty() ? "python3" : draft.python, "-u", "-m"};
  draft.run.insert(draft.run.end(), wanted.program.begin(), wanted.program.end());
}

}  // namespace

bool is_launch(const std::vector<std::string>& words) { return find_launcher(words).has_value(); }

Result<Launch> read_launch(std::vector<std::string> words, std::string directory) {
  const auto found = find_launcher(words);
  if (!found)
    return fail(ErrorCode::InvalidArgument,
                fmt::format("'{}' is no launcher", words.empty() ? "" : words.front()));
  Launch launch;
  auto call = parse_call(found->launcher, std::span(words).subspan(found->rest));
  if (!call) return fail(std::move(call.error()));
  if (call->has("help"))
    return fail(ErrorCode::InvalidArgument,
                fmt::format("{}: --help starts nothing; ask '{} --help' itself",
                            name_of(found->launcher), words.front()));
  auto wanted = wanted_of(*call);
  if (!wanted) return fail(std::move(wanted.error()));
  const std::string_view program = words.front(), name = file_name(program);
  if (name.starts_with("python") && (program != name || (name != "python" && name != "python3")))
    launch.interpreter = program;
  if (!wanted->interpreter.empty() && wanted->interpreter != "python" &&
      wanted->interpreter != "python3")
    launch.interpreter = wanted->interpreter;
  if (launch.interpreter.find('/') != std::string::npos && launch.interpreter.front() != '/')
    launch.interpreter = directory + "/" + launch.interpreter;
  launch.call = std::move(*call);
  launch.wanted = std::move(*wanted);
  launch.words = std::move(words);
  launch.directory = std::move(directory);
  return launch;
}

Draft draft_of(const Launch& launch, Texts texts) {
  const Wanted& wanted = launch.wanted;
  Draft draft;
  draft.code = launch.directory;
  draft.python = launch.interpreter;
  draft.nodes = wanted.nodes;
  draft.devices = wanted.processes.value_or(0);
  if (launch.call.launcher == Launcher::Msrun) {
    draft.engine = "mindformers";
    draft.launcher = "msrun";
    // msrun's workers share the directory in which msrun was called
    draft.cwd = literal(launch.directory);
    draft.rank_table = launch.call.value("rank_table_file");
    if (launch.call.has("cluster_time_out"))
      draft.env["MS_CLUSTER_TIMEOUT"] = launch.call.value("cluster_time_out");
  } else {
    draft.engine = torch_engine(wanted.program);
  }
  if (launch.call.launcher == Launcher::TorchLaunch && !launch.call.has("use_env")) {
    draft.per_node = true;
    draft.run = launch.words;
    // the launcher shim does not answer a launcher that is called by its path
    draft.run.front() = std::string(file_name(draft.run.front()));
  } else {
    put_program(draft, wanted);
    if (draft.engine == "mindformers") take_mindformers_options(draft);
  }
  if (texts == Texts::Literal) {
    draft.run = literal(draft.run);
    draft.args = literal(draft.args);
    draft.script = literal(draft.script);
    draft.config = literal(draft.config);
  }
  return draft;
}

void take_mindformers_options(Draft& draft) {
  if (file_name(draft.script) != kMindformers) return;
  draft.config = take_option(draft.args, "--config");
  if (const std::size_t slash = draft.script.rfind('/');
      slash != std::string::npos && !draft.config.empty() && draft.config.front() != '/')
    draft.config = draft.script.substr(0, slash + 1) + draft.config;
  draft.mode = take_option(draft.args, "--run_mode");
}

std::string torch_engine(const std::vector<std::string>& args) {
  if (has_option(args, "--mm-model") || has_option(args, "--mm-data")) return "mindspeed-mm";
  const bool megatron = has_option(args, "--micro-batch-size") &&
                        (has_option(args, "--train-iters") || has_option(args, "--train-samples"));
  return megatron ? "megatron" : "torch";
}

std::string options_given(const Wanted& wanted) {
  std::string text;
  if (!wanted.placed.empty())
    text = fmt::format("decided by the placement: {}", fmt::join(wanted.placed, ", "));
  if (!wanted.idle.empty())
    text +=
        fmt::format("{}without effect: {}", text.empty() ? "" : "; ", fmt::join(wanted.idle, ", "));
  return text;
}

}  // namespace muster::launcher
