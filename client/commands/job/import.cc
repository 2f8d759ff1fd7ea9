// muster import: runs a script with launchers that only record how they are called, and writes the
// job spec that does the same.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <filesystem>

#include "client/commands/call/call.h"
#include "client/commands/call/commands.h"
#include "client/commands/job/command_job.h"
#include "client/commands/job/spec_file.h"
#include "client/import/imported.h"
#include "client/import/script_run.h"
#include "common/base/utf8.h"
#include "common/io/file.h"
#include "common/io/unique_fd.h"

namespace muster::client {
namespace {

namespace fs = std::filesystem;

// time for what the script leaves in the background: a launcher may be about to start
constexpr std::chrono::seconds kOthersMost(5);

struct ImportOptions {
  std::string output = "job.yaml";
  std::string name;
  std::string timeout = "5m";
};

void note(const Context& context, std::string_view text) {
  fmt::print(stderr, "{}\n",
             context.err.paint(render::Tint::Warn, "muster: " + render::printable(text)));
}

Result<import::Observed> observe(const Context& context, const ImportOptions& options) {
  const auto limit = parse_timeout(options.timeout);
  if (!limit) return fail(limit.error());
  std::error_code error;
  import::Observed seen;
  seen.command = *context.command;
  seen.directory = fs::current_path(error).string();
  if (error) return fail_errno("telling the current directory", error.value());
  seen.script = import::shell_script_of(seen.command, seen.directory);
  seen.python = active_python("");
  Interrupt interrupt(*limit);
  auto run = import::ScriptRun::start(seen.command);
  if (!run) return fail(std::move(run.error()));
  {
    const Interrupt::OnFire end_it(interrupt, [&run] { run->kill(); });
    run->wait();
  }
  const bool late = interrupt.timed_out();  // the processes left behind have a limit of their own
  const bool killed = run->end_others(interrupt.fired() ? std::chrono::seconds(0) : kOthersMost);
  if (late)
    return fail(ErrorCode::TimedOut,
                fmt::format("it had not ended after {}, and was killed with all that it had "
                            "started; --timeout gives it longer",
                            options.timeout));
  if (interrupt.interrupted())
    return fail(ErrorCode::InvalidArgument,
                "interrupted; it was killed with all that it had started");
  if (killed)
    note(context,
         fmt::format("what the script left running in the background was killed {} s after its "
                     "end; a job whose script leaves it waits for it: end it in the script",
                     kOthersMost.count()));
  auto calls = run->calls();
  if (!calls) return fail(std::move(calls.error()));
  seen.calls = std::move(*calls);
  seen.before = run->before();
  seen.programs = run->programs().string();
  const import::HowEnded ended = run->ended();
  if (!ended.well())
    seen.how_ended = ended.signal != 0 ? fmt::format("signal {}", ended.signal)
                                       : fmt::format("status {}", ended.code);
  return seen;
}

Result<void> check_output(const std::string& output) {
  std::error_code error;
  if (output == "-") return {};
  // Report this before the script runs, not at its end.
  if (const fs::path folder = fs::path(output).parent_path();
      !folder.empty() && !fs::is_directory(folder, error))
    return fail(ErrorCode::InvalidArgument,
                fmt::format("writing '{}': there is no directory '{}'", output, folder.string()));
  if (fs::symlink_status(output, error).type() == fs::file_type::not_found) return {};
  return fail(
      ErrorCode::Conflict,
      fmt::format("writing '{}': it is there already; -o FILE names another, -o - prints", output));
}

Result<void> write_output(const std::string& output, const std::string& text) {
  if (output == "-") {
    fmt::print("{}", text);
    return {};
  }
  const io::UniqueFd file(::open(output.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (!file) return fail_errno(fmt::format("writing '{}'", output), errno);
  std::size_t written = 0;
  if (const int why = io::write_all(file.get(), text, written); why != 0)
    return fail_errno(fmt::format("writing '{}'", output), why);
  return {};
}

Result<int> import_command(const Context& context, const ImportOptions& options) {
  if (!context.command || context.command->empty())
    return fail(ErrorCode::InvalidArgument,
                "'muster import' wants a command behind '--', as in: muster import -- bash run.sh");
  if (auto free = check_output(options.output); !free) return fail(std::move(free.error()));
  const std::string importing = fmt::format("importing '{}'", fmt::join(*context.command, " "));
  auto seen = observe(context, options);
  if (!seen) return fail(std::move(seen.error()).in(importing));
  auto imported = import::import_observed(*seen, [](const std::string& path) {
    std::error_code error;
    return fs::is_regular_file(path, error);
  });
  if (!imported) return fail(std::move(imported.error()).in(importing));
  if (!options.name.empty()) imported->draft.name = options.name;
  const std::string text = launcher::to_yaml(imported->draft);
  if (!is_utf8(text))
    return fail(
        Error{ErrorCode::InvalidArgument, "what it launches is not UTF-8, and a spec holds text"}
            .in(importing));
  for (const std::string& line : imported->notes) note(context, line);
  if (auto written = write_output(options.output, text); !written)
    return fail(std::move(written.error()));
  const auto spec =
      read_spec(text, seen->directory, options.output == "-" ? "<stdout>" : options.output, {});
  if (!spec)
    return fail(Error(spec.error()).in(importing + ": what it launches makes no sound spec yet"));
  if (options.output != "-" && render::is_terminal(2))
    fmt::print(stderr, "wrote '{0}'; 'muster plan {0}' shows what would run\n",
               render::printable(options.output));
  return kOk;
}

}  // namespace

void add_import(CLI::App& app, Context& context, int& exit) {
  auto options = std::make_shared<ImportOptions>();
  CLI::App* command = app.add_subcommand(
      "import",
      "Run a script with launchers that start nothing, and write the job.yaml that does the same");
  context.command_verbs.push_back(command->get_name());
  command
      ->add_option("-o,--output", options->output,
                   "where to write it, never over a file that is there; - prints it")
      ->type_name("FILE")
      ->capture_default_str();
  command->add_option("--name", options->name, "the job's name (default: the script's)")
      ->type_name("NAME");
  add_timeout_option(*command, options->timeout, "how long the script may take; then it is killed");
  command->get_option("--timeout")->capture_default_str();
  command->footer(
      "examples:     muster import -- bash examples/pretrain_gpt.sh /data/corpus\n"
      "              NNODES=4 muster import -o gpt.yaml -- bash run.sh && muster plan gpt.yaml\n"
      "what runs:    the whole script, for real, but torchrun, msrun and python -m "
      "torch.distributed.run|launch, and a python to which it gives\n"
      "              RANK_ID or RANK: these are taken down. A python for anything else is the real "
      "one, also one that trains. No input; its output goes to stderr\n"
      "exit:         0 it was written  4 --timeout is over  12 the file is there already  64 the "
      "script launched nothing, or what one job cannot be; no\n"
      "              controller is needed");
  on_chosen(*command, context, exit,
            [options](const Context& chosen) { return import_command(chosen, *options); });
}

}  // namespace muster::client
