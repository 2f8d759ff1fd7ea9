// CommandLine holds the agent's command line, its MUSTER_* variables and the file of --config
// (common/config). Plain values. main() creates one at the start.
//
// Of other files only the function that endpoint_source() returns reads some: the endpoint file and
// the credentials.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "agent/container/container_tool.h"
#include "agent/start/start_step.h"
#include "common/base/error.h"
#include "common/base/ids.h"
#include "common/base/time.h"
#include "common/rpc/channel.h"

namespace muster::agent {

struct CommandLine {
  std::string controller;             // address (unix:/path, host:port) or an endpoint file
  std::filesystem::path credentials;  // for host:port; empty: none
  std::string enrol;                  // host:port of the enrolment port; empty: none
  std::filesystem::path join;         // a token file, or "-"; empty: none
  NodeName name;
  std::filesystem::path state_dir;
  std::optional<std::uint32_t> devices;  // CPU slots
  // a file with a list of devices (agent/probe/fixed_inventory.h); empty: the tools are asked
  std::filesystem::path devices_from;
  Duration probe_interval{};
  std::string address;
  std::map<std::string, std::string> labels;
  std::filesystem::path worker;
  std::string cgroup = "auto";
  std::string log_level = "info";
  std::filesystem::path log_file;  // empty: stderr
  std::uint64_t min_free_bytes = 256ULL << 20U;
  ContainerOptions container;
  // MUSTER_FAILPOINT=start:STEP:kill, for tests: the agent kills itself after this step of a start
  std::optional<StartStep> kill_after;
};

// An empty result: help, version, or a check was requested and printed. Errors are InvalidArgument.
Result<std::optional<CommandLine>> parse_command_line(int argc, char** argv);

// Returns a function that finds the controller. The function reads the endpoint file again at each
// call, because each controller rewrites it, and the credentials, which are renewed. Thread-safe.
// Credentials of another node or of a user are NotAllowed.
std::function<Result<rpc::Endpoint>()> endpoint_source(const CommandLine& command_line);

}  // namespace muster::agent
