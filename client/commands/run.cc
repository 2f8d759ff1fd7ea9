// muster run: submit a job and follow it to its end (or not, with -d).
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <random>

#include "client/commands/call.h"
#include "client/commands/command_job.h"
#include "client/commands/commands.h"
#include "client/commands/follow.h"
#include "client/commands/spec_file.h"
#include "common/spec/parse.h"

namespace muster::client {
namespace {

struct RunOptions {
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

// Who gives an id again with another spec meant another job, and must not be told the old one's. Both specs are completed by this very program.
Result<void> check_same_spec(const Session& session, const v1::SubmitJobRequest& request, const std::string& job, Interrupt* interrupt) {
  v1::GetJobRequest which;
  which.set_job(job);
  auto before = ask(session, &Jobs::GetJob, which, interrupt);
  if (!before) return fail(std::move(before.error()));
  v1::JobSpec theirs = before->job().spec(), ours = request.spec();
  (void)spec::complete(theirs);
  (void)spec::complete(ours);
  // Of the jobs that it waits for the stored spec has ids, whatever was typed: which they are was said the first time.
  if (theirs.schedule().after_size() == ours.schedule().after_size()) {
    theirs.clear_schedule();
    ours.clear_schedule();
  }
  if (spec::spec_hash(theirs) == spec::spec_hash(ours)) return {};
  return fail(ErrorCode::Conflict,
              fmt::format("submitting job '{}': request id '{}' was given before, with another spec, for job '{}' ({}); a new job wants a new id", ours.name(),
                          request.request_id(), theirs.name(), job));
}

Result<v1::SubmitJobResponse> submit(const Session& session, const v1::SubmitJobRequest& request, Interrupt* interrupt) {
  constexpr int kTriesMost = 3;  // the request id makes another one safe
  for (int tries = 1;; ++tries) {
    auto response = ask(session, &Jobs::SubmitJob, request, interrupt);
    if (response && response->repeated_request()) {
      if (auto same = check_same_spec(session, request, response->job_id(), interrupt); !same) return fail(std::move(same.error()));
    }
    if (response || response.error().code != ErrorCode::Unreachable || tries == kTriesMost || (interrupt != nullptr && interrupt->fired())) return response;
  }
}

Result<int> run_detached(const Context& context, const v1::SubmitJobRequest& request) {
  auto session = context.connect();
  if (!session) return fail(std::move(session.error()));
  auto response = submit(*session, request, nullptr);
  if (!response) return fail(std::move(response.error()));
  fmt::print("{}\n", response->job_id());
  if (render::is_terminal(2)) {
    fmt::print(stderr, "{}; follow it with 'muster watch {}'\n", response->repeated_request() ? "submitted before under this request id" : "submitted",
               response->job_id());
  }
  return kOk;
}

Result<int> run(const Context& context, const RunOptions& options) {
  auto spec = load_job(context, options.spec);
  if (!spec) return fail(std::move(spec.error()));
  v1::SubmitJobRequest request;
  *request.mutable_spec() = std::move(*spec);
  request.set_request_id(options.request_id.empty() ? fresh_request_id() : options.request_id);
  if (options.detach) return run_detached(context, request);
  return connected(context, options.timeout, [&](const Session& session, Interrupt& interrupt) -> Result<int> {
    auto response = submit(session, request, &interrupt);
    if (!response && interrupt.fired()) {
      return fail(interrupt.timed_out() ? ErrorCode::TimedOut : ErrorCode::Unreachable,
                  fmt::format("submitting job '{}': {} before the controller's answer came; 'muster ps' shows whether it was taken", request.spec().name(),
                              interrupt.timed_out() ? "time was up" : "interrupted"));
    }
    if (!response) return fail(std::move(response.error()));
    return follow(context, session, interrupt, {.job = response->job_id(), .logs = true, .quiet = options.quiet});
  });
}

}  // namespace

void add_run(CLI::App& app, Context& context, int& exit) {
  auto options = std::make_shared<RunOptions>();
  CLI::App* command = app.add_subcommand("run", "Submit a job and follow it to its end. Ctrl-C detaches; the job goes on");
  add_spec_options(*command, options->spec);
  take_command(*command, context);
  add_env_option(*command, options->spec);
  command->add_flag("-d,--detach", options->detach, "print the job's id and return");
  command->add_flag("-q,--quiet", options->quiet, "print nothing but how it ended");
  command->add_option("--request-id", options->request_id, "the same id again gives the same job: makes a retry safe")->type_name("TEXT");
  add_timeout_option(*command, options->timeout, "stop following after this long (exit 4); the job goes on");
  command->footer(
      "examples:     muster run job.yaml --set resources.nodes=4 --env NCCL_DEBUG=INFO\n"
      "              id=$(muster run -d job.yaml) && muster wait $id\n"
      "              muster run -- torchrun --nnodes 2 --nproc_per_node 8 train.py --lr 1e-4\n"
      "behind --:    a job without a file: torchrun, python -m torch.distributed.run|launch or msrun with what it would start, in this directory; nodes and\n"
      "              processes are as many as it says, '${save.dir}' in single quotes is filled in, variables go with --env (or see 'muster import')\n"
      "into a pipe:  events, why it waits, the lines of the rank that speaks for the job, error lines of every rank; 'muster logs' has them all\n"
      "exit:         0 it succeeded (with -d: it was submitted; after Ctrl-C: it goes on)  1 it failed  2 these nodes can never run it  3 it was cancelled\n"
      "              4 --timeout is over  12 the name is taken by a live job, or the request id by another spec  13 no controller  64 the spec is wrong\n"
      "              70 the controller took no new job: its disk is nearly full, or it has too much to do");
  on_chosen(*command, context, exit, [options](const Context& chosen) { return run(chosen, *options); });
}

}  // namespace muster::client
