// muster wait: for scripts. It returns when the job has reached the requested state.
#include <fmt/format.h>

#include <cstdio>
#include <functional>

#include "client/commands/call/call.h"
#include "client/commands/call/commands.h"
#include "client/commands/follow/follow_chain.h"
#include "client/render/text.h"
#include "common/rpc/backoff.h"

namespace muster::client {
namespace {

struct WaitOptions {
  std::string job;
  std::string until = "done";
  std::string timeout;
  // for messages, if a chain is waited for: "stage 'train' of chain 'llama'"
  std::string stage;
};

// Returns nothing if the state is not reached yet. done: the job's own exit code. running and
// checkpoint: 0, or the exit code of a job that ended before that.
std::optional<int> reached(const v1::Job& job, const std::string& until) {
  if (until == "checkpoint" && job.checkpoints_size() > 0) return kOk;
  if (until == "running" && job.attempts_size() > 0) {
    for (const auto& attempt : job.attempts()) {
      if (attempt.has_running_at()) return kOk;
    }
  }
  if (!render::is_final(job.phase())) return std::nullopt;
  if (until == "done" || job.phase() != v1::JOB_PHASE_SUCCEEDED) return exit_code(job.phase());
  return until == "checkpoint" ? kJobFailed : kOk;
}

std::string doing(const WaitOptions& options) {
  const std::string job =
      render::printable(options.stage.empty() ? fmt::format("job '{}'", options.job)
                                              : fmt::format("{} ({})", options.stage, options.job));
  return options.until == "checkpoint" ? fmt::format("waiting for a checkpoint of {}", job)
                                       : fmt::format("waiting for {} to be {}", job, options.until);
}

bool may_matter(const std::string& event, const std::string& until) {
  return event == "job-ended" || (until == "running" && event == "node-started") ||
         (until == "checkpoint" && event == "checkpoint-completed");
}

Result<int> wait_for_job(const Session& session, Interrupt& interrupt, const WaitOptions& options) {
  // Becomes the id as soon as it is known, because the name may belong to another job later.
  std::string job = options.job;
  const auto poll_state = [&](Interrupt* ended_by,
                              std::chrono::milliseconds time) -> Result<std::optional<int>> {
    v1::GetJobRequest request;
    request.set_job(job);
    auto response = ask(session, &Jobs::GetJob, request, ended_by, time);
    if (!response) return fail(std::move(response.error()));
    job = response->job().id();
    const auto code = reached(response->job(), options.until);
    if (code && *code != kOk && options.until != "done")
      fmt::print(stderr, "muster: {}: it has ended without ({})\n", doing(options),
                 render::phase_text(response->job().phase()));
    return code;
  };
  // Asks the controller after each event that could matter, and once at the start, because the
  // state may have been reached before.
  rpc::Backoff backoff(std::hash<std::string>{}(options.job));
  for (bool first = true; !interrupt.fired(); first = false) {
    auto state = poll_state(&interrupt, kCallTime);
    if (state && *state) return **state;
    if (!state && !interrupt.fired() && (first || !may_pass(state.error())))
      return fail(std::move(state.error()));
    if (state) {
      grpc::ClientContext call;
      session.prepare(call, std::nullopt);
      const CallGroup::Member member(interrupt.calls(), call);
      v1::WatchRequest request;
      request.set_job(job);
      request.set_until_final(true);
      const auto stream = session.jobs->Watch(&call, request);
      v1::WatchResponse response;
      while (stream->Read(&response)) {
        if (!may_matter(response.event().type(), options.until)) continue;
        backoff.reset();
        state = poll_state(&interrupt, kCallTime);
        if (state && *state) {
          call.TryCancel();
          return **state;
        }
      }
      stream->Finish();
    }
    interrupt.wait_for(backoff.next());
  }
  if (interrupt.timed_out()) {
    auto state = poll_state(nullptr, kLastCallTime);
    if (state && *state) return **state;
    if (!state && !may_pass(state.error())) return fail(std::move(state.error()));
    if (!state) {
      fmt::print(stderr, "muster: {}: time is up, and its state is not known: {}\n", doing(options),
                 render::printable(state.error().message));
      return kTimedOut;
    }
  }
  fmt::print(stderr, "muster: {}: {}; the {} goes on\n", doing(options),
             interrupt.timed_out() ? "time is up" : "interrupted",
             options.stage.empty() ? "job" : "chain");
  return kTimedOut;
}

// For a chain's name, or chain:ID, waits for all its stages, one after another. Returns the worst
// exit code.
Result<int> wait(const Session& session, Interrupt& interrupt, const WaitOptions& options) {
  v1::GetJobRequest request;
  request.set_job(options.job);
  const auto answer = ask(session, &Jobs::GetJob, request, &interrupt);
  if (!answer || !answer->asked_for_chain() || options.until != "done")
    return wait_for_job(session, interrupt, options);
  int worst = kOk;
  for (const v1::ChainStage& stage : answer->chain()) {
    WaitOptions one = options;
    one.job = stage.job_id();
    one.stage = fmt::format("stage '{}' of chain '{}'", stage.stage(),
                            answer->job().spec().stage().chain_name());
    const auto code = wait_for_job(session, interrupt, one);
    if (!code || *code == kTimedOut) return code;
    worst = worse_exit(worst, *code);
  }
  return worst;
}

}  // namespace

void add_wait(CLI::App& app, Context& context, int& exit) {
  auto options = std::make_shared<WaitOptions>();
  CLI::App* command = app.add_subcommand("wait",
                                         "Wait for a job, for scripts; the exit code is the job's "
                                         "(0, 1 failed, 3 cancelled) or 4 when time is up");
  add_job_option(*command, options->job);
  command->add_option("--for", options->until, "running, checkpoint or done")
      ->check(CLI::IsMember({"running", "checkpoint", "done"}))
      ->type_name("STATE")
      ->capture_default_str();
  add_timeout_option(*command, options->timeout, "at most this long");
  command->footer(
      "a chain's name, or the chain:ID that 'muster run -d' prints, waits for all of its stages; "
      "the exit code is that of the worst\n"
      "example:      muster wait llama-7b --timeout 2h && muster ckpt ls llama-7b\n"
      "exit:         0 reached  1 the job failed, or ended without a checkpoint  3 it was "
      "cancelled  4 time is up, or Ctrl-C");
  on_chosen(*command, context, exit, [options](const Context& chosen) {
    return connected(chosen, options->timeout, [&](const Session& session, Interrupt& interrupt) {
      return wait(session, interrupt, *options);
    });
  });
}

}  // namespace muster::client
