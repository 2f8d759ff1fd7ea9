// What the verbs of `muster deploy` share: the options, hosts.yaml, the programs, and how they
// print. Functions without state; main's thread calls them. ProgressLines may be called on any
// thread.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "client/commands/call/context.h"
#include "common/base/error.h"
#include "common/base/mutex.h"
#include "deploy/hosts/hosts.h"
#include "deploy/rollout/programs.h"
#include "deploy/rollout/survey.h"
#include "deploy/rollout/up.h"

namespace muster::client {

struct DeployOptions {
  std::string file;
  std::vector<std::string> bundles;
  std::string ssh_config;
  bool force = false, purge = false, new_ca = false;
  std::string timeout = "60s";
};

void add_deploy_options(CLI::App& command, DeployOptions& options);
void add_bundle_option(CLI::App& command, DeployOptions& options);

// InvalidArgument: the text has every problem with its place.
Result<hosts::HostsFile> read_hosts_file(const std::string& file);
// Of --bundle, or those next to this program.
Result<rollout::Programs> programs_of_options(const DeployOptions& options);
// The files for known_hosts, keys and aliases; progress goes to stderr, a line a step.
rollout::Crew make_crew(const DeployOptions& options, ssh::Prompts& prompts);
// The table of outcomes. Returns the exit code: 0, or 1 if one of them is not good.
int print_outcomes(const Context& context, const std::vector<rollout::Outcome>& outcomes);

void add_deploy_plan(CLI::App& deploy, Context& context, int& exit);
void add_deploy_up(CLI::App& deploy, Context& context, int& exit);
void add_deploy_status(CLI::App& deploy, Context& context, int& exit);
void add_deploy_down(CLI::App& deploy, Context& context, int& exit);
void add_deploy_supervise(CLI::App& deploy, Context& context, int& exit);

}  // namespace muster::client
