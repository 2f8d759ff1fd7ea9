// muster deploy up: brings the cluster of a hosts.yaml up.
#include <fmt/format.h>

#include "client/commands/call/call.h"
#include "client/commands/deploy/deploy.h"
#include "deploy/rollout/up.h"

namespace muster::client {
namespace {

Result<int> deploy_cluster(const Context& context, const DeployOptions& options) {
  const auto timeout = parse_timeout(options.timeout);
  if (!timeout) return fail(Error(timeout.error()));
  const auto begun = begin_deploy(options);
  if (!begun) return fail(Error(begun.error()));
  const DeployCall& call = **begun;
  auto found = survey_hosts(call, options);
  if (!found) return fail(std::move(found.error()));
  const auto outcomes =
      rollout::run_up({.file = call.file,
                       .programs = found->programs,
                       .crew = call.crew,
                       .register_time = std::chrono::duration_cast<std::chrono::seconds>(*timeout),
                       .prune = options.prune,
                       .new_ca = options.new_ca},
                      std::move(found->hosts));
  if (!outcomes) return fail(Error(outcomes.error()));
  return print_outcomes(context, *outcomes);
}

}  // namespace

void add_deploy_up(CLI::App& deploy, Context& context, int& exit) {
  auto options = std::make_shared<DeployOptions>();
  CLI::App* command = deploy.add_subcommand(
      "up", "Install, configure and start controller and agents; does only what is left");
  add_rollout_options(*command, *options);
  command->add_flag("--prune", options->prune,
                    "also remove nodes that are deployed and no longer in the file, unless a job "
                    "uses them; their certificates are revoked");
  command
      ->add_option("--timeout", options->timeout,
                   "how long a node may take to register, once its agent was started")
      ->type_name("TIME")
      ->capture_default_str();
  command->add_flag(
      "--new-ca", options->new_ca,
      "the key of the cluster's CA is lost, or has leaked: the controller makes a new "
      "CA, and every host of the file gets a new certificate");
  command->footer(
      "Every host is checked before anything is changed. A host with a problem is left out, and "
      "the others come up; correct it and run the same command again.\n"
      "Jobs that run are not disturbed: ranks outlive their agent and the controller.\n"
      "--new-ca: no certificate of before counts, users need new ones ('muster cert issue'), and a "
      "host that is left out now needs 'up --new-ca' again. While the old key is there and safe, "
      "'muster cert rotate' does it without a cut.\n"
      "exit codes: 0 the cluster is up  1 some hosts are not  10 no such file\n"
      "            11 a key or a login was refused  12 another one deploys\n"
      "            13 the controller's host is unreachable  64 hosts.yaml is wrong\n"
      "            70 the controller does not start");
  on_chosen(*command, context, exit,
            [options](const Context& chosen) { return deploy_cluster(chosen, *options); });
}

}  // namespace muster::client
