// Checks the machine itself: the disk of the state directory, and the programs that only some jobs
// need. The agent calls it on the thread of its disk, because a disk may hang. It has no state.
#pragma once

#include <filesystem>
#include <string>

#include "muster/v1/node.pb.h"

namespace muster::agent::probe {

struct HostCheck {
  std::filesystem::path state_dir;
  std::string path;            // directories of programs, "/a:/b"
  std::string cgroup_trouble;  // why runs get no control groups; empty: they get them
};

// Everything except the certificate, which the agent adds.
v1::HostReading check_host(const HostCheck& check);

}  // namespace muster::agent::probe
