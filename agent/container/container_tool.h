// Functions that find podman or docker on this node, run it, and read its output. They keep no
// state. They block, and may run on any thread.
//
// muster uses only the command lines of these tools
// (docs/decisions/0008-containers-by-podman-or-docker.md).
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"

namespace muster::agent {

// The agent's --container-tool and --container-arg.
struct ContainerOptions {
  std::string tool;               // a path, or a name on PATH; empty: podman, else docker
  std::vector<std::string> args;  // before the verb: --runtime runc
};

struct ContainerTool {
  std::string program;  // absolute
  std::vector<std::string> args;
  bool docker = false;  // has docker's command line
};

// Errors (Unsatisfiable): there is no tool; the text says what would help.
Result<ContainerTool> find_container_tool(const ContainerOptions& wanted, const std::string& path);

struct ContainerAnswer {
  std::string output;
  std::string why;     // empty: it ended with status 0
  bool late = false;   // it reached the time limit
  bool ended = false;  // it exited by itself, with a status
  [[nodiscard]] bool good() const { return why.empty(); }
};
// `words`: a verb and its arguments. If `all` is true, the output also has what the tool writes to
// stderr. `observe`: called once a second, as ToolLimits::observe.
ContainerAnswer ask_container_tool(const ContainerTool& tool, const std::vector<std::string>& words,
                                   std::chrono::milliseconds most, bool all,
                                   std::function<void(pid_t, std::string_view)> observe = {});

// The tool's environment: the agent's own (registry credentials are found through it), without the
// variables that would make the tool a process of a run or of the agent's service.
std::vector<std::string> container_tool_environment();

// The last line that is not blank, printable, at most 400 bytes. Empty: there is none.
std::string last_output_line(std::string_view output);

}  // namespace muster::agent
