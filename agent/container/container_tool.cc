#include "agent/container/container_tool.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

#include "common/process/tool.h"
#include "common/rundir/layout.h"

namespace muster::agent {
namespace {

constexpr std::size_t kLineMost = 400;

}  // namespace

Result<ContainerTool> find_container_tool(const ContainerOptions& wanted, const std::string& path) {
  ContainerTool tool{.program = {}, .args = wanted.args};
  if (wanted.tool.find('/') != std::string::npos) {
    std::error_code error;
    tool.program = std::filesystem::absolute(wanted.tool, error).string();
    if (::access(tool.program.c_str(), X_OK) != 0)
      return fail(ErrorCode::Unsatisfiable,
                  fmt::format("looking for podman or docker: '{}' is not there or not executable; "
                              "restart the agent with the right --container-tool",
                              tool.program));
  } else {
    std::vector<std::string> names = {"podman", "docker"};
    if (!wanted.tool.empty()) names = {wanted.tool};
    for (const std::string& name : names) {
      if (tool.program.empty()) tool.program = process::find_program(name, path).value_or("");
    }
    if (tool.program.empty())
      return fail(
          ErrorCode::Unsatisfiable,
          fmt::format("looking for podman or docker: there is no {} on the agent's PATH '{}'; "
                      "install podman on this node, name it with the agent's --container-tool, or "
                      "leave runtime.image out",
                      wanted.tool.empty() ? "podman and no docker" : "'" + wanted.tool + "'",
                      path));
  }
  tool.docker = std::filesystem::path(tool.program).filename().string().starts_with("docker");
  return tool;
}

std::vector<std::string> container_tool_environment() {
  auto environment = process::tool_environment();
  // If podman finds a service manager in these variables, it tells that manager that its container
  // is the service.
  constexpr auto kLeftOut = std::to_array<std::string_view>(
      {rundir::kProcessTagVariable, "NOTIFY_SOCKET", "LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES"});
  std::erase_if(environment, [&](const std::string& variable) {
    return std::ranges::any_of(kLeftOut, [&](std::string_view name) {
      return variable.starts_with(std::string(name) + "=");
    });
  });
  return environment;
}

ContainerAnswer ask_container_tool(const ContainerTool& tool, const std::vector<std::string>& words,
                                   std::chrono::milliseconds most, bool all,
                                   std::function<void(pid_t, std::string_view)> observe) {
  process::ToolRequest request{.program = tool.program};
  if (all)
    request = {.program = "/bin/sh", .args = {"-c", "exec \"$0\" \"$@\" 2>&1", tool.program}};
  request.args.insert(request.args.end(), tool.args.begin(), tool.args.end());
  request.args.insert(request.args.end(), words.begin(), words.end());
  process::ToolRunner runner;
  const auto begun = std::chrono::steady_clock::now();
  auto answers = runner.run({request}, container_tool_environment(),
                            {.each = most,
                             .total = most,
                             .parallel = 1,
                             .bytes = 4U << 20U,
                             .observe = std::move(observe)});
  process::ToolAnswer& answer = answers.front();
  const bool ended = answer.status.has_value();
  const bool late = !ended && !answer.absent && std::chrono::steady_clock::now() - begun >= most;
  return {.output = std::move(answer.output),
          .why = std::move(answer.why),
          .late = late,
          .ended = ended};
}

std::string last_output_line(std::string_view output) {
  while (!output.empty()) {
    const std::size_t begin = output.rfind('\n') + 1;  // npos + 1 is 0
    std::string line(output.substr(begin, kLineMost));
    output = output.substr(0, begin == 0 ? 0 : begin - 1);
    std::ranges::replace_if(
        line, [](char c) { return static_cast<unsigned char>(c) < ' ' || c == 0x7f; }, ' ');
    if (const std::size_t first = line.find_first_not_of(' '); first != std::string::npos)
      return line.substr(first, line.find_last_not_of(' ') - first + 1);
  }
  return {};
}

}  // namespace muster::agent
