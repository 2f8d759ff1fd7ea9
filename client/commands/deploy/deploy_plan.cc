// muster deploy plan: checks every host, and says what `up` would do. Changes nothing.
#include <fmt/format.h>

#include <cstdio>

#include "client/commands/call/call.h"
#include "client/commands/deploy/deploy.h"
#include "client/render/style.h"
#include "client/render/table.h"
#include "deploy/rollout/compare.h"

namespace muster::client {
namespace {

std::string user_text(const rollout::Surveyed& one) {
  return one.wanted.login.sudo && one.check.uid == 0 ? "root (sudo)" : one.check.user;
}

Result<int> plan(const Context& context, const DeployOptions& options) {
  const auto begun = begin_deploy(options);
  if (!begun) return fail(Error(begun.error()));
  const DeployCall& call = **begun;
  auto found = survey_hosts(call, options);
  if (!found) return fail(std::move(found.error()));
  std::vector<rollout::Surveyed>& surveyed = found->hosts;
  const rollout::Comparison comparison = rollout::compare(surveyed, call.file.cluster);
  render::Table table{
      .columns =
          {{"NAME"}, {"HOST"}, {"SSH"}, {"ARCH"}, {"USER"}, {"VERSION"}, {"RUNS"}, {"TO DO"}},
      .rows = {}};
  bool good = true;
  std::size_t left = 0;
  for (const rollout::Surveyed& one : surveyed) {
    const bool stopped = one.stopped();
    good &= !stopped;
    left += !stopped && !one.steps.none();
    table.rows.push_back({one.wanted.name, one.wanted.login.host,
                          one.transport ? std::string(ssh::to_string(*one.transport)) : "-",
                          one.error ? "-" : one.check.arch, one.error ? "-" : user_text(one),
                          one.check.current.empty() ? "-" : one.check.current,
                          one.error           ? "-"
                          : one.check.running ? "yes"
                                              : "no",
                          stopped ? context.out.paint(render::Tint::Bad, "see below")
                                  : rollout::text_of(one.steps, one.check)});
  }
  print_rows(context, table);
  for (const rollout::Surveyed& one : surveyed) {
    if (one.error)
      fmt::print("{}: {} {}\n", one.wanted.name, context.out.paint(render::Tint::Bad, "problem:"),
                 render::printable(one.error->message));
    for (const rollout::Finding& each : one.findings)
      fmt::print("{}: {} {}\n", one.wanted.name,
                 each.stops ? context.out.paint(render::Tint::Bad, "problem:")
                            : context.out.paint(render::Tint::Dim, "note:"),
                 render::printable(each.text));
  }
  for (const rollout::Outcome& each : comparison.left)
    fmt::print("{}: {} {}\n", each.name, context.out.paint(render::Tint::Dim, "note:"), each.text);
  if (!comparison.trouble.empty())
    fmt::print("{}: {} not compared with what is deployed: {}\n", surveyed.front().wanted.name,
               context.out.paint(render::Tint::Dim, "note:"),
               render::printable(comparison.trouble));
  fmt::print("{}\n", surveyed.front().stopped()
                         ? "nothing will be changed until the controller's host is well"
                     : left == 0 ? "nothing to do"
                                 : fmt::format("{} of {} to be changed by 'muster deploy up'", left,
                                               surveyed.size()));
  return good ? kOk : kJobFailed;
}

}  // namespace

void add_deploy_plan(CLI::App& deploy, Context& context, int& exit) {
  auto options = std::make_shared<DeployOptions>();
  CLI::App* command = deploy.add_subcommand(
      "plan", "Check every host, and say what 'up' would do; changes nothing");
  add_rollout_options(*command, *options);
  command->footer(
      "exit codes: 0 nothing is in the way  1 a host has a problem: a sentence says what\n"
      "            helps  10 no such file  64 hosts.yaml is wrong");
  on_chosen(*command, context, exit,
            [options](const Context& chosen) { return plan(chosen, *options); });
}

}  // namespace muster::client
