#include "client/commands/local/local_daemons.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

#include "client/commands/call/local_paths.h"
#include "client/commands/local/local_cards.h"
#include "client/render/text.h"
#include "common/io/file.h"
#include "common/process/pidfd.h"
#include "common/process/spawn.h"

namespace muster::client {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using nlohmann::json;

// In the directory of muster's own binary: a build folder or an installation contains all four.
Result<std::string> sibling(std::string_view name) {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  const fs::path path = self.parent_path() / name;
  if (error || !fs::exists(path, error))
    return fail(ErrorCode::NotFound,
                fmt::format("finding '{}': it should be next to '{}'; is the installation whole?",
                            name, self.string()));
  return path.string();
}

std::string log_end(const fs::path& log) {
  const auto text = io::read_file(log, 64 << 20);
  if (!text) return "(no log)";
  std::size_t at = text->size();
  for (int lines = 0; lines < 4 && at > 0; ++lines) {
    at = text->rfind('\n', at - 1);
    if (at == std::string::npos) return render::printable(*text);
  }
  std::string out;
  for (const char c : text->substr(at))
    out += c == '\n' ? std::string("\n  ") : render::printable(std::string_view(&c, 1));
  while (!out.empty() && (out.back() == ' ' || out.back() == '\n')) out.pop_back();
  return out;
}

// proc(5): the masks of pending signals of the first thread, and of the process.
bool is_killed(pid_t pid) {
  constexpr std::uint64_t kExiting = 0x4;  // PF_EXITING, include/linux/sched.h
  const auto stat = process::read_stat(pid);
  if (!stat || (stat->flags & kExiting) != 0) return true;
  const auto status = io::read_file(fmt::format("/proc/{}/status", pid), 64 << 10);
  if (!status) return true;
  for (const std::string_view key : {"\nSigPnd:\t", "\nShdPnd:\t"}) {
    const auto at = status->find(key);
    if (at == std::string::npos) continue;
    std::uint64_t waiting = 0;
    const char* first = status->data() + at + key.size();
    std::from_chars(first, status->data() + status->size(), waiting, 16);
    if ((waiting & (1ULL << (SIGKILL - 1))) != 0) return true;
  }
  return false;
}

Result<std::vector<LocalDaemon>> read_daemons(const fs::path& dir) {
  auto text = io::read_file(local_processes(dir), 1 << 20);
  if (!text) {
    std::error_code ignored;
    // 'muster local down' removes the list and keeps the state.
    const bool was_up = fs::is_directory(local_controller_dir(dir), ignored);
    if (text.error().code == ErrorCode::NotFound)
      return fail(
          ErrorCode::NotFound,
          fmt::format("finding the private cluster in '{}': {}", dir.string(),
                      was_up
                          ? "it is down; its state is there, and 'muster local up' goes on with it"
                          : "none was started there; 'muster local up' starts one"));
    return fail(std::move(text.error()));
  }
  std::vector<LocalDaemon> out;
  const json list = json::parse(*text, nullptr, false);
  if (!list.is_array())
    return fail(ErrorCode::DataLoss, fmt::format("reading '{}': not what 'muster local up' writes; "
                                                 "remove it: daemons that run are found without it",
                                                 local_processes(dir).string()));
  const auto boot = process::boot_id();
  if (!boot) return fail(boot.error());
  for (const auto& item : list) {
    if (!item.is_object()) continue;
    // A process of another boot is gone, whoever has its pid now.
    const std::uint64_t start_time =
        item.value("bootId", "") == boot->str() ? item.value("startTime", std::uint64_t{0}) : 0;
    out.push_back({.name = item.value("name", ""),
                   .node = item.value("node", ""),
                   .process = {.pid = item.value("pid", 0), .start_time = start_time},
                   .log = item.value("log", ""),
                   .devices = item.value("devices", std::uint32_t{0}),
                   .device_type = item.value("deviceType", "")});
  }
  return out;
}

// Returns the word after `flag` in a command line: the words of /proc/PID/cmdline, each with a zero
// byte at its end.
std::string_view value_of(std::string_view words, std::string_view flag) {
  bool next = false;
  while (!words.empty()) {
    const std::string_view word = words.substr(0, words.find('\0'));
    if (next) return word;
    next = word == flag;
    words.remove_prefix(std::min(words.size(), word.size() + 1));
  }
  return {};
}

bool same_folder(const fs::path& one, const fs::path& other) {
  std::error_code error;
  return one == other || (one.is_absolute() && fs::equivalent(one, other, error) && !error);
}

// Returns the daemon of the cluster in `dir` that has this command line, if it is one.
std::optional<LocalDaemon> daemon_of(const fs::path& dir, std::string_view words) {
  const fs::path program = words.substr(0, words.find('\0'));
  const fs::path state = value_of(words, "--state-dir");
  if (program.filename() == "muster-controller" && same_folder(state, local_controller_dir(dir)))
    return LocalDaemon{.name = "controller", .node = "", .log = local_log(dir, "controller")};
  if (program.filename() != "muster-agent" ||
      !same_folder(state.parent_path(), local_agent_dir(dir, "x").parent_path()))
    return std::nullopt;
  const std::string node(value_of(words, "--name"));
  if (node.empty()) return std::nullopt;
  LocalDaemon agent{.name = "agent", .node = node, .log = local_log(dir, node)};
  const std::string_view devices = value_of(words, "--devices");
  std::from_chars(devices.data(), devices.data() + devices.size(), agent.devices);
  if (const std::string_view list = value_of(words, "--devices-from"); !list.empty()) {
    const CardList cards = read_cards(list);
    agent.devices = cards.cards;
    agent.device_type = cards.type;
  }
  return agent;
}

// Returns the running daemons of our user, found by their command lines.
std::vector<LocalDaemon> running_daemons(const fs::path& dir) {
  // in bytes; the kernel accepts 6 MiB at most, with the environment
  constexpr std::size_t kWordsMost = 4 << 20;
  std::vector<LocalDaemon> found;
  std::vector<pid_t> parents;
  std::error_code error;
  for (fs::directory_iterator it("/proc", error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    pid_t pid = 0;
    if (std::from_chars(name.data(), name.data() + name.size(), pid).ptr !=
        name.data() + name.size())
      continue;
    struct stat info{};
    if (::stat(it->path().c_str(), &info) != 0 || info.st_uid != ::geteuid()) continue;
    const auto stat = process::read_stat(pid);
    const auto words = io::read_file(it->path() / "cmdline", kWordsMost);
    if (!stat || !words) continue;
    auto daemon = daemon_of(dir, *words);
    if (!daemon) continue;
    daemon->process = {.pid = pid, .start_time = stat->start_time};
    if (!process::alive(daemon->process)) continue;
    found.push_back(std::move(*daemon));
    parents.push_back(stat->parent);
  }
  // A child of a daemon has the daemon's command line until it executes its own program.
  std::vector<LocalDaemon> out;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const bool child = std::ranges::any_of(
        found, [&](const LocalDaemon& other) { return other.process.pid == parents[i]; });
    if (!child) out.push_back(std::move(found[i]));
  }
  return out;
}

}  // namespace

Result<std::vector<LocalDaemon>> find_daemons(const fs::path& dir) {
  auto daemons = read_daemons(dir);
  auto running = running_daemons(dir);
  if (!daemons) {
    if (daemons.error().code != ErrorCode::NotFound || running.empty()) return daemons;
    daemons.emplace();
  }
  for (auto& found : running) {
    if (std::ranges::find(*daemons, found.process, &LocalDaemon::process) != daemons->end())
      continue;
    const auto gone = std::ranges::find_if(*daemons, [&](const LocalDaemon& other) {
      return other.same_as(found) && !process::alive(other.process);
    });
    if (gone != daemons->end()) {
      *gone = std::move(found);
    } else {
      daemons->push_back(std::move(found));
    }
  }
  std::ranges::stable_sort(*daemons, std::less(), [](const LocalDaemon& daemon) {
    return std::tuple(!daemon.node.empty(), daemon.node.size(), daemon.node);
  });
  return daemons;
}

Result<void> write_daemons(const fs::path& dir, const std::vector<LocalDaemon>& daemons) {
  const auto boot = process::boot_id();
  if (!boot) return fail(boot.error());
  json list = json::array();
  for (const auto& daemon : daemons) {
    list.push_back({{"name", daemon.name},
                    {"node", daemon.node},
                    {"pid", daemon.process.pid},
                    {"startTime", daemon.process.start_time},
                    {"bootId", boot->str()},
                    {"log", daemon.log.string()},
                    {"devices", daemon.devices},
                    {"deviceType", daemon.device_type}});
  }
  return io::replace_file(local_processes(dir), list.dump(2) + "\n", io::Durable::No);
}

Result<LocalDaemon> start_daemon(const fs::path& dir, const std::string& name,
                                 const std::string& node, const std::string& file,
                                 std::vector<std::string> args) {
  const fs::path log = local_log(dir, file);
  auto binary = sibling(name == "controller" ? "muster-controller" : "muster-agent");
  if (!binary) return fail(std::move(binary.error()));
  process::SpawnRequest request;
  request.path = *binary;
  request.argv = {*binary};
  for (auto& arg : args) request.argv.push_back(std::move(arg));
  request.argv.insert(request.argv.end(), {"--log-file", log.string()});
  request.env = process::own_environment();
  // A private cluster takes its settings from its own command line, never from a variable that is
  // meant for a client.
  std::erase_if(request.env, [](const std::string& entry) {
    return entry.starts_with("MUSTER_") && !entry.starts_with("MUSTER_LOG_LEVEL=");
  });
  request.cwd = "/";
  request.standard_out = {
      .path = log.string(), .flags = O_WRONLY | O_CREAT | O_APPEND, .mode = 0600};
  request.new_session = true;
  auto pid = process::spawn(request);
  if (!pid) return fail(std::move(pid.error()));
  auto process = process::identify(*pid);
  if (!process)
    return fail(ErrorCode::Internal,
                fmt::format("starting the {}: it ended at once:\n  {}", name, log_end(log)));
  return LocalDaemon{.name = name, .node = node, .process = *process, .log = log};
}

bool is_up(const LocalDaemon& daemon) {
  return process::alive(daemon.process) && !is_killed(daemon.process.pid);
}

std::string last_complaint(const LocalDaemon& daemon) {
  const auto text = io::read_file(daemon.log, 64 << 20);
  if (!text) return "";
  std::string_view rest = *text;
  rest.remove_prefix(rest.size() - std::min<std::size_t>(rest.size(), 64 << 10));
  std::string_view last;
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    const auto level = line.substr(std::min(line.size(), line.find(' ') + 1));  // after the time
    if (level.starts_with("warning ") || level.starts_with("error ") ||
        level.starts_with("critical "))
      last = line;
  }
  return render::printable(last.substr(0, 1024));
}

Result<void> all_up(const std::vector<LocalDaemon>& daemons) {
  for (const auto& daemon : daemons) {
    if (!is_up(daemon))
      return fail(ErrorCode::Internal,
                  fmt::format("starting the {}: it ended at once; the end of '{}':\n  {}",
                              daemon.name, daemon.log.string(), log_end(daemon.log)));
  }
  return {};
}

bool wait_gone(const std::vector<LocalDaemon>& daemons, Clock::time_point until) {
  for (const auto& daemon : daemons) {
    auto pidfd = process::Pidfd::open(daemon.process);
    while (pidfd && !pidfd->exited()) {
      const auto left =
          std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
      if (left <= 0) return false;
      pollfd item{.fd = pidfd->fd(), .events = POLLIN, .revents = 0};
      poll(&item, 1, static_cast<int>(std::min<std::int64_t>(left, 60'000)));
    }
  }
  return true;
}

void signal_all(const std::vector<LocalDaemon>& daemons, int number) {
  for (const auto& daemon : daemons) {
    if (auto pidfd = process::Pidfd::open(daemon.process)) (void)pidfd->signal(number);
  }
}

}  // namespace muster::client
