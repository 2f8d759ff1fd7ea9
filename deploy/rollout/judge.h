// Judges a host's check: what stands in the way of a deployment, and what is left to do. Pure.
//
// Each sentence is for the operator, and says what would help.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "deploy/rollout/check_script.h"
#include "deploy/rollout/wanted.h"

namespace muster::rollout {

struct Finding {
  bool stops = false;  // nothing is changed on this host; otherwise a note
  std::string text;
};

// A program of the release that is deployed: its size and digest, without its bytes.
struct ProgramFacts {
  std::string sha256;
  std::uint64_t bytes = 0;
};
using ProgramSet = std::map<std::string, ProgramFacts>;  // by name

struct JudgeInput {
  Wanted wanted;
  HostCheck check;
  const ProgramSet* programs = nullptr;  // for the host's architecture; null: there are none
  std::string architectures;             // what there is, for the sentence: "x86_64"
  std::chrono::seconds clock_ahead{0};   // of the host, against the operator's machine
  std::chrono::seconds clock_slack{0};   // how wrong clock_ahead may be
  bool controller_runs = false;          // and stays as it is, so its ports must be open
  bool with_agent = false;      // controller: an agent that runs as root is on the same host
  std::string same_machine_as;  // agent: another node of the file; empty: none
};
std::vector<Finding> judge(const JudgeInput& input);

// What `up` has to do on a host.
struct Steps {
  std::vector<std::string> upload;  // names of programs
  bool set_current = false;
  bool write_config = false;
  bool issue = false;  // credentials
  bool start = false;  // or start again

  [[nodiscard]] bool none() const {
    return upload.empty() && !set_current && !write_config && !issue && !start;
  }
};
Steps steps_for(const Wanted& wanted, const HostCheck& check, const ProgramSet& programs,
                const std::string& version);
// "upload muster, muster-agent; write the configuration; start", or "nothing".
std::string text_of(const Steps& steps, const HostCheck& check);

}  // namespace muster::rollout
