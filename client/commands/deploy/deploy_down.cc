// muster deploy down: stops and removes what `up` put on the hosts.
#include <fmt/format.h>

#include "client/commands/call/call.h"
#include "client/commands/deploy/deploy.h"
#include "deploy/rollout/down.h"

namespace muster::client {
namespace {

Result<int> take_cluster_down(const Context& context, const DeployOptions& options) {
  const auto begun = begin_deploy(options);
  if (!begun) return fail(Error(begun.error()));
  const DeployCall& call = **begun;
  const auto outcomes = rollout::take_down({.file = call.file,
                                            .crew = call.crew,
                                            .force = options.force,
                                            .purge = options.purge,
                                            .outputs = options.outputs});
  if (!outcomes) return fail(Error(outcomes.error()));
  if (outcomes->empty()) {
    fmt::print("nothing is deployed: there is no manifest on '{}'\n",
               render::printable(call.file.controller.login.host));
    return kOk;
  }
  return print_outcomes(context, *outcomes);
}

}  // namespace

void add_deploy_down(CLI::App& deploy, Context& context, int& exit) {
  auto options = std::make_shared<DeployOptions>();
  CLI::App* command = deploy.add_subcommand(
      "down", "Stop the daemons and remove what 'up' put on the hosts; logs and state stay");
  add_deploy_options(*command, *options);
  command->add_flag("--force", options->force,
                    "cancel the jobs that have not ended, do not wait for a controller that does "
                    "not run, and forget hosts that do not answer");
  CLI::Option* purge = command->add_flag(
      "--purge", options->purge,
      "remove state directories and logs, too: the journal, all jobs and their logs, the cluster's "
      "CA. Checkpoints and other outputs of jobs stay");
  command
      ->add_flag("--outputs", options->outputs,
                 "with --purge: remove the outputs of jobs below the controller's state directory, "
                 "too")
      ->needs(purge);
  command->footer(
      "What is removed is what the manifest on the controller's host names, also of hosts that "
      "are no longer in the file.\n"
      "exit codes: 0 nothing is left  1 a host was not reached: run it again\n"
      "            10 no such file  11 a key or a login was refused\n"
      "            12 jobs have not ended, or another one deploys\n"
      "            13 the controller's host is unreachable  64 hosts.yaml is wrong");
  on_chosen(*command, context, exit,
            [options](const Context& chosen) { return take_cluster_down(chosen, *options); });
}

}  // namespace muster::client
