// What the verbs of `muster deploy` share: the options, hosts.yaml, the programs, and how they
// print. Functions without state; main's thread calls them. ProgressLines may be called on any
// thread.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/commands/call/context.h"
#include "client/commands/deploy/terminal_prompts.h"
#include "client/render/table.h"
#include "common/base/error.h"
#include "common/base/mutex.h"
#include "deploy/hosts/hosts.h"
#include "deploy/rollout/key_install.h"
#include "deploy/rollout/programs.h"
#include "deploy/rollout/survey.h"
#include "deploy/rollout/up.h"

namespace muster::client {

inline constexpr const char* kUsualKey = "true";  // of --install-key without a value

struct DeployOptions {
  std::string file;
  std::vector<std::string> bundles;
  std::string ssh_config;
  bool accept_new = false, force = false, purge = false, prune = false, outputs = false,
       new_ca = false;
  std::string timeout = "60s";
  std::string install_key;  // kUsualKey, or a file; empty: none is installed
};

void add_deploy_options(CLI::App& command, DeployOptions& options);
// Also those of the programs, for the verbs that send them.
void add_rollout_options(CLI::App& command, DeployOptions& options);

// What every verb begins with: hosts.yaml, the person who is asked for passwords, and how hosts are
// reached. Progress goes to stderr, a line a step.
struct DeployCall {
  explicit DeployCall(hosts::HostsFile read) : file(std::move(read)) {}
  hosts::HostsFile file;
  TerminalPrompts terminal;
  ssh::PromptOnce prompts{terminal};
  std::optional<rollout::KeyInstall> key_install;
  rollout::Crew crew;
};
// InvalidArgument: the text has every problem of hosts.yaml with its place.
Result<std::unique_ptr<DeployCall>> begin_deploy(const DeployOptions& options);

// What `plan` and `up` go on with: the programs of --bundle, or those next to this program, and
// every host's check.
struct SurveyedHosts {
  rollout::Programs programs;
  std::vector<rollout::Surveyed> hosts;
};
Result<SurveyedHosts> survey_hosts(const DeployCall& call, const DeployOptions& options);

// Prints the table. Where it is too wide for the terminal, the sentences of its last column follow
// below it, so that none of them is cut or wrapped into the others.
void print_rows(const Context& context, render::Table table);
// The table of outcomes. Returns the exit code: 0, or 1 if one of them is not good.
int print_outcomes(const Context& context, const std::vector<rollout::Outcome>& outcomes);

void add_deploy_plan(CLI::App& deploy, Context& context, int& exit);
void add_deploy_up(CLI::App& deploy, Context& context, int& exit);
void add_deploy_status(CLI::App& deploy, Context& context, int& exit);
void add_deploy_down(CLI::App& deploy, Context& context, int& exit);
void add_deploy_supervise(CLI::App& deploy, Context& context, int& exit);

}  // namespace muster::client
