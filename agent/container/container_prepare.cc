#include "agent/container/container_prepare.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <optional>

#include "agent/container/container_command.h"
#include "agent/container/container_image.h"
#include "agent/launch/job_reach.h"
#include "agent/launch/nearest_file.h"
#include "agent/launch/now_preparing.h"
#include "common/io/file.h"

namespace muster::agent {
namespace {

namespace fs = std::filesystem;

constexpr auto kImageTimeDefault = std::chrono::minutes(30);
constexpr unsigned kCapSysResource = 24;  // from linux/capability.h

// Raising a hard limit needs this capability. Without it a container tool refuses the whole
// container.
bool may_raise_limits() {
  const auto status = io::read_file("/proc/self/status", 1U << 16U);
  if (!status) return false;
  constexpr std::string_view kField = "\nCapEff:\t";
  const std::size_t at = status->find(kField);
  std::uint64_t mask = 0;
  if (at == std::string::npos || std::from_chars(status->data() + at + kField.size(),
                                                 status->data() + status->size(), mask, 16)
                                         .ec != std::errc())
    return false;
  return (mask >> kCapSysResource & 1U) != 0;
}

// If the job asks for a limit, it gets as much as this agent may give. Otherwise it gets the
// agent's own limit, because podman's defaults need more rights.
ContainerLimit limit_of(__rlimit_resource which, const char* name, std::uint64_t asked,
                        bool may_raise) {
  rlimit own{};
  ::getrlimit(which, &own);
  const auto number = [](rlim_t value) {
    return value == RLIM_INFINITY ? UINT64_MAX : static_cast<std::uint64_t>(value);
  };
  if (asked == 0) return {.name = name, .soft = number(own.rlim_cur), .hard = number(own.rlim_max)};
  const std::uint64_t given = may_raise ? asked : std::min(asked, number(own.rlim_max));
  return {.name = name, .soft = given, .hard = given};
}

// podman lowers its own process limit to the highest process number. Without the right to raise
// limits this is the most that podman can give.
ContainerLimit processes_limit(bool may_raise) {
  ContainerLimit limit = limit_of(RLIMIT_NPROC, "nproc", 0, may_raise);
  const auto text = io::read_file("/proc/sys/kernel/pid_max", 64);
  std::uint64_t most = 0;
  if (may_raise || !text ||
      std::from_chars(text->data(), text->data() + text->size(), most).ec != std::errc() ||
      most == 0)
    return limit;
  limit.soft = std::min(limit.soft, most);
  limit.hard = std::min(limit.hard, most);
  return limit;
}

std::vector<ContainerLimit> limits_of(const v1::NodeLaunch& order, const ContainerTool& tool) {
  std::vector<ContainerLimit> limits;
  if (tool.docker) {  // its daemon has the rights, and its own limits
    if (order.nofile() != 0)
      limits.push_back({.name = "nofile", .soft = order.nofile(), .hard = order.nofile()});
    if (order.memlock() != 0)
      limits.push_back({.name = "memlock", .soft = order.memlock(), .hard = order.memlock()});
    return limits;
  }
  const bool may_raise = may_raise_limits();
  limits.push_back(limit_of(RLIMIT_NOFILE, "nofile", order.nofile(), may_raise));
  limits.push_back(processes_limit(may_raise));
  if (order.memlock() != 0)
    limits.push_back(limit_of(RLIMIT_MEMLOCK, "memlock", order.memlock(), may_raise));
  return limits;
}

std::optional<unsigned> card_number(std::string_view name) {
  constexpr std::string_view kCard = "davinci";
  unsigned number = 0;
  if (!name.starts_with(kCard)) return std::nullopt;
  const auto [end, error] =
      std::from_chars(name.data() + kCard.size(), name.data() + name.size(), number);
  return error == std::errc() && end == name.data() + name.size() ? std::optional(number)
                                                                  : std::nullopt;
}

std::vector<std::string> cards_of_node() {
  std::set<unsigned> numbers;
  std::error_code error;
  for (fs::directory_iterator at("/dev", error), end; !error && at != end; at.increment(error)) {
    if (const auto number = card_number(at->path().filename().string())) numbers.insert(*number);
  }
  std::vector<std::string> cards;
  for (const unsigned number : numbers) cards.push_back(fmt::format("/dev/davinci{}", number));
  return cards;
}

// podman, with and without root, maps the agent's user to user 0 of the container. docker's daemon
// uses the user that it is given.
ContainerNode probe_node(const v1::NodeLaunch& order, const ContainerTool& tool) {
  ContainerNode node{
      .cards = cards_of_node(), .there = {}, .limits = limits_of(order, tool), .user = "0:0"};
  if (tool.docker) node.user = fmt::format("{}:{}", ::geteuid(), ::getegid());
  struct stat info{};
  for (const std::string_view path : probed_paths()) {
    if (::stat(std::string(path).c_str(), &info) == 0) node.there.emplace(path);
  }
  for (const v1::ContainerMount& mount : order.container().mounts()) {
    if (mount.target().empty() && ::stat(mount.source().c_str(), &info) == 0)
      node.there.insert(mount.source());
  }
  return node;
}

// Checks the job's own mounts. docker would create a directory for a missing source.
Result<void> check_sources(const v1::NodeLaunch& order) {
  for (const v1::ContainerMount& mount : order.container().mounts()) {
    struct stat info{};
    if (mount.target().empty() || ::stat(mount.source().c_str(), &info) == 0) continue;
    const int number = errno;
    auto error =
        fail_errno(fmt::format("mounting '{}' at '{}'", mount.source(), mount.target()), number);
    if (number == ENOENT || number == ENOTDIR || number == EACCES || number == ELOOP)
      error.error().code = ErrorCode::NotFound;
    error.error().message +=
        " (is it on a file system that this node sees?)" + nearest_text(mount.source());
    return error;
  }
  return {};
}

}  // namespace

std::chrono::milliseconds image_time(const v1::NodeLaunch& order) {
  const auto& timeout = order.setup().timeout();
  if (!order.has_setup() || timeout.seconds() <= 0) return kImageTimeDefault;
  return std::chrono::seconds(timeout.seconds());
}

Result<PreparedContainer> prepare_container(const v1::NodeLaunch& order,
                                            const ContainerOptions& options,
                                            const LaunchContext& context,
                                            const ImageFetch& fetching) {
  auto tool = find_container_tool(options, context.path);
  if (!tool) return fail(std::move(tool).error());
  now_preparing(fmt::format("looking for what job '{}' mounts", order.job_name()));
  if (auto there = check_sources(order); !there) return fail(std::move(there).error());
  auto image = ready_image(*tool, order.container().image(), image_time(order), fetching);
  if (!image) return fail(std::move(image).error());

  const ContainerRun run{
      .name = container_name(context.process_tag.substr(0, context.process_tag.find('/')),
                             context.node.str(), context.run.first.str(), context.run.second.value),
      .image = image->id,
      .process_tag = context.process_tag,
      .worker = context.worker.string(),
      .directory = context.layout->root().string()};
  auto command = container_command(order, *tool, probe_node(order, *tool), run);
  if (!command) return fail(std::move(command).error());
  PreparedContainer prepared{.launch = {}, .env = std::move(image->env)};
  prepared.launch.set_name(run.name);
  prepared.launch.add_tool(tool->program);
  for (const std::string& word : tool->args) prepared.launch.add_tool(word);
  for (std::string& word : *command) prepared.launch.add_argv(std::move(word));
  for (std::string& root : mount_roots(mount_sources(prepared.launch)))
    prepared.launch.add_mount_roots(std::move(root));
  return prepared;
}

}  // namespace muster::agent
