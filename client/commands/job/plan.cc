// muster plan: prints what would run where, and the source of each value. It submits nothing.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>

#include "client/commands/call/call.h"
#include "client/commands/call/commands.h"
#include "client/commands/chain/done_stages.h"
#include "client/commands/chain/stage_keys.h"
#include "client/commands/job/command_job.h"
#include "client/commands/job/plan_code.h"
#include "client/commands/job/plan_inputs.h"
#include "client/commands/job/plan_patches.h"
#include "client/commands/job/plan_warnings.h"
#include "client/commands/job/spec_file.h"
#include "client/commands/job/submit.h"
#include "client/render/launch_text.h"
#include "client/render/table.h"

namespace muster::client {
namespace {

struct PlanOptions {
  SpecOptions spec;
  std::string stage;
  std::string output = "table";
  std::vector<std::string> ranks;
  bool all_ranks = false;
  bool contents = false;
};

std::string script_text(const v1::JobSpec& spec, const render::Style& style) {
  std::string out;
  for (const std::string& line : script_warnings(spec))
    out += style.paint(render::Tint::Warn, "# " + render::printable(line)) + "\n";
  return out;
}

void print_plan(const Context& context, const v1::PlanJobResponse& plan,
                const PlanOptions& options) {
  if (!plan.waits_for().empty()) {
    fmt::print("{}\n", context.out.paint(render::Tint::Warn,
                                         "would wait: " + render::printable(plan.waits_for())));
    fmt::print("{}\n\n", context.out.paint(render::Tint::Dim,
                                           "shown on nodes that are made up: its placement decides "
                                           "which they are, with their addresses and ports"));
  }
  render::Table table{.columns = {{"NODE"}, {"ADDRESS"}, {"DEVICES"}, {"RANKS"}}, .rows = {}};
  for (const auto& node : plan.nodes()) {
    std::string range = node.rank_count() == 0 ? "-" : std::to_string(node.first_rank());
    if (node.rank_count() > 1)
      range += fmt::format("-{}", node.first_rank() + node.rank_count() - 1);
    table.rows.push_back(
        {node.node(), node.address(), fmt::format("{}", fmt::join(node.devices(), ",")), range});
  }
  fmt::print("{}", render::to_text(table, context.out, 0));
  const auto part = [](const std::string& text) {
    if (!text.empty()) fmt::print("\n{}", text);
  };
  part(inputs_text(plan, context.out));
  part(render::setup_text(plan.spec(), context.out));
  part(render::files_text(
      plan.files(), options.contents ? render::Contents::Yes : render::Contents::No, context.out));
  part(code_patches_text(plan.spec(), context.out));
  part(patches_text(plan, context.out));
  part(script_text(plan.spec(), context.out));
  for (const std::string& line : plan.warnings())
    part(context.out.paint(render::Tint::Warn, "# " + render::printable(line)) + "\n");
  for (const auto& auxiliary : plan.auxiliaries())
    part(render::auxiliary_text(auxiliary, context.out));
  for (const auto& rank : plan.ranks()) fmt::print("\n{}", render::launch_text(rank, context.out));
  std::uint32_t world = 0;
  for (const auto& node : plan.nodes()) world += node.rank_count();
  if (!options.all_ranks && options.ranks.empty() && world > 1 && render::is_terminal(2)) {
    fmt::print(stderr, "\nrank 0 of {} shown; --rank R or --all-ranks shows others\n", world);
  }
}

// A job, or one stage of a chain. `heading` is printed above it.
struct Planned {
  std::string heading;
  v1::PlanJobResponse plan;
};

// Returns the numbers of the requested stages.
Result<std::vector<std::size_t>> chosen_stages(const std::vector<v1::JobSpec>& stages,
                                               const std::string& name) {
  std::vector<std::size_t> chosen;
  std::vector<std::string_view> names;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    names.push_back(stages[i].stage().name());
    if (name.empty() || names.back() == name) chosen.push_back(i);
  }
  if (!name.empty() && stages.empty())
    return fail(ErrorCode::InvalidArgument,
                fmt::format("option --stage '{}': this spec has no stages", name));
  if (chosen.empty() && !name.empty())
    return fail(ErrorCode::InvalidArgument,
                fmt::format("option --stage '{}': there is no such stage ({})",
                            render::printable(name), fmt::join(names, ", ")));
  return chosen;
}

Result<std::vector<Planned>> plan_all(const Context& context, const PlanOptions& options,
                                      const v1::PlanJobRequest& ranks) {
  auto wanted = load_job(context, options.spec);
  if (!wanted) return fail(std::move(wanted.error()));
  tell_notes(context, *wanted);
  const auto chosen = chosen_stages(wanted->stages, options.stage);
  if (!chosen) return fail(chosen.error());
  const auto session = context.connect();
  if (!session) return fail(session.error());
  std::vector<Planned> planned;
  InputCounts counts(*session);
  const auto add = [&](std::string heading, const v1::JobSpec& spec) -> Result<void> {
    v1::PlanJobRequest request = ranks;
    *request.mutable_spec() = spec;
    for (const v1::JobSpec& stage : wanted->stages) *request.add_stages() = stage;
    auto plan = ask(*session, &Jobs::PlanJob, request);
    if (!plan)
      return fail(spec.has_stage()
                      ? std::move(plan.error()).in(fmt::format("stage '{}'", spec.stage().name()))
                      : std::move(plan.error()));
    counts.fill(*plan);
    planned.push_back({.heading = std::move(heading), .plan = *std::move(plan)});
    return {};
  };
  if (wanted->stages.empty()) {
    if (auto added = add("", wanted->spec); !added) return fail(std::move(added.error()));
    return planned;
  }
  const auto done = find_done_stages(*session, wanted->stages, nullptr);
  for (const std::size_t i : *chosen) {
    const v1::JobSpec& spec = wanted->stages[i];
    const std::vector<std::string> behind = stages_named(spec);
    const bool is_done = done && done->found.contains(spec.stage().name());
    std::string heading = fmt::format("==== stage {} ({} of {}){}{}", spec.stage().name(), i + 1,
                                      wanted->stages.size(), behind.empty() ? "" : ", behind ",
                                      fmt::join(behind, " and "));
    if (is_done)
      heading += fmt::format(", done by job {}: would not run",
                             done->found.at(spec.stage().name()).job_id());
    if (done && done->leftover.contains(spec.stage().name()))
      heading += fmt::format(
          ", '{}' is there already, and not by a job of the stage as it is now: would run",
          done->leftover.at(spec.stage().name()));
    if (auto added = add(heading + " ====", spec); !added) return fail(std::move(added.error()));
  }
  return planned;
}

std::string plan_document(const std::vector<Planned>& planned, render::Format format) {
  if (planned.size() == 1 && planned.front().heading.empty())
    return render::document(planned.front().plan, "Plan", format);
  std::vector<const google::protobuf::Message*> plans;
  for (const Planned& one : planned) plans.push_back(&one.plan);
  return render::document_list(plans, "Plan", format);
}

Result<int> plan(const Context& context, const PlanOptions& options) {
  const auto ranks = parse_ranks(options.ranks);
  if (!ranks) return fail(ranks.error());
  v1::PlanJobRequest request;
  for (const auto rank : *ranks) request.add_ranks(rank);
  // People see one rank unless they ask for more; programs get all ranks.
  const bool people = options.output == "table" || options.output == "wide";
  if (people && options.ranks.empty() && !options.all_ranks) request.add_ranks(0);
  const auto print = [&](const std::vector<Planned>& planned) {
    for (const Planned& one : planned) {
      if (!one.heading.empty())
        fmt::print("{}{}\n\n", &one == &planned.front() ? "" : "\n",
                   context.out.paint(render::Tint::Bold, render::printable(one.heading)));
      print_plan(context, one.plan, options);
    }
  };
  return show_answer<std::vector<Planned>>(
      options.output, [&] { return plan_all(context, options, request); },
      {.names = {}, .document = plan_document, .people = [&](const auto& planned, bool) {
         print(planned);
       }});
}

}  // namespace

void add_plan(CLI::App& app, Context& context, int& exit) {
  auto options = std::make_shared<PlanOptions>();
  CLI::App* command = app.add_subcommand("plan",
                                         "Print what would run where: placement, command lines, "
                                         "environment with the source of each value");
  add_spec_options(*command, options->spec);
  take_command(*command, context);
  add_env_option(*command, options->spec);
  add_ranks_option(*command, options->ranks, "show these: 0,8-15, or all (default: 0)");
  command->add_option("--stage", options->stage, "of a chain: this one alone (default: all)")
      ->type_name("NAME");
  command->add_flag("--all-ranks", options->all_ranks, "show every rank");
  command->add_flag("--contents", options->contents,
                    "show what is in the files that are written first, too: the rank table");
  add_output_option(*command, options->output, render::Names::No);
  command->footer(
      "examples:     muster plan job.yaml --rank 7\n"
      "              muster plan job.yaml --set resources.nodes=4 -o json\n"
      "              muster plan -- torchrun --nproc_per_node 2 train.py\n"
      "exit:         0 it could run, now or later  2 these nodes never can  64 the spec is wrong; "
      "nothing is submitted");
  on_chosen(*command, context, exit,
            [options](const Context& chosen) { return plan(chosen, *options); });
}

}  // namespace muster::client
