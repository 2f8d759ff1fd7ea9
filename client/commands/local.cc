// muster local up | down | status: a private cluster on this machine.
#include <fmt/format.h>

#include <cstdio>

#include "client/commands/commands.h"
#include "client/commands/local_cluster.h"
#include "client/commands/local_paths.h"
#include "client/render/table.h"

namespace muster::client {
namespace {

struct Options {
  std::string dir;
  std::uint32_t nodes = 2;
  std::uint32_t devices = 4;
  std::string timeout = "30s";
  std::vector<std::string> controller_args;
};

std::filesystem::path dir_of(const Options& options) {
  std::error_code ignored;
  return options.dir.empty() ? default_local_dir() : std::filesystem::absolute(options.dir, ignored);
}

// Clients look at the default place; elsewhere they must be told.
std::string hint(const Options& options) { return dir_of(options) == default_local_dir() ? "" : fmt::format("; tell clients: export MUSTER_CONTROLLER={}", local_endpoint(dir_of(options)).string()); }

int up(Context& context, const Options& options) {
  const auto timeout = parse_timeout(options.timeout);
  if (!timeout) return report(context, timeout.error());
  const auto daemons = local_up(context, {.dir = dir_of(options), .nodes = options.nodes, .devices = options.devices, .controller_args = options.controller_args}, *timeout);
  if (!daemons) return report(context, daemons.error());
  fmt::print("private cluster in {}: controller and {} node{} with {} device{} each are up{}\n", dir_of(options).string(), options.nodes, options.nodes == 1 ? "" : "s", options.devices,
             options.devices == 1 ? "" : "s", hint(options));
  return kOk;
}

int down(Context& context, const Options& options) {
  const auto timeout = parse_timeout(options.timeout);
  if (!timeout) return report(context, timeout.error());
  if (const auto done = local_down(context, dir_of(options), *timeout); !done) return report(context, done.error());
  fmt::print("private cluster in {} is down; its state stays ('muster local up' goes on with it)\n", dir_of(options).string());
  return kOk;
}

int status(Context& context, const Options& options) {
  const auto daemons = read_daemons(dir_of(options));
  if (!daemons) return report(context, daemons.error());
  render::Table table{.columns = {{"DAEMON"}, {"STATE"}, {"PID", render::Align::Right}, {"LOG"}}, .rows = {}};
  bool all = true;
  for (const auto& daemon : *daemons) {
    const bool alive = process::alive(daemon.process);
    all = all && alive;
    table.rows.push_back({daemon.node.empty() ? daemon.name : daemon.name + " " + daemon.node, context.out.paint(alive ? render::Tint::Good : render::Tint::Bad, alive ? "running" : "gone"),
                          fmt::format("{}", daemon.process.pid), daemon.log.string()});
  }
  fmt::print("{}", render::to_text(table, context.out, 0));
  if (!all) fmt::print(stderr, "'muster local up' starts what is gone; jobs go on from where they are\n");
  return all ? kOk : kUnreachable;
}

}  // namespace

void add_local(CLI::App& app, Context& context, int& exit) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("local", "A private cluster on this machine: real daemons for yourself alone");
  command->require_subcommand(1);
  const auto common = [&](CLI::App* verb) { verb->add_option("--state-dir", options->dir, "where it lives (default: $MUSTER_LOCAL_DIR, else below your home's state directory)"); };
  CLI::App* start = command->add_subcommand("up", "Start it, or what of it is gone");
  common(start);
  start->add_option("-n,--nodes", options->nodes, "agents to run")->check(CLI::Range(1U, 256U))->capture_default_str();
  start->add_option("-d,--devices", options->devices, "device slots a node, of type cpu")->check(CLI::Range(1U, 1024U))->capture_default_str();
  start->add_option("--timeout", options->timeout, "for all nodes to register")->capture_default_str();
  start->add_option("--controller-arg", options->controller_args, "passed to muster-controller as it is (may be given again)")->allow_extra_args(false);
  start->callback([&context, &exit, options] { exit = up(context, *options); });
  CLI::App* stop = command->add_subcommand("down", "Cancel its jobs and stop it; its state stays");
  common(stop);
  stop->add_option("--timeout", options->timeout, "for the jobs to end before they are killed")->capture_default_str();
  stop->callback([&context, &exit, options] { exit = down(context, *options); });
  CLI::App* look = command->add_subcommand("status", "Which daemons run");
  common(look);
  look->callback([&context, &exit, options] { exit = status(context, *options); });
}

}  // namespace muster::client
