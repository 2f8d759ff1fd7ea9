// muster deploy status: how the daemons of a hosts.yaml are.
#include <fmt/format.h>

#include <algorithm>

#include "client/commands/call/call.h"
#include "client/commands/deploy/deploy.h"
#include "client/render/style.h"
#include "client/render/table.h"
#include "deploy/rollout/status.h"

namespace muster::client {
namespace {

Result<int> show_status(const Context& context, const DeployOptions& options) {
  const auto begun = begin_deploy(options);
  if (!begun) return fail(Error(begun.error()));
  const DeployCall& call = **begun;
  const auto rows = rollout::read_status(call.file, call.crew);
  render::Table table{
      .columns = {{"NAME"}, {"HOST"}, {"REACHABLE"}, {"VERSION"}, {"RUNS"}, {"REGISTERED"}, {""}},
      .rows = {}};
  const auto word = [&](bool yes) {
    return context.out.paint(yes ? render::Tint::Good : render::Tint::Bad, yes ? "yes" : "no");
  };
  for (const rollout::DaemonStatus& one : rows)
    table.rows.push_back({one.name, one.host, one.left ? "-" : word(one.reachable),
                          one.version.empty() ? "-" : one.version,
                          one.left ? "-" : word(one.running), word(one.registered), one.text});
  print_rows(context, table);
  if (!rows.front().reachable) return kUnreachable;
  return std::ranges::all_of(rows, &rollout::DaemonStatus::good) ? kOk : kJobFailed;
}

}  // namespace

void add_deploy_status(CLI::App& deploy, Context& context, int& exit) {
  auto options = std::make_shared<DeployOptions>();
  CLI::App* command = deploy.add_subcommand(
      "status",
      "Show of each host whether it is reachable, what runs there, and whether the "
      "controller sees it");
  add_deploy_options(*command, *options);
  command->footer(
      "exit codes: 0 all of it runs and is registered  1 something is not\n"
      "            10 no such file  13 the controller's host is unreachable\n"
      "            64 hosts.yaml is wrong");
  on_chosen(*command, context, exit,
            [options](const Context& chosen) { return show_status(chosen, *options); });
}

}  // namespace muster::client
