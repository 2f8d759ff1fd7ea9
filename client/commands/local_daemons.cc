#include "client/commands/local_daemons.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <nlohmann/json.hpp>

#include "client/commands/local_paths.h"
#include "client/render/text.h"
#include "common/io/file.h"
#include "common/process/pidfd.h"
#include "common/process/spawn.h"

namespace muster::client {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using nlohmann::json;

// Beside our own binary: a build folder or an installation holds all four.
Result<std::string> sibling(std::string_view name) {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  const fs::path path = self.parent_path() / name;
  if (error || !fs::exists(path, error))
    return fail(ErrorCode::NotFound, fmt::format("finding '{}': it should lie beside '{}'; is the installation whole?", name, self.string()));
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
  for (const char c : text->substr(at)) out += c == '\n' ? std::string("\n  ") : render::printable(std::string_view(&c, 1));
  while (!out.empty() && (out.back() == ' ' || out.back() == '\n')) out.pop_back();
  return out;
}

// proc(5): masks of the signals that wait for the first thread, and for the process.
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

}  // namespace

Result<std::vector<LocalDaemon>> read_daemons(const fs::path& dir) {
  auto text = io::read_file(local_processes(dir), 1 << 20);
  if (!text) {
    if (text.error().code == ErrorCode::NotFound)
      return fail(ErrorCode::NotFound, fmt::format("finding the private cluster in '{}': none was started there; 'muster local up' starts one", dir.string()));
    return fail(std::move(text.error()));
  }
  std::vector<LocalDaemon> out;
  const json list = json::parse(*text, nullptr, false);
  if (!list.is_array())
    return fail(ErrorCode::DataLoss,
                fmt::format("reading '{}': not what 'muster local up' writes; stop the daemons by hand and remove it", local_processes(dir).string()));
  const auto boot = process::boot_id();
  if (!boot) return fail(boot.error());
  for (const auto& item : list) {
    if (!item.is_object()) continue;
    // Of another boot: gone, whoever has its number now.
    const std::uint64_t start_time = item.value("bootId", "") == boot->str() ? item.value("startTime", std::uint64_t{0}) : 0;
    out.push_back({.name = item.value("name", ""),
                   .node = item.value("node", ""),
                   .process = {.pid = item.value("pid", 0), .start_time = start_time},
                   .log = item.value("log", "")});
  }
  return out;
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
                    {"log", daemon.log.string()}});
  }
  return io::replace_file(local_processes(dir), list.dump(2) + "\n", io::Durable::No);
}

Result<LocalDaemon> start_daemon(const fs::path& dir, const std::string& name, const std::string& node, const std::string& file,
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
  // A private cluster takes its settings from its own command line, never from a variable meant for a client.
  std::erase_if(request.env, [](const std::string& entry) { return entry.starts_with("MUSTER_") && !entry.starts_with("MUSTER_LOG_LEVEL="); });
  request.cwd = "/";
  request.standard_out = {.path = log.string(), .flags = O_WRONLY | O_CREAT | O_APPEND, .mode = 0600};
  request.new_session = true;
  auto pid = process::spawn(request);
  if (!pid) return fail(std::move(pid.error()));
  auto process = process::identify(*pid);
  if (!process) return fail(ErrorCode::Internal, fmt::format("starting the {}: it ended at once:\n  {}", name, log_end(log)));
  return LocalDaemon{.name = name, .node = node, .process = *process, .log = log};
}

bool is_up(const LocalDaemon& daemon) { return process::alive(daemon.process) && !is_killed(daemon.process.pid); }

Result<void> all_up(const std::vector<LocalDaemon>& daemons) {
  for (const auto& daemon : daemons) {
    if (!is_up(daemon))
      return fail(ErrorCode::Internal,
                  fmt::format("starting the {}: it ended at once; the end of '{}':\n  {}", daemon.name, daemon.log.string(), log_end(daemon.log)));
  }
  return {};
}

bool wait_gone(const std::vector<LocalDaemon>& daemons, Clock::time_point until) {
  for (const auto& daemon : daemons) {
    auto pidfd = process::Pidfd::open(daemon.process);
    while (pidfd && !pidfd->exited()) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
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
