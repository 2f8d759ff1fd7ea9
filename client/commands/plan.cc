// muster plan: what would run where, and where each value comes from. Submits nothing.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "client/commands/commands.h"
#include "client/commands/spec_file.h"
#include "client/render/launch_text.h"
#include "client/render/table.h"

namespace muster::client {
namespace {

struct Options {
  SpecOptions spec;
  std::string output = "table";
  std::vector<std::uint32_t> ranks;
  bool all_ranks = false;
};

int plan(const Context& context, const Options& options) {
  const auto format = render::parse_format(options.output, render::Names::No);
  if (!format) return report(context, format.error());
  auto spec = load_spec(options.spec);
  if (!spec) return report(context, spec.error());
  auto session = context.connect();
  if (!session) return report(context, session.error());
  grpc::ClientContext call;
  session->prepare(call);
  v1::PlanJobRequest request;
  *request.mutable_spec() = std::move(*spec);
  v1::PlanJobResponse response;
  if (const auto status = session->jobs->PlanJob(&call, request, &response); !status.ok()) return report(context, *session, status);
  if (*format != render::Format::Table && *format != render::Format::Wide) {
    fmt::print("{}", render::document(response, "Plan", *format));
    return kOk;
  }
  if (!response.waits_for().empty()) {
    fmt::print("{}\n\n", context.out.paint(render::Tint::Warn, "would wait: " + response.waits_for()));
  }
  render::Table table{.columns = {{"NODE"}, {"ADDRESS"}, {"DEVICES"}, {"RANKS"}}, .rows = {}};
  for (const auto& node : response.nodes()) {
    std::string devices;
    for (const auto device : node.devices()) devices += fmt::format("{}{}", devices.empty() ? "" : ",", device);
    table.rows.push_back({node.node(), node.address(), devices, node.rank_count() == 0 ? "-" : fmt::format("{}-{}", node.first_rank(), node.first_rank() + node.rank_count() - 1)});
  }
  fmt::print("{}", render::to_text(table, context.out, 0));
  std::vector<std::uint32_t> wanted = options.ranks;
  if (wanted.empty() && !options.all_ranks) wanted = {0};
  for (const auto& rank : response.ranks()) {
    if (options.all_ranks || std::ranges::find(wanted, rank.rank()) != wanted.end()) fmt::print("\n{}", render::launch_text(rank, context.out));
  }
  if (!options.all_ranks && options.ranks.empty() && response.ranks_size() > 1 && render::is_terminal(2)) {
    fmt::print(stderr, "\nrank 0 of {} shown; --rank R or --all-ranks shows others\n", response.ranks_size());
  }
  return kOk;
}

}  // namespace

void add_plan(CLI::App& app, Context& context, int& exit) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("plan", "Print what would run where: placement, command lines, environment with the source of each value");
  command->add_option("file", options->spec.file, "job.yaml, or - for standard input")->required();
  command->add_option("--set", options->spec.set, "KEY=VALUE over the file");
  command->add_option("--env", options->spec.env, "NAME=VALUE over runtime.env");
  command->add_option("-r,--rank", options->ranks, "show this rank (may be given again)");
  command->add_flag("--all-ranks", options->all_ranks, "show every rank");
  add_output_option(*command, options->output, render::Names::No);
  command->callback([&context, &exit, options] { exit = plan(context, *options); });
}

}  // namespace muster::client
