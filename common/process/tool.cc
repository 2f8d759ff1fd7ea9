#include "common/process/tool.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "common/io/unique_fd.h"
#include "common/process/pidfd.h"
#include "common/process/spawn.h"

namespace muster::process {
namespace {

using Clock = std::chrono::steady_clock;
// The time from SIGKILL to the end. Only the kernel itself can take longer.
constexpr int kDeathMs = 200;

struct Running {
  std::size_t index = 0;  // of the request
  pid_t pid = 0;
  Pidfd handle;
  io::UniqueFd out;
  Clock::time_point deadline;
  bool open = true;
};

// Reads what is available, at most one byte more than `most`. Returns false at the end of the
// stream, or beyond `most`.
bool drain(int fd, std::string& into, std::size_t most) {
  std::array<char, 4096> part{};
  for (;;) {
    const ssize_t count = ::read(fd, part.data(), part.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno == EAGAIN;
    if (count == 0) return false;
    into.append(part.data(), std::min(static_cast<std::size_t>(count), most + 1 - into.size()));
    if (into.size() > most) return false;
  }
}

int milliseconds_until(Clock::time_point when) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(when - Clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 60'000));
}

std::string size_text(std::size_t bytes) {
  return bytes >= 1024 ? std::to_string(bytes >> 10) + " KiB" : std::to_string(bytes) + " bytes";
}
std::string time_text(std::chrono::milliseconds time) {
  return std::to_string(time.count()) + " ms";
}

// Returns false if the process has not died.
bool reap(const Running& tool, int& status) {
  for (const int wait_ms : {0, kDeathMs}) {
    pollfd death{.fd = tool.handle.fd(), .events = POLLIN, .revents = 0};
    if (wait_ms > 0) ::poll(&death, 1, wait_ms);
    pid_t gone = 0;
    do gone = ::waitpid(tool.pid, &status, WNOHANG);
    while (gone < 0 && errno == EINTR);
    if (gone != 0) return true;
  }
  return false;
}

// Starts the program, or puts into `answer` why it cannot be started.
std::optional<Running> start(const ToolRequest& request, const std::vector<std::string>& env,
                             std::size_t index, ToolAnswer& answer) {
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    answer.why = "no pipe could be made for it";
    return std::nullopt;
  }
  io::UniqueFd out(ends[0]), in(ends[1]);
  ::fcntl(out.get(), F_SETFL, O_NONBLOCK);
  SpawnRequest spawned{.path = request.program, .argv = {request.program}, .env = env};
  spawned.argv.insert(spawned.argv.end(), request.args.begin(), request.args.end());
  spawned.out_fd = in.get();
  spawned.standard_err = OpenFile{.path = "/dev/null", .flags = O_WRONLY};
  spawned.new_session = true;
  const auto pid = spawn(spawned);
  if (!pid) {
    answer.why = pid.error().message;
    answer.absent = pid.error().code == ErrorCode::NotFound;
    return std::nullopt;
  }
  auto handle = Pidfd::open_child(*pid);
  if (!handle) {
    ::kill(-*pid, SIGKILL);
    while (::waitpid(*pid, nullptr, 0) < 0 && errno == EINTR) {
    }
    answer.why = handle.error().message;
    return std::nullopt;
  }
  return Running{.index = index,
                 .pid = *pid,
                 .handle = std::move(*handle),
                 .out = std::move(out),
                 .deadline = {}};
}

}  // namespace

std::vector<ToolAnswer> ToolRunner::run(const std::vector<ToolRequest>& requests,
                                        const std::vector<std::string>& env,
                                        const ToolLimits& limits) {
  reap_stuck();
  std::vector<ToolAnswer> answers(requests.size());
  std::vector<Running> running;
  std::size_t next = 0;
  bool cancelled = false;
  const auto end = Clock::now() + limits.total;
  auto observe_at =
      limits.observe ? Clock::now() + limits.observe_interval : Clock::time_point::max();

  const auto finish = [&](Running& tool) {
    ToolAnswer& answer = answers[tool.index];
    // This ends a stuck program, or what the program left behind. It is not reaped yet, so the
    // group is still its own.
    ::kill(-tool.pid, SIGKILL);
    int status = 0;
    const bool gone = reap(tool, status);
    if (tool.open && answer.why.empty()) drain(tool.out.get(), answer.output, limits.bytes);
    if (answer.output.size() > limits.bytes) {
      if (answer.why.empty()) answer.why = "it printed more than " + size_text(limits.bytes);
      answer.output.resize(limits.bytes);
    }
    if (!gone) {
      answer.why +=
          " and does not die (process " + std::to_string(tool.pid) + "), as when a driver hangs";
      stuck_.push_back({tool.pid, requests[tool.index].program});
    } else if (answer.why.empty()) {
      if (WIFEXITED(status)) answer.status = WEXITSTATUS(status);
      if (WIFSIGNALED(status))
        answer.why = "it was ended by signal " + std::to_string(WTERMSIG(status));
      if (WIFEXITED(status) && WEXITSTATUS(status) != 0)
        answer.why = "it ended with status " + std::to_string(WEXITSTATUS(status));
    }
  };

  while (next < requests.size() || !running.empty()) {
    while (next < requests.size() && running.size() < std::max<std::size_t>(limits.parallel, 1)) {
      const std::size_t index = next++;
      const auto earlier = std::ranges::find(stuck_, requests[index].program, &Stuck::program);
      if (earlier != stuck_.end()) {
        answers[index].why = "an earlier one of it does not die (process " +
                             std::to_string(earlier->pid) + "), as when a driver hangs";
      } else if (cancelled || Clock::now() >= end) {
        answers[index].why = cancelled ? "it was not asked, nobody waited for it any more"
                                       : "it was not asked, the time for all calls was over";
      } else if (auto started = start(requests[index], env, index, answers[index])) {
        started->deadline = std::min(Clock::now() + limits.each, end);
        running.push_back(std::move(*started));
      }
    }
    std::vector<pollfd> wait;
    auto first = end;
    for (const Running& tool : running) {
      wait.push_back({tool.handle.fd(), POLLIN, 0});
      wait.push_back({tool.open ? tool.out.get() : -1, POLLIN, 0});
      first = std::min(first, tool.deadline);
    }
    if (running.empty()) continue;
    wait.push_back({limits.cancel_fd, POLLIN, 0});
    // EINTR
    if (::poll(wait.data(), wait.size(), milliseconds_until(std::min(first, observe_at))) < 0)
      continue;
    cancelled = cancelled || wait.back().revents != 0;
    std::vector<Running> still;
    for (std::size_t at = 0; at < running.size(); ++at) {
      Running& tool = running[at];
      ToolAnswer& answer = answers[tool.index];
      if (wait[2 * at + 1].revents != 0)
        tool.open = drain(tool.out.get(), answer.output, limits.bytes);
      const bool exited = wait[2 * at].revents != 0, flood = answer.output.size() > limits.bytes;
      const bool late = cancelled || Clock::now() >= tool.deadline;
      if (!exited && !flood && !late) {
        still.push_back(std::move(tool));
        continue;
      }
      if (!exited && !flood) {
        answer.why =
            cancelled                     ? "it was ended, nobody waited for it any more"
            : limits.each >= limits.total ? "it did not end within " + time_text(limits.total)
            : tool.deadline < end         ? "it did not end within " + time_text(limits.each)
                                          : "it did not end before the time for all calls was over";
      }
      finish(tool);
    }
    running = std::move(still);
    if (Clock::now() < observe_at) continue;
    observe_at = Clock::now() + limits.observe_interval;
    for (const Running& tool : running) limits.observe(tool.pid, answers[tool.index].output);
  }
  return answers;
}

void ToolRunner::reap_stuck() {
  std::erase_if(stuck_, [](const Stuck& one) { return ::waitpid(one.pid, nullptr, WNOHANG) != 0; });
}

std::size_t ToolRunner::stuck() {
  reap_stuck();
  return stuck_.size();
}

std::vector<std::string> tool_environment(const std::optional<std::string>& path) {
  auto env = own_environment();
  std::erase_if(env, [&](const std::string& variable) {
    return variable.starts_with("LANG=") || variable.starts_with("LC_") ||
           variable.starts_with("LANGUAGE=") || (path && variable.starts_with("PATH="));
  });
  env.emplace_back("LANG=C");
  if (path) env.emplace_back("PATH=" + *path);
  return env;
}

std::optional<std::string> find_program(std::string_view name, std::string_view path) {
  while (!path.empty()) {
    const std::size_t colon = path.find(':');
    const std::string_view folder = path.substr(0, colon);
    path = colon == std::string_view::npos ? std::string_view{} : path.substr(colon + 1);
    if (!folder.starts_with('/')) continue;
    std::string file = std::string(folder) + "/" + std::string(name);
    struct stat info{};
    if (::stat(file.c_str(), &info) == 0 && S_ISREG(info.st_mode) &&
        ::access(file.c_str(), X_OK) == 0)
      return file;
  }
  return std::nullopt;
}

}  // namespace muster::process
