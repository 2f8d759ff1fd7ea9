#include "agent/container/container_removal.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>

#include <cerrno>
#include <filesystem>

#include "agent/container/container_tool.h"
#include "common/process/spawn.h"

namespace muster::agent {
namespace {

constexpr auto kRemovalMost = std::chrono::seconds(60);

}  // namespace

Result<std::unique_ptr<ContainerRemoval>> ContainerRemoval::start(
    async::Loop& loop, const rundir::v1::ContainerLaunch& container, Then then) {
  if (container.tool().empty())
    return fail(ErrorCode::InvalidArgument, "its launch record does not say by which tool");
  process::SpawnRequest request{.path = container.tool(0),
                                .argv = {container.tool().begin(), container.tool().end()},
                                .env = container_tool_environment()};
  // also removes the volumes that the image requests
  request.argv.insert(request.argv.end(), {"rm", "--force", "--volumes"});
  const bool docker =
      std::filesystem::path(container.tool(0)).filename().string().starts_with("docker");
  if (!docker) request.argv.emplace_back("--ignore");  // normally it has removed itself
  request.argv.push_back(container.name());
  request.cwd = "/";
  request.new_session = true;
  auto pid = process::spawn(request);
  if (!pid) return fail(std::move(pid).error());
  auto handle = process::Pidfd::open_child(*pid);
  if (!handle) {
    ::kill(-*pid, SIGKILL);
    while (::waitpid(*pid, nullptr, 0) < 0 && errno == EINTR) {
    }
    return fail(std::move(handle).error());
  }
  return std::unique_ptr<ContainerRemoval>(new ContainerRemoval(
      loop, *pid, std::move(*handle), docker ? "" : container.tool(0), std::move(then)));
}

ContainerRemoval::ContainerRemoval(async::Loop& loop, pid_t pid, process::Pidfd handle,
                                   std::string tool, Then then)
    : pid_(pid),
      handle_(std::move(handle)),
      tool_(std::move(tool)),
      then_(std::move(then)),
      timer_(loop, "container removal") {
  ready_ = std::make_unique<async::Readable>(loop, "container removed", handle_.fd(),
                                             [this] { ended(); });
  timer_.arm(kRemovalMost, [this] {
    late_ = true;
    ::kill(-pid_, SIGKILL);
  });
}

ContainerRemoval::~ContainerRemoval() {
  timer_.cancel();
  ready_.reset();
  if (pid_ == 0) return;
  ::kill(-pid_, SIGKILL);
  (void)reap();
}

int ContainerRemoval::reap() {
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = 0;
  return status;
}

void ContainerRemoval::ended() {
  if (pid_ == 0) return;
  timer_.cancel();
  const int status = reap();
  std::string trouble;
  if (late_) {
    trouble = fmt::format("it did not end within {} s", kRemovalMost.count());
  } else if (status != 0 && !tool_.empty()) {
    trouble = fmt::format("'{} rm --force' ended badly (status {})", tool_,
                          WIFEXITED(status) ? WEXITSTATUS(status) : -1);
  }
  const Then then = std::move(then_);
  then(trouble);
}

}  // namespace muster::agent
