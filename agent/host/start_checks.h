// What must be right on this node before a run starts, each with the sentence that says what is
// not. Reads the file system and binds (and lets go) ports; changes nothing. Any thread. What only
// exec can tell (a broken interpreter line) is left to the worker.
#pragma once

#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "agent/host/core_shares.h"
#include "agent/host/launch_record.h"
#include "muster/v1/agent_service.pb.h"

namespace muster::agent {

struct Refusal {
  v1::StartFailure why = v1::START_FAILURE_UNSPECIFIED;
  std::string text;
  v1::CheckpointReading checkpoint = {};  // of START_FAILURE_CHECKPOINT
};

struct NodeFacts {
  std::set<std::uint32_t> devices;   // of the inventory
  std::filesystem::path state_dir;   // a disk that must have room
  std::uint64_t min_free_bytes = 0;  // on every disk the run writes to
  NumaNodes numa_nodes;              // of devices, as far as they are known
  std::filesystem::path sys{"/sys"};
};

// In this order: devices, user, directories and scripts, room, ports. Nothing: all is well.
std::optional<Refusal> check_devices(const v1::NodeLaunch& order, const NodeFacts& node);
// fills in both
std::optional<Refusal> check_user(const v1::NodeLaunch& order, UserEntry& user, bool& set_user);
// nothing where there is a setup: scripts and directories may be its work
std::optional<Refusal> check_files(const v1::NodeLaunch& order);
std::optional<Refusal> check_room(const v1::NodeLaunch& order, const NodeFacts& node);
std::optional<Refusal> check_ports(const v1::NodeLaunch& order);

// The script that an interpreter's command line names ("python3 -u train.py", "bash run.sh");
// empty: none that can be told.
std::string script_of(const std::vector<std::string>& argv);

}  // namespace muster::agent
