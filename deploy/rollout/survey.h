// Surveys all hosts at once: connects, runs the check, and judges what it says. Blocking; starts at
// most 32 threads, which have ended when it returns. Changes nothing on any host.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "deploy/hosts/hosts.h"
#include "deploy/rollout/check_script.h"
#include "deploy/rollout/host.h"
#include "deploy/rollout/judge.h"
#include "deploy/rollout/key_install.h"
#include "deploy/rollout/programs.h"
#include "deploy/ssh/prompts.h"
#include "deploy/ssh/session.h"

namespace muster::rollout {

inline constexpr std::size_t kThreadsMost = 32;

// How hosts are reached, and who learns what is done. `progress` may be called on any thread, by
// several threads at the same time.
struct Crew {
  ssh::Options options;
  ssh::Prompts* prompts = nullptr;
  std::function<void(const std::string& name, const std::string& text)> progress;
  KeyInstall* key_install = nullptr;  // for hosts that take a password; null: it is not wanted
};

// Calls `act(index)` for 0 to count - 1, on at most kThreadsMost threads.
void for_each_host(std::size_t count, const std::function<void(std::size_t)>& act);

struct Surveyed {
  Wanted wanted;
  std::optional<Host> host;                     // none: `error` says why
  std::optional<Error> error;                   // of the connection or of the check
  std::optional<ssh::TransportKind> transport;  // none: it was not reached
  HostCheck check;
  std::chrono::seconds clock_ahead{0}, clock_slack{0};
  std::string same_machine_as;  // another agent of the file, by another name of its host
  std::vector<Finding> findings;
  Steps steps;  // where there are programs for the host

  // Nothing may be changed on this host.
  [[nodiscard]] bool stopped() const;
  // The first sentence that says why.
  [[nodiscard]] std::string why() const;
};

// The controller first. `programs` null: nothing is judged (status, down).
std::vector<Surveyed> survey(const std::vector<Wanted>& wanted, const hosts::Controller& controller,
                             const Programs* programs, const std::string& version,
                             const Crew& crew);
// Runs the check once more on one host, over the session of `host`, and judges it again.
Result<void> check_again(Surveyed& one, Host& host, const hosts::Controller& controller,
                         const Programs* programs, const std::string& version,
                         bool controller_runs);

}  // namespace muster::rollout
