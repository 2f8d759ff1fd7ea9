#include "worker/shim/shim.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "common/compat/launcher/call.h"
#include "common/io/unique_fd.h"
#include "worker/shim/earlier.h"
#include "worker/shim/edits.h"
#include "worker/shim/find_program.h"
#include "worker/shim/gang.h"
#include "worker/shim/place.h"
#include "worker/shim/report.h"

namespace muster::shim {
namespace {

constexpr int kUsage = 2, kNotFound = 127, kSignalBase = 128;

Environment environment_here() {
  Environment environment;
  for (char** at = ::environ; *at != nullptr; ++at) {
    const std::string_view variable(*at);
    const std::size_t equals = variable.find('=');
    if (equals != std::string_view::npos)
      environment.emplace(variable.substr(0, equals), variable.substr(equals + 1));
  }
  return environment;
}

int say(int status, const std::string& text) {
  std::fprintf(stderr, "%s\n", text.c_str());
  return status;
}

// Refuses a launch before it begins. The text has the form by which the verdict finds evidence. The
// report is needed because the script's own status may be that of a `tee` after it.
int refuse(const Environment& environment, int status, const std::string& text) {
  const Report report(std::string(value_of(environment, "MUSTER_SHIM_REPORT")));
  report.end({.name = "the launch", .code = status});
  return say(status, "muster: error: " + text);
}

// Executes the next program of that name by its full path: python finds its own prefix, and that of
// a venv, by this path.
int become(std::string_view name, const Environment& environment, char** argv) {
  std::string program = find_program(name, value_of(environment, "PATH"));
  if (program.empty()) return say(kNotFound, std::string(name) + ": command not found");
  argv[0] = program.data();
  ::execv(program.c_str(), argv);
  const int error = errno;
  return say(error == ENOENT ? kNotFound : 126, program + ": " + std::strerror(error));
}

// PyTorch 2.0 passes --local-rank to a program of torch.distributed.launch; earlier releases pass
// --local_rank. The version comes from the package's metadata, because importing torch takes
// seconds.
bool is_dashed(const std::string& python) {
  std::array<int, 2> pipe{};
  if (::pipe2(pipe.data(), O_CLOEXEC) != 0) return false;
  io::UniqueFd read_end(pipe[0]), write_end(pipe[1]);
  const pid_t pid = ::fork();
  if (pid < 0) return false;
  if (pid == 0) {
    ::dup2(write_end.get(), 1);
    const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null >= 0) {
      ::dup2(null, 0);
      ::dup2(null, 2);
    }
    ::execlp(python.c_str(), python.c_str(), "-c",
             "from importlib.metadata import version; print(version('torch'))", nullptr);
    ::_exit(kNotFound);
  }
  write_end.reset();
  std::array<char, 64> room{};
  const ssize_t count = ::read(read_end.get(), room.data(), room.size());
  read_end.reset();
  ::waitpid(pid, nullptr, 0);
  const std::string_view version(room.data(), count > 0 ? static_cast<std::size_t>(count) : 0);
  return version.find('.') != std::string_view::npos && !version.starts_with("0.") &&
         !version.starts_with("1.");
}

// In bash `torchrun ... &` is a function in a subshell, whose pid the script has as $!. A signal
// that ends the subshell is meant for this process.
void end_with_subshell(const Environment& environment) {
  if (value_of(environment, "MUSTER_SHIM_PARENT") != std::to_string(::getppid())) return;
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (value_of(environment, "MUSTER_SHIM_PARENT") != std::to_string(::getppid()))
    (void)::raise(SIGTERM);
}

std::string end_text(const Ended& ended, const std::string& launcher) {
  std::string text = "muster: " + launcher + ": " + ended.name;
  if (ended.stopped) return text + " was stopped by signal " + std::to_string(ended.signal);
  text += ended.signal != 0 ? " was ended by signal " + std::to_string(ended.signal)
                            : " ended with status " + std::to_string(ended.code);
  return text + "; the others were stopped";
}

int launch(Call call, const Place& place, const Environment& environment, std::string python) {
  const std::string launcher(name_of(call.launcher));
  const auto edits = parse_edits(value_of(environment, "MUSTER_SHIM_EDITS"));
  if (!edits) return refuse(environment, kUsage, launcher + ": " + edits.error().message);
  const ScriptOptions given = script_options(*edits, call.program);
  const auto answer = answer_load(given, value_of(environment, "MUSTER_SHIM_SAVED"),
                                  std::string(value_of(environment, "MUSTER_SHIM_LINKS")));
  if (!answer) return refuse(environment, 1, launcher + ": " + answer.error().message);
  if (!answer->dir.empty()) set_option(call.program, "--load", answer->dir);
  if (python.empty())
    python = find_python(value_of(environment, "PYTHON_EXEC"), value_of(environment, "PATH"));
  const bool asks_version = call.launcher == Launcher::TorchLaunch && !call.has("use_env");
  const Interpreter interpreter{.path = python,
                                .dashed_local_rank = asks_version && is_dashed(python)};
  const std::vector<Process> processes =
      plan_processes(call, place, environment, *edits, interpreter);
  std::fprintf(stderr, "%s\n", notice(call, place).c_str());
  if (!answer->notice.empty())
    std::fprintf(stderr, "muster: %s: %s\n", launcher.c_str(), answer->notice.c_str());
  if (given.weights_alone)
    std::fprintf(stderr,
                 "muster: %s: --no-save-optim: checkpoints hold weights alone, and no attempt goes "
                 "on from them\n",
                 launcher.c_str());
  if (const std::size_t blank = blank_argument(call.program); blank != 0)
    std::fprintf(stderr,
                 "muster: %s: argument %zu of '%s' is a lone blank: in the script a line ends with "
                 "a backslash and a blank behind it\n",
                 launcher.c_str(), blank, call.program.front().c_str());
  end_with_subshell(environment);
  Launched launched{.first_rank = place.first,
                    .ranks = place.devices.size(),
                    .saves = given.save.empty() ? std::string() : absolute_path(given.save),
                    .weights_alone = given.weights_alone,
                    .logs = {}};
  for (const Process& process : processes)
    if (process.rank) launched.logs.emplace_back(process.number, process.log);
  const Report report(std::string(value_of(environment, "MUSTER_SHIM_REPORT")), launched);
  const auto ended =
      run_gang(processes, {.launcher = launcher,
                           .grace_ms = place.grace_ms,
                           .node_log = std::string(value_of(environment, "MUSTER_SHIM_NODE_LOG"))});
  if (!ended) {
    report.end({.name = "the launch", .code = 1});
    return say(1, "muster: error: " + launcher + ": " + ended.error().message);
  }
  report.end(*ended);
  if (ended->name.empty()) return 0;
  std::fprintf(stderr, "%s\n", end_text(*ended, launcher).c_str());
  return ended->signal != 0 ? kSignalBase + ended->signal : ended->code;
}

}  // namespace

bool is_shim_name(std::string_view name) {
  if (name == "torchrun" || name == "msrun") return true;
  return name.starts_with("python") &&
         name.find_first_not_of("0123456789.", 6) == std::string_view::npos;
}

int run_shim(std::string_view name, int argc, char** argv) {
  const Environment environment = environment_here();
  std::vector<std::string> words(argv + 1, argv + argc);
  Launcher launcher = name == "msrun" ? Launcher::Msrun : Launcher::Torchrun;
  std::string python;
  if (name.starts_with("python")) {
    const auto found = launcher::parse_python(words);
    if (!found.launches) return become(name, environment, argv);
    launcher = found.launcher;
    python = find_program(name, value_of(environment, "PATH"));
    // as torch.distributed.run does
    if (const auto own = value_of(environment, "PYTHON_EXEC"); !own.empty()) python = own;
    if (python.empty()) return say(kNotFound, std::string(name) + ": command not found");
    words.erase(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(found.rest));
  }
  const auto place = read_place(environment);
  if (!place) return become(name, environment, argv);
  const auto call =
      launcher::parse_call(launcher, words, "; launch.intercept: off calls the real one");
  if (!call) return refuse(environment, kUsage, call.error().message);
  if (call->has("help")) return become(name, environment, argv);
  return launch(*call, *place, environment, std::move(python));
}

}  // namespace muster::shim
