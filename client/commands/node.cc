// muster node ls | show | declare-dead: the fleet.
#include <fmt/format.h>

#include <cstdio>

#include "client/commands/commands.h"
#include "client/render/table.h"
#include "client/render/text.h"
#include "common/base/time.h"

namespace muster::client {
namespace {

struct Options {
  std::string node;
  std::string reason;
  std::string output = "table";
};

std::string state_text(const v1::Node& node) {
  if (node.dead()) return "dead";
  if (node.connected() && !node.silent()) return "ready";
  return node.silent() ? "silent" : "away";
}

render::Tint state_tint(const v1::Node& node) {
  if (node.dead()) return render::Tint::Bad;
  return node.connected() && !node.silent() ? render::Tint::Good : render::Tint::Warn;
}

int list(const Context& context, const Options& options) {
  const auto format = render::parse_format(options.output);
  if (!format) return report(context, format.error());
  auto session = context.connect();
  if (!session) return report(context, session.error());
  grpc::ClientContext call;
  session->prepare(call);
  v1::ListNodesResponse response;
  if (const auto status = session->nodes->ListNodes(&call, {}, &response); !status.ok()) return report(context, *session, status);
  if (*format == render::Format::Name) {
    for (const auto& node : response.nodes()) fmt::print("{}\n", node.name());
    return kOk;
  }
  if (*format != render::Format::Table && *format != render::Format::Wide) {
    std::vector<const google::protobuf::Message*> items;
    for (const auto& node : response.nodes()) items.push_back(&node);
    fmt::print("{}", render::document_list(items, "Node", *format));
    return kOk;
  }
  if (response.nodes().empty()) {
    fmt::print(stderr, "no node has registered; start 'muster-agent --controller ADDRESS' on each machine\n");
    return kOk;
  }
  const WallTime now = system_clock().now().wall;
  render::Table table{.columns = {{"NODE"}, {"STATE"}, {"DEVICES", render::Align::Right}, {"BUSY", render::Align::Right}, {"ADDRESS"}, {"HEARD", render::Align::Right}, {"JOBS"}}, .rows = {}};
  if (*format == render::Format::Wide) table.columns.push_back({"VERSION"});
  for (const auto& node : response.nodes()) {
    std::string jobs;
    for (const auto& use : node.uses()) {
      if (jobs.find(use.job_name()) == std::string::npos) jobs += (jobs.empty() ? "" : ",") + use.job_name();
    }
    std::vector<std::string> row = {node.name(),
                                    context.out.paint(state_tint(node), state_text(node)),
                                    fmt::format("{}", node.inventory().devices_size()),
                                    fmt::format("{}", node.uses_size()),
                                    node.inventory().address(),
                                    node.has_last_heard() ? render::ago_text(node.last_heard(), now) : "-",
                                    jobs.empty() ? "-" : jobs};
    if (*format == render::Format::Wide) row.push_back(node.version());
    table.rows.push_back(std::move(row));
  }
  fmt::print("{}", render::to_text(table, context.out, render::is_terminal(1) ? render::terminal_width(1) : 0));
  return kOk;
}

void print_node(const Context& context, const v1::Node& node) {
  const auto line = [&](std::string_view name, const std::string& value) { fmt::print("{} {}\n", context.out.paint(render::Tint::Dim, fmt::format("{:<12}", name)), value); };
  line("node", context.out.paint(render::Tint::Bold, node.name()));
  line("state", context.out.paint(state_tint(node), state_text(node)));
  line("heard", render::ago_text(node.last_heard(), system_clock().now().wall));
  line("address", node.inventory().address());
  line("hostname", node.inventory().hostname());
  line("cpus", fmt::format("{}", node.inventory().cpus()));
  line("memory", render::bytes_text(node.inventory().memory_bytes()));
  line("boot id", node.boot_id());
  line("instance", node.instance());
  line("version", node.version());
  for (const auto& [name, value] : node.inventory().labels()) line("label", name + "=" + value);
  for (const auto& device : node.inventory().devices()) {
    std::string use = "free";
    for (const auto& held : node.uses()) {
      if (held.device() == device.id()) use = fmt::format("{} ({}, attempt {})", held.job_name(), held.job_id(), held.attempt());
    }
    line(fmt::format("{} {}", device.type(), device.id()), use);
  }
  for (const auto& unknown : node.unknown_attempts()) line("unknown", unknown + ": on the node, not known to this controller; left alone");
}

int show(const Context& context, const Options& options) {
  const auto format = render::parse_format(options.output);
  if (!format) return report(context, format.error());
  auto session = context.connect();
  if (!session) return report(context, session.error());
  grpc::ClientContext call;
  session->prepare(call);
  v1::GetNodeRequest request;
  request.set_name(options.node);
  v1::GetNodeResponse response;
  if (const auto status = session->nodes->GetNode(&call, request, &response); !status.ok()) return report(context, *session, status);
  if (*format == render::Format::Name) {
    fmt::print("{}\n", response.node().name());
    return kOk;
  }
  if (*format != render::Format::Table && *format != render::Format::Wide) {
    fmt::print("{}", render::document(response.node(), "Node", *format));
    return kOk;
  }
  print_node(context, response.node());
  return kOk;
}

int declare_dead(const Context& context, const Options& options) {
  auto session = context.connect();
  if (!session) return report(context, session.error());
  grpc::ClientContext call;
  session->prepare(call);
  v1::DeclareNodeDeadRequest request;
  request.set_name(options.node);
  request.set_reason(options.reason);
  v1::DeclareNodeDeadResponse response;
  if (const auto status = session->nodes->DeclareNodeDead(&call, request, &response); !status.ok()) return report(context, *session, status);
  fmt::print("{} dead\n", response.node().name());
  return kOk;
}

}  // namespace

void add_node(CLI::App& app, Context& context, int& exit) {
  // Options of their own: CLI11 gives variables to the verbs that were not called, too.
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("node", "Nodes: list, show, declare dead");
  command->require_subcommand(1);
  CLI::App* ls = command->add_subcommand("ls", "List nodes");
  add_output_option(*ls, options->output);
  ls->callback([&context, &exit, options] { exit = list(context, *options); });
  options = std::make_shared<Options>();
  CLI::App* one = command->add_subcommand("show", "Show one node: devices, who holds them, what else is there");
  one->add_option("node", options->node, "node name")->required();
  add_output_option(*one, options->output);
  one->callback([&context, &exit, options] { exit = show(context, *options); });
  CLI::App* dead = command->add_subcommand("declare-dead",
                                           "Your word that nothing runs on this node any more (power is off): its jobs go on elsewhere at once. "
                                           "If something does still run there, two attempts of one job may compute at the same time");
  dead->add_option("node", options->node, "node name")->required();
  dead->add_option("--reason", options->reason, "kept with the node");
  dead->callback([&context, &exit, options] { exit = declare_dead(context, *options); });
}

}  // namespace muster::client
