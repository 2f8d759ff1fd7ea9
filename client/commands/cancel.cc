// muster cancel: asks that a job be stopped. Returns once that is durable; the ranks get SIGTERM, then SIGKILL after the job's stop_grace.
#include <fmt/format.h>

#include <cstdio>

#include "client/commands/commands.h"
#include "client/render/text.h"

namespace muster::client {
namespace {

int cancel(const Context& context, const std::vector<std::string>& jobs, const std::string& reason) {
  auto session = context.connect();
  if (!session) return report(context, session.error());
  int worst = kOk;
  for (const auto& job : jobs) {
    grpc::ClientContext call;
    session->prepare(call);
    v1::CancelJobRequest request;
    request.set_job(job);
    request.set_reason(reason);
    v1::CancelJobResponse response;
    if (const auto status = session->jobs->CancelJob(&call, request, &response); !status.ok()) {
      worst = report(context, *session, status);
      continue;
    }
    fmt::print("{} {}\n", response.job_id(), render::phase_text(response.phase()));
    if (!render::is_final(response.phase()) && render::is_terminal(2)) fmt::print(stderr, "its ranks are being stopped; 'muster wait {}' returns when they are gone\n", job);
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
  command->add_option("job", options->jobs, "name, id, unique prefix of an id, or @last")->required();
  command->add_option("--reason", options->reason, "kept with the job");
  command->callback([&context, &exit, options] { exit = cancel(context, options->jobs, options->reason); });
}

}  // namespace muster::client
