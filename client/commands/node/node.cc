// muster node ls | show | declare-dead | replace: the nodes of the cluster. node_facts.h adds other
// verbs.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <set>
#include <string>
#include <vector>

#include "client/commands/call/call.h"
#include "client/commands/call/commands.h"
#include "client/commands/cert/new_token.h"
#include "client/commands/follow/pause_warning.h"
#include "client/commands/node/node_facts.h"
#include "client/render/device_text.h"
#include "client/render/health_checks.h"
#include "client/render/node_text.h"
#include "client/render/table.h"
#include "client/render/text.h"
#include "common/base/label.h"
#include "common/base/time.h"
#include "common/proto/proto_time.h"

namespace muster::client {
namespace {

struct NodeOptions {
  std::string node;
  std::string reason;
  std::string output = "table";
  std::vector<std::string> labels;  // only nodes that have all of them
};

struct ReplaceOptions {
  std::string node, file, lifetime = "24h";
};

// Returns why the node's state directory accepts no writes, and the consequence. Returns an empty
// text if it accepts them.
std::string disk_text(const v1::Node& node, WallTime now) {
  if (node.disk_trouble().empty()) return {};
  const std::string text = "no writes to its state directory (" +
                           render::printable(node.disk_trouble()) +
                           "): ends of ranks are not seen before it takes them";
  if (!node.has_lease_ends()) return text;
  const Duration left = std::max(Duration::zero(), to_wall(node.lease_ends()) - now);
  return text + "; ranks are stopped in " + render::duration_text(left) + ", when their lease ends";
}

// `labels`: what the nodes were selected by; `all` of them have registered.
void print_no_node(std::size_t all, const std::vector<std::string>& labels) {
  if (all == 0) {
    fmt::print(
        stderr,
        "no node has registered; start 'muster-agent --controller ADDRESS' on each machine\n");
    return;
  }
  fmt::print(stderr,
             "no node has the label{} {}; {} registered: 'muster node ls -o wide' shows their "
             "labels\n",
             labels.size() == 1 ? "" : "s",
             render::printable(fmt::format("{}", fmt::join(labels, " and "))),
             all == 1 ? "1 node has" : fmt::format("{} nodes have", all));
}

void print_nodes(const Context& context, const v1::ListNodesResponse& response, bool wide) {
  const WallTime now = system_clock().now().wall;
  render::Table table{.columns = {{"NODE", render::Align::Left, 12},
                                  {"STATE"},
                                  {"DEVICES"},
                                  {"HEALTH"},
                                  {"BUSY", render::Align::Right},
                                  {"ADDRESS"},
                                  {"HEARD", render::Align::Right},
                                  {"JOBS"}},
                      .rows = {}};
  if (wide) {
    table.columns.push_back({"VERSION"});
    table.columns.push_back({"DISK FREE", render::Align::Right});
    table.columns.push_back({"OUTPUTS"});
    table.columns.push_back({"LABELS"});
  }
  for (const auto& node : response.nodes()) {
    std::set<std::string> jobs;
    for (const auto& use : node.uses()) jobs.insert(use.job_name());
    std::vector<std::string> row = {
        node.name(),
        context.out.paint(render::node_state_tint(node), render::node_state_text(node)),
        render::devices_text(node),
        render::health_text(node, context.out),
        fmt::format("{}", node.uses_size()),
        node.inventory().address(),
        node.has_last_heard() ? render::ago_text(node.last_heard(), now) : "-",
        jobs.empty() ? "-" : fmt::format("{}", fmt::join(jobs, ","))};
    if (wide) {
      row.push_back(node.version());
      row.push_back(
          node.host().disk_bytes() == 0 ? "-" : render::bytes_text(node.host().disk_bytes_free()));
      row.push_back(render::outputs_text(node));
      row.push_back(render::labels_text(node));
    }
    table.rows.push_back(std::move(row));
  }
  // Nothing is cut of a wide table: its last columns are what it is asked for.
  fmt::print("{}",
             render::to_text(table, context.out,
                             !wide && render::is_terminal(1) ? render::terminal_width(1) : 0));
  for (const auto& node : response.nodes()) {
    if (const std::string text = disk_text(node, now); !text.empty())
      fmt::print("{}: {}\n", render::printable(node.name()), text);
    else if (const auto disk = render::disk_check(node); disk && disk->level != render::Level::Ok)
      fmt::print("{}: {}; {}\n", render::printable(node.name()), render::printable(disk->text),
                 disk->advice);
  }
}

void print_routes(const Context& context, const v1::Inventory& inventory) {
  const auto line = [&](const std::string& value) {
    fmt::print("{}", render::field_line(context.out, "route", render::printable(value)));
  };
  for (const auto& one : inventory.routes()) {
    line(fmt::format("{} {} {}{}{}", one.destination(), one.connected() ? "on" : "by a gateway on",
                     one.interface(), one.source().empty() ? "" : ", from " + one.source(),
                     one.metric() == 0 ? "" : fmt::format(", metric {}", one.metric())));
  }
  if (inventory.routes_cut())
    line(
        "and others, which the agent does not announce: there are too many, or rules choose their "
        "tables");
}

void print_node(const Context& context, const v1::Node& node, bool wide) {
  const auto line = [&](std::string_view name, const std::string& value) {
    fmt::print("{}", render::field_line(context.out, name, value));
  };
  line("node", context.out.paint(render::Tint::Bold, node.name()));
  line("state", context.out.paint(render::node_state_tint(node), render::node_state_text(node)));
  if (node.has_drain()) {
    const WallTime now = system_clock().now().wall;
    line("drain", render::drain_text(node.drain(), now));
    if (const std::string then = render::drain_deadline_text(node.drain(), now); !then.empty())
      line("deadline", then);
  }
  line("heard", render::ago_text(node.last_heard(), system_clock().now().wall));
  if (const std::string text = disk_text(node, system_clock().now().wall); !text.empty())
    line("disk", text);
  else if (const auto disk = render::disk_check(node))
    line("disk", render::printable(disk->text) + (disk->advice.empty() ? "" : "; " + disk->advice));
  if (const auto outputs = render::outputs_check(node))
    line("outputs", render::printable(outputs->text) +
                        (outputs->advice.empty() ? "" : "; " + outputs->advice));
  line("address", node.inventory().address() +
                      (wide && node.inventory().address_given() ? " (--address)" : ""));
  line("hostname", node.inventory().hostname());
  line("cpus", fmt::format("{}", node.inventory().cpus()));
  line("memory", render::bytes_text(node.inventory().memory_bytes()));
  line("boot id", node.boot_id());
  line("instance", node.instance());
  line("version", node.version());
  for (const auto& [name, value] : render::node_labels(node))
    line("label", render::printable(name + "=" + value) +
                      (node.labels().contains(name) ? " (muster node label)" : ""));
  for (const auto& one : node.inventory().interfaces()) {
    line("interface",
         render::printable(fmt::format("{} {}", one.name(), fmt::join(one.addresses(), " "))));
  }
  if (wide) print_routes(context, node.inventory());
  for (const auto& unknown : node.unknown_attempts())
    line("unknown", fmt::format("{}.{}: on the node, not known to this controller; left alone, and "
                                "nothing is placed here until its muster-worker is ended",
                                unknown.job_id(), unknown.attempt()));
  for (const auto& finding : node.inventory().findings())
    line("finding", render::printable(finding));
  for (const auto& reading : node.readings()) {
    if (const std::string trouble = render::trouble_text(reading); !trouble.empty())
      line("health", trouble);
  }
  const std::string health = render::health_text(node, context.out);
  line("devices", render::devices_text(node) + (health == "-" ? "" : ", " + health));
  if (node.inventory().devices().empty()) return;
  fmt::print("\n{}", render::to_text(render::device_table(node, context.out, wide), context.out,
                                     render::is_terminal(1) ? render::terminal_width(1) : 0));
}

// Leaves the nodes that have all of these labels ("rack=r1").
Result<void> keep_labelled(v1::ListNodesResponse& answer, const std::vector<std::string>& labels) {
  for (const std::string& text : labels) {
    const auto label = parse_label(text);
    if (!label) return fail(Error(label.error()));
    auto& nodes = *answer.mutable_nodes();
    const auto rest = std::remove_if(nodes.begin(), nodes.end(), [&](const v1::Node& node) {
      const auto its = render::node_labels(node);
      const auto found = its.find(label->first);
      return found == its.end() || found->second != label->second;
    });
    nodes.erase(rest, nodes.end());
  }
  return {};
}

Result<int> list(const Context& context, const NodeOptions& options) {
  std::size_t all = 0;
  const auto fetch = [&]() -> Result<v1::ListNodesResponse> {
    auto answer = ask(context, &Nodes::ListNodes, v1::ListNodesRequest());
    if (!answer) return answer;
    all = static_cast<std::size_t>(answer->nodes_size());
    if (auto kept = keep_labelled(*answer, options.labels); !kept)
      return fail(std::move(kept.error()));
    return answer;
  };
  const auto names = [](const v1::ListNodesResponse& answer) {
    std::string text;
    for (const auto& node : answer.nodes()) text += node.name() + "\n";
    return text;
  };
  return show_answer<v1::ListNodesResponse>(options.output, fetch,
                                            {.names = names,
                                             .document =
                                                 [](const auto& answer, render::Format format) {
                                                   return render::document_list(answer.nodes(),
                                                                                "Node", format);
                                                 },
                                             .people =
                                                 [&](const auto& answer, bool wide) {
                                                   if (answer.nodes().empty())
                                                     print_no_node(all, options.labels);
                                                   else
                                                     print_nodes(context, answer, wide);
                                                   warn_of_pause(context);
                                                 }});
}

Result<int> show_node(const Context& context, const NodeOptions& options) {
  const auto fetch = [&] {
    v1::GetNodeRequest request;
    request.set_name(options.node);
    return ask(context, &Nodes::GetNode, request);
  };
  return show_answer<v1::GetNodeResponse>(
      options.output, fetch,
      {.names = [](const auto& answer) { return answer.node().name() + "\n"; },
       .document =
           [](const auto& answer, render::Format format) {
             return render::document(answer.node(), "Node", format);
           },
       .people = [&](const auto& answer, bool wide) { print_node(context, answer.node(), wide); }});
}

Result<int> declare_dead(const Context& context, const NodeOptions& options) {
  v1::DeclareNodeDeadRequest request;
  request.set_name(options.node);
  request.set_reason(options.reason);
  auto response = ask(context, &Nodes::DeclareNodeDead, request);
  if (!response) return fail(std::move(response.error()));
  fmt::print("{} dead\n", render::printable(response->node().name()));
  return kOk;
}

// A token for exactly this name, though the name is known with another key.
Result<int> replace(const Context& context, const ReplaceOptions& options) {
  const auto lifetime = parse_timeout(options.lifetime, "--lifetime");
  if (!lifetime) return fail(Error(lifetime.error()));
  v1::CreateTokenRequest request;
  request.set_nodes(options.node);
  request.set_uses(1);
  *request.mutable_lifetime() = to_proto(*lifetime);
  request.set_may_replace(true);
  return make_token(context, request, options.file);
}

}  // namespace

void add_node(CLI::App& app, Context& context, int& exit) {
  // Each verb has NodeOptions of its own, because CLI11 also applies variables to verbs that were
  // not called.
  auto options = std::make_shared<NodeOptions>();
  CLI::App* command =
      app.add_subcommand("node", "Nodes: list, show, drain, label, rename, replace, remove");
  command->require_subcommand(1);
  CLI::App* ls = command->add_subcommand(
      "ls",
      "List nodes: ready, draining or drained (nothing new is placed there), disk (its state "
      "directory takes no writes), silent (not heard for a while), away (its agent is not "
      "connected), dead");
  add_output_option(*ls, options->output);
  ls->add_option("-l,--label", options->labels, "only nodes with this label; may be repeated")
      ->type_name("KEY=VALUE");
  on_chosen(*ls, context, exit,
            [options](const Context& chosen) { return list(chosen, *options); });
  options = std::make_shared<NodeOptions>();
  CLI::App* one =
      command->add_subcommand("show", "Show one node: devices, who holds them, what else is there");
  one->add_option("node", options->node, "node name")->required()->type_name("");
  add_output_option(*one, options->output);
  on_chosen(*one, context, exit,
            [options](const Context& chosen) { return show_node(chosen, *options); });
  options = std::make_shared<NodeOptions>();
  CLI::App* dead = command->add_subcommand("declare-dead",
                                           "Your word that nothing runs on this node any more "
                                           "(power is off): its jobs go on elsewhere at once");
  dead->add_option("node", options->node, "node name")->required()->type_name("");
  dead->add_option("--reason", options->reason, "kept with the node")->type_name("TEXT");
  dead->footer(
      "If something does still run there, two attempts of one job may compute at the same time: "
      "switch the machine off first.\n"
      "A node whose agent is connected is not declared dead (exit 12).");
  on_chosen(*dead, context, exit,
            [options](const Context& chosen) { return declare_dead(chosen, *options); });
  add_node_facts(*command, context, exit,
                 [](const Context& chosen, const std::string& node, const std::string& file,
                    const std::string& lifetime) {
                   return replace(chosen, {.node = node, .file = file, .lifetime = lifetime});
                 });
  auto replaced = std::make_shared<ReplaceOptions>();
  CLI::App* replacing = command->add_subcommand(
      "replace", "Make a token with which another machine, or a new key, takes a node's name");
  replacing->add_option("node", replaced->node, "node name")->required()->type_name("");
  replacing->add_option("--lifetime", replaced->lifetime, "how long the token counts, 1h to 30d")
      ->type_name("TIME")
      ->capture_default_str();
  replacing
      ->add_option("-o,--output", replaced->file,
                   "write the token into this file of mode 0600; it must not exist (default: "
                   "standard output)")
      ->type_name("FILE");
  replacing->footer(
      "When a machine joins with the token, every other key of the name counts no more, and what "
      "still runs under it is cut off.\n"
      "example:  muster node replace gpu-17 -o gpu-17.token\n"
      "exit codes: 0 made  11 not your controller  12 the file is there\n"
      "            13 controller unreachable");
  on_chosen(*replacing, context, exit,
            [replaced](const Context& chosen) { return replace(chosen, *replaced); });
}

}  // namespace muster::client
