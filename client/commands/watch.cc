// muster watch: the live view of one job.
#include "client/commands/commands.h"
#include "client/commands/follow.h"
#include "client/commands/interrupt.h"

namespace muster::client {

void add_watch(CLI::App& app, Context& context, int& exit) {
  struct Options {
    std::string job;
    std::string timeout;
    bool no_logs = false;
  };
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("watch", "Live view of a job: progress, loss, steps a second, time left, events. Ctrl-C leaves; the job goes on");
  command->add_option("job", options->job, "name, id, unique prefix of an id, or @last")->required();
  command->add_option("--timeout", options->timeout, "stop after this long (exit 4)");
  command->add_flag("--no-logs", options->no_logs, "events and progress only");
  command->callback([&context, &exit, options] {
    std::optional<std::chrono::milliseconds> timeout;
    if (!options->timeout.empty()) {
      auto parsed = parse_timeout(options->timeout);
      if (!parsed) {
        exit = report(context, parsed.error());
        return;
      }
      timeout = *parsed;
    }
    Interrupt interrupt(timeout);
    auto session = context.connect();
    if (!session) {
      exit = report(context, session.error());
      return;
    }
    exit = follow(context, *session, interrupt, {.job = options->job, .logs = !options->no_logs, .quiet = false});
  });
}

}  // namespace muster::client
