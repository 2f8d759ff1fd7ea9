// The arguments for OpenSSH's program `ssh`, so that it is as strict as muster itself whatever
// ssh_config says: it never asks at a terminal, and the host's key must be recorded. Pure.
//
// `ssh -J` gives none of these options to the ssh that it starts for the jump host. So the way
// through jump hosts is a ProxyCommand here, with the same options for each of them.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "common/base/time.h"
#include "deploy/ssh/route.h"

namespace muster::ssh {

struct OpenSshPlan {
  const Route& route;
  std::string ssh_config;
  bool accept_new = false;
  bool has_answers = false;          // for its questions (askpass.h); otherwise it asks none
  std::vector<bool> passwords = {};  // by hop: whether there is one among the answers
  std::string folder;                // private: the control socket and the logs
  Duration connect_time{};

  [[nodiscard]] std::string socket() const { return folder + "/s"; }
  // What the program for this hop writes about itself.
  [[nodiscard]] std::string log(std::size_t hop) const {
    return folder + "/log" + std::to_string(hop);
  }
  [[nodiscard]] std::string run_log() const { return folder + "/run"; }
};

// Connects, then stays in the background for the runs. It ends when it had no run for a while.
std::vector<std::string> master_args(const OpenSshPlan& plan);
// One command, over the master.
std::vector<std::string> run_args(const OpenSshPlan& plan, const std::string& command);
// Asks the master: "check", "exit".
std::vector<std::string> control_args(const OpenSshPlan& plan, const std::string& question);

}  // namespace muster::ssh
