// muster run: submit a job and follow it to its end (or not, with -d).
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <random>

#include "client/commands/commands.h"
#include "client/commands/follow.h"
#include "client/commands/interrupt.h"
#include "client/commands/spec_file.h"

namespace muster::client {
namespace {

struct Options {
  SpecOptions spec;
  bool detach = false;
  bool quiet = false;
  std::string request_id;
  std::string timeout;
};

// A retry of our own after a lost answer must not make a second job.
std::string fresh_request_id() {
  std::random_device chance;
  return fmt::format("cli-{:08x}{:08x}-{}", chance(), chance(), getpid());
}

int run(const Context& context, const Options& options) {
  auto spec = load_spec(options.spec);
  if (!spec) return report(context, spec.error());
  std::optional<std::chrono::milliseconds> timeout;
  if (!options.timeout.empty()) {
    auto parsed = parse_timeout(options.timeout);
    if (!parsed) return report(context, parsed.error());
    timeout = *parsed;
  }
  std::optional<Interrupt> interrupt;  // before the threads that connect() brings: a signal must not find one of them
  if (!options.detach) interrupt.emplace(timeout);
  auto session = context.connect();
  if (!session) return report(context, session.error());

  v1::SubmitJobRequest request;
  *request.mutable_spec() = std::move(*spec);
  request.set_request_id(options.request_id.empty() ? fresh_request_id() : options.request_id);
  v1::SubmitJobResponse response;
  grpc::Status status;
  for (int tries = 0; tries < 3; ++tries) {  // the request id makes this safe
    grpc::ClientContext call;
    session->prepare(call);
    status = session->jobs->SubmitJob(&call, request, &response);
    if (status.error_code() != grpc::StatusCode::UNAVAILABLE) break;
  }
  if (!status.ok()) return report(context, *session, status);
  if (options.detach) {
    fmt::print("{}\n", response.job_id());
    if (render::is_terminal(2)) fmt::print(stderr, "{}; follow it with 'muster watch {}'\n", response.repeated_request() ? "submitted before under this request id" : "submitted", response.job_id());
    return kOk;
  }
  return follow(context, *session, *interrupt, {.job = response.job_id(), .logs = true, .quiet = options.quiet});
}

}  // namespace

void add_run(CLI::App& app, Context& context, int& exit) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("run", "Submit a job and follow it to its end. Ctrl-C detaches; the job goes on");
  command->add_option("file", options->spec.file, "job.yaml, or - for standard input")->required();
  command->add_option("--set", options->spec.set, "KEY=VALUE over the file, e.g. resources.nodes=4 (may be given again)");
  command->add_option("--env", options->spec.env, "NAME=VALUE over runtime.env (may be given again)");
  command->add_flag("-d,--detach", options->detach, "print the job's id and return");
  command->add_flag("-q,--quiet", options->quiet, "print nothing but how it ended");
  command->add_option("--request-id", options->request_id, "the same id again gives the same job: makes a retry safe");
  command->add_option("--timeout", options->timeout, "stop following after this long (exit 4); the job goes on");
  command->callback([&context, &exit, options] { exit = run(context, *options); });
}

}  // namespace muster::client
