// muster local up | down | status: a private cluster on this machine.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <optional>

#include "client/commands/call/call.h"
#include "client/commands/call/commands.h"
#include "client/commands/call/local_paths.h"
#include "client/commands/local/local_cluster.h"
#include "client/render/table.h"

namespace muster::client {
namespace {

struct LocalOptions {
  std::string dir;
  std::uint32_t nodes = 0;
  std::uint32_t devices = 0;
  std::string type;
  std::string timeout = "30s";
  std::vector<std::string> controller_args;
};

std::filesystem::path dir_of(const LocalOptions& options) {
  std::error_code ignored;
  return options.dir.empty() ? default_local_dir()
                             : std::filesystem::absolute(options.dir, ignored);
}

// Clients use the default directory; for another one they need a variable.
std::string hint(const LocalOptions& options) {
  return dir_of(options) == default_local_dir()
             ? ""
             : fmt::format("; for clients: export MUSTER_CONTROLLER={}",
                           local_endpoint(dir_of(options)).string());
}

std::string counted(std::size_t number, std::string_view what) {
  return fmt::format("{} {}{}", number, what, number == 1 ? "" : "s");
}

std::string up_text(const std::vector<v1::Node>& nodes) {
  const auto devices_of = [](const v1::Node& node) {
    return static_cast<std::size_t>(node.inventory().devices_size());
  };
  std::string text = "controller and " + counted(nodes.size(), "node");
  if (std::ranges::adjacent_find(nodes, std::ranges::not_equal_to(), devices_of) == nodes.end())
    return fmt::format("{} with {} each are up", text,
                       counted(devices_of(nodes.front()), "device"));
  text += " are up: ";
  for (const auto& node : nodes)
    text += fmt::format("{}'{}' with {}", &node == nodes.data() ? "" : ", ", node.name(),
                        counted(devices_of(node), "device"));
  return text;
}

// Which numbers the user gave. A plain 'local up' keeps the existing or earlier ones.
struct Asked {
  bool nodes = false;
  bool devices = false;
  bool type = false;
};

Result<int> up(Context& context, const LocalOptions& options, const Asked& asked) {
  const auto timeout = parse_timeout(options.timeout);
  if (!timeout) return fail(timeout.error());
  LocalUp wanted{.dir = dir_of(options),
                 .nodes = std::nullopt,
                 .devices = std::nullopt,
                 .device_type = std::nullopt,
                 .controller_args = options.controller_args};
  if (asked.nodes) wanted.nodes = options.nodes;
  if (asked.devices) wanted.devices = options.devices;
  if (asked.type) wanted.device_type = options.type;
  const auto done = local_up(context, wanted, *timeout);
  if (!done) return fail(done.error());
  const auto& nodes = done->nodes;
  fmt::print("private cluster in {}: {}{}\n", dir_of(options).string(), up_text(nodes),
             hint(options));
  if (!done->note.empty()) fmt::print(stderr, "{}\n", done->note);
  std::vector<std::string> other;
  if (asked.nodes && nodes.size() != options.nodes)
    other.push_back(fmt::format("it has {}, not {}", counted(nodes.size(), "node"), options.nodes));
  for (const auto& node : nodes) {
    const auto devices = static_cast<std::uint32_t>(node.inventory().devices_size());
    if (asked.devices && devices != options.devices)
      other.push_back(fmt::format("'{}' has {}, not {}", node.name(), counted(devices, "device"),
                                  options.devices));
    if (asked.type && devices > 0 && node.inventory().devices(0).type() != options.type)
      other.push_back(fmt::format("the devices of '{}' are of type {}, not {}", node.name(),
                                  node.inventory().devices(0).type(), options.type));
  }
  if (!other.empty())
    fmt::print(stderr,
               "not what was asked for: {}; what runs is left as it is; to change it: 'muster "
               "local down' first, then 'muster local up' again\n",
               fmt::join(other, ", "));
  return kOk;
}

Result<int> down(Context& context, const LocalOptions& options) {
  const auto timeout = parse_timeout(options.timeout);
  if (!timeout) return fail(timeout.error());
  const auto not_cancelled = local_down(context, dir_of(options), *timeout);
  if (!not_cancelled) return fail(not_cancelled.error());
  fmt::print("private cluster in {} is down; its state stays ('muster local up' goes on with it)\n",
             dir_of(options).string());
  if (!not_cancelled->empty())
    fmt::print(stderr,
               "its jobs could not be cancelled ({}): those that had not ended go on at the next "
               "'muster local up'; 'muster cancel' ends them then\n",
               *not_cancelled);
  return kOk;
}

Result<int> status(Context& context, const LocalOptions& options) {
  const auto daemons = find_daemons(dir_of(options));
  if (!daemons) return fail(daemons.error());
  render::Table table{.columns = {{"DAEMON"}, {"STATE"}, {"PID", render::Align::Right}, {"LOG"}},
                      .rows = {}};
  bool all = true;
  for (const auto& daemon : *daemons) {
    const bool alive = is_up(daemon);
    all = all && alive;
    table.rows.push_back({daemon.node.empty() ? daemon.name : daemon.name + " " + daemon.node,
                          context.out.paint(alive ? render::Tint::Good : render::Tint::Bad,
                                            alive ? "running" : "gone"),
                          daemon.process.pid == 0 ? "-" : fmt::format("{}", daemon.process.pid),
                          daemon.log.string()});
  }
  fmt::print("{}", render::to_text(table, context.out, 0));
  if (!all)
    fmt::print(stderr, "'muster local up' starts what is gone; jobs go on from where they are\n");
  const bool controller = std::ranges::any_of(
      *daemons, [](const LocalDaemon& daemon) { return daemon.node.empty() && is_up(daemon); });
  const std::string silence = controller ? local_silence(context, dir_of(options)) : "";
  if (!silence.empty()) fmt::print(stderr, "{}\n", silence);
  return all && silence.empty() ? kOk : kUnreachable;
}

}  // namespace

void add_local(CLI::App& app, Context& context, int& exit) {
  CLI::App* command = app.add_subcommand(
      "local", "A private cluster on this machine: real daemons for yourself alone");
  command->require_subcommand(1);
  const auto verb = [&](const char* name, const char* what, LocalOptions& options) {
    CLI::App* added = command->add_subcommand(name, what);
    added
        ->add_option(
            "--state-dir", options.dir,
            "where it lives (default: $MUSTER_LOCAL_DIR, else below your home's state directory)")
        ->type_name("DIR");
    return added;
  };
  // Each verb has options of its own, because CLI11 also applies variables to verbs that were not
  // called.
  auto options = std::make_shared<LocalOptions>();
  CLI::App* start = verb("up", "Start it, or what of it is gone", *options);
  CLI::Option* nodes =
      add_number_option(*start, "-n,--nodes", options->nodes,
                        "agents to run, 1 to 256 (default: those there were, else 2)", 1, 256);
  nodes->type_name("N");
  CLI::Option* devices = add_number_option(
      *start, "-d,--devices", options->devices,
      "device slots a node, 1 to 1024, with --device-type at most 16 (default: as it had, else 4)",
      1, 1024);
  devices->type_name("N");
  CLI::Option* type =
      start
          ->add_option("--device-type", options->type,
                       "cpu, or stand-ins for cards that are not here: ascend910, ascend910b, "
                       "ascend910_93, nvidia")
          ->check(CLI::IsMember({"cpu", "ascend910", "ascend910b", "ascend910_93", "nvidia"}))
          ->type_name("TYPE");
  add_timeout_option(*start, options->timeout, "for all nodes to register");
  start->get_option("--timeout")->capture_default_str();
  start
      ->add_option("--controller-arg", options->controller_args,
                   "passed to muster-controller as it is (may be given again)")
      ->type_name("ARG")
      ->allow_extra_args(false);
  on_chosen(*start, context, exit, [options, nodes, devices, type](Context& chosen) {
    return up(
        chosen, *options,
        {.nodes = nodes->count() > 0, .devices = devices->count() > 0, .type = type->count() > 0});
  });
  options = std::make_shared<LocalOptions>();
  CLI::App* stop = verb("down", "Cancel its jobs and stop it; its state stays", *options);
  add_timeout_option(*stop, options->timeout, "for the jobs to end before they are killed");
  stop->get_option("--timeout")->capture_default_str();
  on_chosen(*stop, context, exit, [options](Context& chosen) { return down(chosen, *options); });
  options = std::make_shared<LocalOptions>();
  CLI::App* status_verb = verb("status", "Which daemons run", *options);
  status_verb->footer(
      "exit:         0 all run  10 none was started here  13 some are gone or the controller "
      "cannot be reached ('muster local up' mends it)");
  on_chosen(*status_verb, context, exit,
            [options](Context& chosen) { return status(chosen, *options); });
}

}  // namespace muster::client
