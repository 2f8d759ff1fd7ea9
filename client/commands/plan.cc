// muster plan: what would run where, and where each value comes from. Submits nothing.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>

#include "client/commands/call.h"
#include "client/commands/command_job.h"
#include "client/commands/commands.h"
#include "client/commands/plan_patches.h"
#include "client/commands/spec_file.h"
#include "client/import/shell_script.h"
#include "client/render/launch_text.h"
#include "client/render/table.h"

namespace muster::client {
namespace {

struct PlanOptions {
  SpecOptions spec;
  std::string output = "table";
  std::vector<std::string> ranks;
  bool all_ranks = false;
  bool contents = false;
};

// Where muster answers the launcher that a node's script calls: what the script computes from its own numbers. Of a script that is on this machine.
std::string computed_text(const v1::JobSpec& spec, const render::Style& style) {
  const v1::LaunchSpec& launch = spec.launch();
  if (launch.per() != v1::LAUNCH_PER_NODE || !launch.adopt()) return {};
  std::vector<std::string> command(launch.run().begin(), launch.run().end());
  if (command.empty()) command.push_back(launch.script());
  std::vector<std::string> replaced;
  for (const auto& [name, value] : launch.vars()) replaced.push_back(name);
  std::string out;
  for (const std::string& line : import::computed_warnings(import::shell_script_of(command, spec.code().at()), replaced))
    out += style.paint(render::Tint::Warn, "# " + render::printable(line)) + "\n";
  return out;
}

void print_plan(const Context& context, const v1::PlanJobResponse& plan, const PlanOptions& options) {
  if (!plan.waits_for().empty()) fmt::print("{}\n\n", context.out.paint(render::Tint::Warn, "would wait: " + render::printable(plan.waits_for())));
  render::Table table{.columns = {{"NODE"}, {"ADDRESS"}, {"DEVICES"}, {"RANKS"}}, .rows = {}};
  for (const auto& node : plan.nodes()) {
    const std::string held = node.rank_count() == 0 ? "-" : fmt::format("{}-{}", node.first_rank(), node.first_rank() + node.rank_count() - 1);
    table.rows.push_back({node.node(), node.address(), fmt::format("{}", fmt::join(node.devices(), ",")), held});
  }
  fmt::print("{}", render::to_text(table, context.out, 0));
  const auto part = [](const std::string& text) {
    if (!text.empty()) fmt::print("\n{}", text);
  };
  part(render::setup_text(plan.spec(), context.out));
  part(render::files_text(plan.files(), options.contents ? render::Contents::Yes : render::Contents::No, context.out));
  part(patches_text(plan.spec(), context.out));
  part(computed_text(plan.spec(), context.out));
  for (const auto& companion : plan.companions()) part(render::companion_text(companion, context.out));
  for (const auto& rank : plan.ranks()) fmt::print("\n{}", render::launch_text(rank, context.out));
  std::uint32_t world = 0;
  for (const auto& node : plan.nodes()) world += node.rank_count();
  if (!options.all_ranks && options.ranks.empty() && world > 1 && render::is_terminal(2)) {
    fmt::print(stderr, "\nrank 0 of {} shown; --rank R or --all-ranks shows others\n", world);
  }
}

Result<int> plan(const Context& context, const PlanOptions& options) {
  auto ranks = parse_ranks(options.ranks);
  if (!ranks) return fail(std::move(ranks.error()));
  const auto fetch = [&]() -> Result<v1::PlanJobResponse> {
    auto spec = load_job(context, options.spec);
    if (!spec) return fail(std::move(spec.error()));
    v1::PlanJobRequest request;
    *request.mutable_spec() = std::move(*spec);
    for (const auto rank : *ranks) request.add_ranks(rank);
    // People see one rank unless they ask for more; programs get all of them.
    const bool people = options.output == "table" || options.output == "wide";
    if (people && options.ranks.empty() && !options.all_ranks) request.add_ranks(0);
    return ask(context, &Jobs::PlanJob, request);
  };
  return show_answer<v1::PlanJobResponse>(options.output, fetch,
                                          {.names = {},
                                           .document = [](const auto& answer, render::Format format) { return render::document(answer, "Plan", format); },
                                           .people = [&](const auto& answer, bool) { print_plan(context, answer, options); }});
}

}  // namespace

void add_plan(CLI::App& app, Context& context, int& exit) {
  auto options = std::make_shared<PlanOptions>();
  CLI::App* command = app.add_subcommand("plan", "Print what would run where: placement, command lines, environment with the source of each value");
  add_spec_options(*command, options->spec);
  take_command(*command, context);
  add_env_option(*command, options->spec);
  add_ranks_option(*command, options->ranks, "show these: 0,8-15, or all (default: 0)");
  command->add_flag("--all-ranks", options->all_ranks, "show every rank");
  command->add_flag("--contents", options->contents, "show what is in the files that are written first, too: the rank table");
  add_output_option(*command, options->output, render::Names::No);
  command->footer(
      "examples:     muster plan job.yaml --rank 7\n"
      "              muster plan job.yaml --set resources.nodes=4 -o json\n"
      "              muster plan -- torchrun --nproc_per_node 2 train.py\n"
      "exit:         0 it could run, now or later  2 these nodes never can  64 the spec is wrong; nothing is submitted");
  on_chosen(*command, context, exit, [options](const Context& chosen) { return plan(chosen, *options); });
}

}  // namespace muster::client
