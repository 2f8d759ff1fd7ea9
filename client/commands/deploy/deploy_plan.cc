// muster deploy plan: checks every host, and says what `up` would do. Changes nothing.
#include <fmt/format.h>

#include <cstdio>

#include "client/commands/call/call.h"
#include "client/commands/deploy/deploy.h"
#include "client/commands/deploy/terminal_prompts.h"
#include "client/render/style.h"
#include "client/render/table.h"

namespace muster::client {
namespace {

std::string user_text(const rollout::Surveyed& one) {
  return one.wanted.login.sudo && one.check.uid == 0 ? "root (sudo)" : one.check.user;
}

Result<int> plan(const Context& context, const DeployOptions& options) {
  auto file = read_hosts_file(options.file);
  if (!file) return fail(std::move(file.error()));
  auto programs = programs_of_options(options);
  if (!programs) return fail(std::move(programs.error()));
  TerminalPrompts terminal;
  ssh::PromptOnce prompts(terminal);
  const rollout::Crew crew = make_crew(options, prompts);
  const auto surveyed = rollout::survey(rollout::wanted_of(*file), file->controller, &*programs,
                                        programs->version(), crew);
  render::Table table{
      .columns = {{"NAME"}, {"HOST"}, {"ARCH"}, {"USER"}, {"VERSION"}, {"RUNS"}, {"TO DO"}},
      .rows = {}};
  bool good = true;
  std::size_t left = 0;
  for (const rollout::Surveyed& one : surveyed) {
    const bool stopped = one.stopped();
    good &= !stopped;
    left += !stopped && !one.steps.none();
    table.rows.push_back({one.wanted.name, one.wanted.login.host, one.error ? "-" : one.check.arch,
                          one.error ? "-" : user_text(one),
                          one.check.current.empty() ? "-" : one.check.current,
                          one.error           ? "-"
                          : one.check.running ? "yes"
                                              : "no",
                          stopped ? context.out.paint(render::Tint::Bad, "see below")
                                  : rollout::text_of(one.steps, one.check)});
  }
  fmt::print("{}", render::to_text(table, context.out, 0));
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
  fmt::print("{}\n", left == 0 ? "nothing to do"
                               : fmt::format("{} of {} to be changed by 'muster deploy up'", left,
                                             surveyed.size()));
  return good ? kOk : kJobFailed;
}

}  // namespace

void add_deploy_plan(CLI::App& deploy, Context& context, int& exit) {
  auto options = std::make_shared<DeployOptions>();
  CLI::App* command = deploy.add_subcommand(
      "plan", "Check every host, and say what 'up' would do; changes nothing");
  add_deploy_options(*command, *options);
  add_bundle_option(*command, *options);
  command->footer(
      "exit codes: 0 nothing is in the way  1 a host has a problem: a sentence says what helps  64 "
      "hosts.yaml is wrong");
  on_chosen(*command, context, exit,
            [options](const Context& chosen) { return plan(chosen, *options); });
}

}  // namespace muster::client
