#include "client/import/script_run.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <set>
#include <sstream>
#include <system_error>
#include <utility>

#include "client/import/stand_in.h"
#include "common/io/file.h"
#include "common/process/pidfd.h"
#include "common/process/spawn.h"

namespace muster::import {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kDirectoriesMost = 256;  // of one PATH
// Rounds of killing: a round finds processes that were forked during the round before.
constexpr int kRoundsMost = 1000;

Result<fs::path> make_directory() {
  std::error_code error;
  std::string name = (fs::temp_directory_path(error) / "muster-import-XXXXXX").string();
  if (error || ::mkdtemp(name.data()) == nullptr)
    return fail_errno(fmt::format("making a temporary directory '{}'", name),
                      error ? error.value() : errno);
  return fs::path(name);
}

// Includes every python3.N that the script could call.
std::set<std::string> program_names(std::string_view path) {
  std::set<std::string> names = {"torchrun", "msrun", "python", "python3"};
  constexpr std::string_view kThree = "python3.";
  for (std::size_t count = 0; !path.empty() && count < kDirectoriesMost; ++count) {
    const std::size_t end = std::min(path.find(':'), path.size());
    const fs::path folder(path.substr(0, end));
    path.remove_prefix(std::min(end + 1, path.size()));
    std::error_code error;
    for (fs::directory_iterator at(folder, error), last; !error && at != last;
         at.increment(error)) {
      const std::string name = at->path().filename().string();
      if (name.size() > kThree.size() && name.starts_with(kThree) &&
          name.find_first_not_of("0123456789", kThree.size()) == std::string::npos)
        names.insert(name);
    }
  }
  return names;
}

Result<void> fill(const fs::path& directory, const std::vector<std::string>& environment,
                  const Variables& variables) {
  std::error_code error;
  for (const fs::path& folder : {programs_dir(directory), calls_dir(directory)}) {
    fs::create_directory(folder, error);
    if (error) return fail_errno(fmt::format("making '{}'", folder.string()), error.value());
  }
  std::string bytes;
  for (const std::string& each : environment) bytes += each + '\0';
  if (auto written = io::replace_file(environment_file(directory), bytes, io::Durable::No);
      !written)
    return written;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  if (error) return fail_errno("finding our own program by '/proc/self/exe'", error.value());
  for (const std::string& name : program_names(value_of(variables, "PATH"))) {
    fs::create_symlink(self, programs_dir(directory) / name, error);
    if (error)
      return fail_errno(
          fmt::format("making the link '{}'", (programs_dir(directory) / name).string()),
          error.value());
  }
  return {};
}

std::vector<std::string> environment_for(const Variables& before, const fs::path& directory) {
  Variables env = before;
  const std::string path(value_of(before, "PATH"));
  env["PATH"] = programs_dir(directory).string() + (path.empty() ? "" : ":" + path);
  env[kDirectoryVariable] = directory.string();
  // muster's shim defines the same functions on a node. An environment that the script activates
  // does not hide a function.
  for (const char* name : {"torchrun", "msrun"})
    env[fmt::format("BASH_FUNC_{}%%", name)] =
        fmt::format("() {{  \"${}/bin/{}\" \"$@\"\n}}", kDirectoryVariable, name);
  std::vector<std::string> texts;
  for (const auto& [name, value] : env) texts.push_back(name + "=" + value);
  return texts;
}

// proc(5): the children of each thread of this process.
std::vector<pid_t> own_children() {
  std::vector<pid_t> children;
  std::error_code error;
  for (fs::directory_iterator at("/proc/self/task", error), last; !error && at != last;
       at.increment(error)) {
    const auto text = io::read_file(at->path() / "children", 1U << 20U);
    if (!text) continue;
    std::istringstream words(*text);
    for (pid_t pid = 0; words >> pid;) children.push_back(pid);
  }
  return children;
}

// Returns false if there are no children.
bool reap_ended() {
  for (;;) {
    const pid_t pid = ::waitpid(-1, nullptr, WNOHANG);
    if (pid < 0 && errno == EINTR) continue;
    if (pid <= 0) return pid == 0;
  }
}

// Waits until one of our children has ended. Every process that the caller waits for appears or
// disappears when a child ends.
void wait_for_child(Clock::time_point until) {
  std::vector<process::Pidfd> children;
  for (const pid_t pid : own_children())
    if (auto child = process::Pidfd::open_child(pid); child) children.push_back(std::move(*child));
  std::vector<pollfd> ends;
  for (const process::Pidfd& child : children)
    ends.push_back({.fd = child.fd(), .events = POLLIN, .revents = 0});
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(
      std::max(Clock::duration::zero(), until - Clock::now()));
  (void)::poll(ends.data(), ends.size(), static_cast<int>(left.count()));
}

}  // namespace

Result<ScriptRun> ScriptRun::start(const std::vector<std::string>& command) {
  ScriptRun run;
  auto directory = make_directory();
  if (!directory) return fail(std::move(directory.error()));
  run.directory_ = std::move(*directory);
  const std::vector<std::string> environment = process::own_environment();
  run.before_ = variables_of(environment);
  if (auto filled = fill(run.directory_, environment, run.before_); !filled)
    return fail(std::move(filled.error()));
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  process::SpawnRequest request{.path = command.front(),
                                .argv = command,
                                .env = environment_for(run.before_, run.directory_)};
  // A launcher that is called without a script is found in the same way as by a script.
  if (const fs::path own = programs_dir(run.directory_) / command.front();
      command.front().find('/') == std::string::npos && fs::exists(own))
    request.path = own.string();
  request.out_fd = STDERR_FILENO;
  request.err_fd = STDERR_FILENO;
  request.new_session = true;
  auto pid = process::spawn(request);
  if (!pid) {
    const bool absent = pid.error().code == ErrorCode::NotFound;
    return fail(ErrorCode::InvalidArgument,
                absent ? fmt::format("there is no '{}' on PATH or at that place", command.front())
                       : pid.error().message);
  }
  run.pid_ = *pid;
  return run;
}

ScriptRun::ScriptRun(ScriptRun&& other) noexcept
    : directory_(std::exchange(other.directory_, {})),
      before_(std::move(other.before_)),
      pid_(std::exchange(other.pid_, 0)),
      ended_(other.ended_) {}

ScriptRun::~ScriptRun() {
  if (pid_ != 0) {
    kill();
    (void)end_others(std::chrono::milliseconds(0));
  }
  std::error_code ignored;  // nobody is left to get the error
  if (!directory_.empty()) fs::remove_all(directory_, ignored);
}

void ScriptRun::wait() const {
  siginfo_t info{};
  while (::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT) != 0 &&
         errno == EINTR) {
  }
}

void ScriptRun::kill() const {
  if (pid_ != 0) ::kill(-pid_, SIGKILL);
}

bool ScriptRun::end_others(std::chrono::milliseconds most) {
  int status = 0;
  while (pid_ != 0 && ::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  if (pid_ != 0)
    ended_ = WIFSIGNALED(status) ? HowEnded{.code = -1, .signal = WTERMSIG(status)}
                                 : HowEnded{.code = WEXITSTATUS(status), .signal = 0};
  pid_ = 0;
  const auto deadline = Clock::now() + most;
  while (reap_ended() && Clock::now() < deadline) wait_for_child(deadline);
  bool killed = false;
  for (int round = 0; round < kRoundsMost && reap_ended(); ++round) {
    for (const pid_t pid : own_children())
      if (const auto child = process::Pidfd::open_child(pid); child) (void)child->signal(SIGKILL);
    killed = true;
    wait_for_child(Clock::now() + std::chrono::milliseconds(100));
  }
  return killed;
}

Result<std::vector<Captured>> ScriptRun::calls() const {
  std::vector<Captured> calls;
  for (std::size_t number = 0; number < kCallsMost; ++number) {
    const auto bytes = io::read_file(calls_dir(directory_) / std::to_string(number), kRecordMost);
    if (!bytes && bytes.error().code == ErrorCode::NotFound) break;
    if (!bytes) return fail(bytes.error());
    auto call = from_bytes(*bytes);
    if (!call) return fail(std::move(call.error()));
    calls.push_back(std::move(*call));
  }
  return calls;
}

std::filesystem::path ScriptRun::programs() const { return programs_dir(directory_); }

}  // namespace muster::import
