// podman or docker: which of them this node has, how it is asked, and what it says when it fails.
// By their command lines alone (docs/decisions/0008-containers-by-podman-or-docker.md). Blocking;
// any thread.
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
  bool docker = false;  // speaks docker's dialect
};

// Errors (Unsatisfiable): there is none, with what would help.
Result<ContainerTool> find_container_tool(const ContainerOptions& wanted, const std::string& path);

struct ContainerAnswer {
  std::string output;
  std::string why;     // empty: it ended with status 0
  bool late = false;   // it had no more time
  bool ended = false;  // by itself, with a status
  [[nodiscard]] bool good() const { return why.empty(); }
};
// `words`: a verb and what follows it. What it says on stderr is in the output, too, when `all` is
// true. `observe`: once a second, as ToolLimits::observe.
ContainerAnswer ask_container_tool(const ContainerTool& tool, const std::vector<std::string>& words,
                                   std::chrono::milliseconds most, bool all,
                                   std::function<void(pid_t, std::string_view)> observe = {});

// What the tool gets: the agent's own environment (credentials of registries are found by it),
// without what would make it a process of a run, or of the agent's service.
std::vector<std::string> container_tool_environment();

// The last line with something in it, printable, at most 400 bytes; empty: none.
std::string last_output_line(std::string_view output);

}  // namespace muster::agent
