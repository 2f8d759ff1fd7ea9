// Says how a deployed cluster is: each daemon's host, version, whether it runs and whether the
// controller sees the node. Blocking; changes nothing.
#pragma once

#include <string>
#include <vector>

#include "common/base/error.h"
#include "deploy/hosts/hosts.h"
#include "deploy/rollout/survey.h"

namespace muster::rollout {

struct DaemonStatus {
  std::string name, host;
  bool reachable = false, running = false, registered = false;
  std::string version;  // of the programs there; empty: none
  std::string text;     // what is wrong, or a note
  bool left = false;    // no longer in the file: its host was not asked
  bool other = false;   // controller: of another cluster, or state directory, than hosts.yaml
  [[nodiscard]] bool good() const { return left || (reachable && running && registered && !other); }
};

// The controller first. Its `registered` means that it answers. Nodes of the manifest that are no
// longer in the file follow at the end.
std::vector<DaemonStatus> read_status(const hosts::HostsFile& file, const Crew& crew);

}  // namespace muster::rollout
