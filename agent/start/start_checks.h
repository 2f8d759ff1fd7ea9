// Functions that check this node before a run starts; each returns a sentence about what is wrong.
// They keep no state. They read the file system, look the user and the node's address up, and bind
// ports for a moment. They change nothing. They may block, so they run on the thread of a start.
//
// What only exec can detect (a broken interpreter line) is left to the worker.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "agent/launch/core_shares.h"
#include "agent/launch/launch_record.h"
#include "common/base/error.h"
#include "muster/v1/agent_service.pb.h"

namespace muster::agent {

struct Refusal {
  v1::StartFailure why = v1::START_FAILURE_UNSPECIFIED;
  std::string text;
  v1::CheckpointReading checkpoint = {};  // for START_FAILURE_CHECKPOINT
  std::string step = {};                  // word of the step that refused it; empty: none
};

// Launch failure: what the job asked for is wrong on every node. All other errors are a problem of
// this node, or of this moment.
v1::StartFailure failure_of(const Error& error);
Refusal refusal_of(const Error& error);

struct NodeFacts {
  std::set<std::uint32_t> devices;   // from the inventory
  std::filesystem::path state_dir;   // its disk must have space
  std::uint64_t min_free_bytes = 0;  // on every disk the run writes to
  NumaNodes numa_nodes;              // of devices, as far as known
  std::filesystem::path sys{"/sys"};
};

// An empty result means that the check passed. step_check() calls them in the order devices, user,
// room, files, ports. With a copy of the code, step_code() checks the files.
std::optional<Refusal> check_devices(const v1::NodeLaunch& order, const NodeFacts& node);
// sets `user` and `set_user`
std::optional<Refusal> check_user(const v1::NodeLaunch& order, UserEntry& user, bool& set_user);
// does nothing if there is a setup, which may provide scripts and directories
std::optional<Refusal> check_files(const v1::NodeLaunch& order);
std::optional<Refusal> check_room(const v1::NodeLaunch& order, const NodeFacts& node);
std::optional<Refusal> check_ports(const v1::NodeLaunch& order);

// Returns the script in an interpreter's command line ("python3 -u train.py", "bash run.sh").
// Empty: there is none, or it cannot be determined.
std::string script_of(const std::vector<std::string>& argv);

}  // namespace muster::agent
