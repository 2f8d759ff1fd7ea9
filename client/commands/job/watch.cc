// muster watch: the live view of one job.
#include <algorithm>

#include "client/commands/call/call.h"
#include "client/commands/call/commands.h"
#include "client/commands/follow/follow.h"
#include "client/commands/follow/follow_chain.h"

namespace muster::client {
namespace {

// For a chain's name, follows all its remaining stages, from the stage that matters most now.
Result<int> watch(const Context& context, const Session& session, Interrupt& interrupt,
                  const std::string& job, bool logs) {
  v1::GetJobRequest request;
  request.set_job(job);
  request.set_name_prefix(true);
  const auto answer = ask(session, &Jobs::GetJob, request, &interrupt);
  if (!answer || !answer->asked_for_chain())
    return follow(context, session, interrupt,
                  {.job = answer ? answer->job().id() : job, .logs = logs, .joins = true});
  const auto& chain = answer->chain();
  const auto now = std::ranges::find(chain, answer->job().id(), &v1::ChainStage::job_id);
  return follow_chain(context, session, interrupt, {now, chain.end()},
                      {.chain = answer->job().spec().stage().chain_name(),
                       .before = static_cast<std::size_t>(now - chain.begin()),
                       .logs = logs,
                       .joins = true});
}

}  // namespace

void add_watch(CLI::App& app, Context& context, int& exit) {
  struct Options {
    std::string job;
    std::string timeout;
    bool no_logs = false;
  };
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("watch",
                                         "Live view of a job: progress, loss, steps a second, time "
                                         "left, events. Ctrl-C leaves; the job goes on");
  add_job_option(*command, options->job);
  add_timeout_option(*command, options->timeout,
                     "stop watching after this long (exit 4); the job goes on");
  command->add_flag("--no-logs", options->no_logs, "events and progress only");
  command->footer(
      "prints: as 'muster run', after its events until now; of a log from before only the last 20 "
      "lines\n"
      "exit: the job's own when it ends (0 succeeded, 1 failed, 3 cancelled); 0 after Ctrl-C; 4 "
      "when --timeout is over");
  on_chosen(*command, context, exit, [options](const Context& chosen) {
    return connected(chosen, options->timeout, [&](const Session& session, Interrupt& interrupt) {
      return watch(chosen, session, interrupt, options->job, !options->no_logs);
    });
  });
}

}  // namespace muster::client
