// muster cancel: requests the stop of a job. It returns when the request is durable. The ranks get
// SIGTERM, then SIGKILL after the job's stop_grace.
#include <fmt/format.h>

#include <cstdio>

#include "client/commands/call/call.h"
#include "client/commands/call/commands.h"
#include "client/render/text.h"

namespace muster::client {
namespace {

// Prints the phase of each stage of a chain. Returns false if `job` does not name a chain.
bool print_stages(const Session& session, const std::string& job) {
  v1::GetJobRequest request;
  request.set_job(job);
  const auto answer = ask(session, &Jobs::GetJob, request);
  if (!answer || !answer->asked_for_chain()) return false;
  bool live = false;
  for (const v1::ChainStage& stage : answer->chain()) {
    live = live || !render::is_final(stage.phase());
    fmt::print("{} {} {}\n", render::printable(stage.job_id()), render::printable(stage.stage()),
               render::phase_text(stage.phase()));
  }
  if (live && render::is_terminal(2))
    fmt::print(stderr, "ranks are being stopped; 'muster wait {}' returns when they are gone\n",
               job);
  return true;
}

// Cancels all jobs. The exit code is that of the last error.
Result<int> cancel(const Context& context, const std::vector<std::string>& jobs,
                   const std::string& reason) {
  auto session = context.connect();
  if (!session) return fail(std::move(session.error()));
  int worst = kOk;
  for (const auto& job : jobs) {
    v1::CancelJobRequest request;
    request.set_job(job);
    request.set_reason(reason);
    const auto response = ask(*session, &Jobs::CancelJob, request);
    if (!response) {
      worst = report(context, response.error());
      continue;
    }
    if (print_stages(*session, job)) continue;
    fmt::print("{} {}\n", render::printable(response->job_id()),
               render::phase_text(response->phase()));
    if (!render::is_final(response->phase()) && render::is_terminal(2))
      fmt::print(stderr,
                 "its ranks are being stopped; 'muster wait {}' returns when they are gone\n", job);
  }
  return worst;
}

}  // namespace

void add_cancel(CLI::App& app, Context& context, int& exit) {
  struct Options {
    std::vector<std::string> jobs;
    std::string reason;
  };
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("cancel", "Stop a job; it does not come back");
  command
      ->add_option("job", options->jobs,
                   "names, ids, unique prefixes or ends of ids, or @last; a chain's name or "
                   "chain:ID: all of its stages that have not ended")
      ->required()
      ->type_name("");
  command->add_option("--reason", options->reason, "kept with the job: 'muster why' shows it")
      ->type_name("TEXT");
  command->footer(
      "Its ranks get SIGTERM, and SIGKILL after recovery.stop_grace. Returns once the wish is on "
      "the controller's disk; 'muster wait' returns when they are gone.\n"
      "exit:         0 asked  10 no such job  12 it has ended already");
  on_chosen(*command, context, exit, [options](const Context& chosen) {
    return cancel(chosen, options->jobs, options->reason);
  });
}

}  // namespace muster::client
