// muster deploy supervise start | stop | run DIR: the supervisor of a daemon on a host without
// systemd. `muster deploy up` calls it there; it is not in the help.
#include "client/commands/call/call.h"
#include "client/commands/deploy/deploy.h"
#include "deploy/supervise/supervisor.h"

namespace muster::client {

void add_deploy_supervise(CLI::App& deploy, Context& context, int& exit) {
  CLI::App* command =
      deploy.add_subcommand("supervise", "Keep a daemon running on a host without systemd");
  command->group("")->require_subcommand(1);
  const auto add = [&](const char* name, const char* help,
                       Result<void> (*act)(const std::filesystem::path&)) {
    CLI::App* verb = command->add_subcommand(name, help);
    auto dir = std::make_shared<std::string>();
    verb->add_option("dir", *dir, "PREFIX/agent or PREFIX/controller, with the file 'command-line'")
        ->type_name("DIR")
        ->required();
    on_chosen(*verb, context, exit, [dir, act](const Context&) -> Result<int> {
      if (auto done = act(*dir); !done) return fail(std::move(done.error()));
      return kOk;
    });
  };
  add("start", "End what runs there, and start the daemon with its supervisor", supervise::start);
  add("stop", "End the supervisor and its daemon", supervise::stop);
  add("run", "Be the supervisor, until SIGTERM", supervise::run);
}

}  // namespace muster::client
