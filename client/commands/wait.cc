// muster wait: for scripts. Returns when the job has reached what is asked for.
#include <fmt/format.h>

#include <condition_variable>
#include <cstdio>
#include <mutex>

#include "client/commands/commands.h"
#include "client/commands/interrupt.h"
#include "client/render/text.h"
#include "common/rpc/backoff.h"

namespace muster::client {
namespace {

struct Options {
  std::string job;
  std::string until = "done";
  std::string timeout;
};

// Nothing: not yet. done: the job's own exit code; running and checkpoint: 0, or the exit code of a job that ended without.
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

int wait(const Context& context, const Options& options) {
  std::optional<std::chrono::milliseconds> timeout;
  if (!options.timeout.empty()) {
    auto parsed = parse_timeout(options.timeout);
    if (!parsed) return report(context, parsed.error());
    timeout = *parsed;
  }
  std::mutex mutex;  // these three outlive the thread of `interrupt`
  std::condition_variable changed;
  bool fired = false;
  Interrupt interrupt(timeout);
  auto session = context.connect();
  if (!session) return report(context, session.error());

  // Watch from the beginning, ask after each event that could matter: what is asked for may have been there before we came.
  std::string job_id = options.job;
  rpc::Backoff backoff(std::hash<std::string>{}(options.job));
  interrupt.on_fire([&] {
    const std::scoped_lock lock(mutex);
    fired = true;
    changed.notify_all();
  });
  const auto look = [&]() -> std::expected<std::optional<int>, grpc::Status> {
    grpc::ClientContext call;
    session->prepare(call);
    const Interrupt::Guard guard(interrupt, call);
    v1::GetJobRequest request;
    request.set_job(job_id);
    v1::GetJobResponse response;
    const auto status = session->jobs->GetJob(&call, request, &response);
    if (!status.ok()) return std::unexpected(status);
    job_id = response.job().id();
    return reached(response.job(), options.until);
  };
  bool first = true;
  while (!interrupt.fired()) {
    auto state = look();
    if (!state && (first || state.error().error_code() != grpc::StatusCode::UNAVAILABLE) && !interrupt.fired()) return report(context, *session, state.error());
    first = false;
    if (state && *state) return **state;
    if (state) {
      grpc::ClientContext call;
      session->prepare(call, std::nullopt);
      const Interrupt::Guard guard(interrupt, call);
      v1::WatchRequest request;
      request.set_job(job_id);
      request.set_until_final(true);
      auto stream = session->jobs->Watch(&call, request);
      v1::WatchResponse response;
      while (stream->Read(&response)) {
        const std::string& type = response.event().type();
        if (options.until == "running" && type != "node-started" && type != "job-ended") continue;
        if (options.until == "checkpoint" && type != "checkpoint-completed" && type != "job-ended") continue;
        if (options.until == "done" && type != "job-ended") continue;
        backoff.reset();
        state = look();
        if (state && *state) {
          call.TryCancel();
          return **state;
        }
      }
      stream->Finish();
    }
    std::unique_lock lock(mutex);
    changed.wait_for(lock, backoff.next(), [&] { return fired; });
  }
  if (interrupt.timed_out()) {
    fmt::print(stderr, "muster: waiting for job '{}' to be {}: time is up; the job goes on\n", options.job, options.until);
    return kTimedOut;
  }
  return 130;
}

}  // namespace

void add_wait(CLI::App& app, Context& context, int& exit) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("wait", "Wait for a job, for scripts; the exit code is the job's (0, 1 failed, 3 cancelled) or 4 when time is up");
  command->add_option("job", options->job, "name, id, unique prefix of an id, or @last")->required();
  command->add_option("--for", options->until, "running, checkpoint or done")->check(CLI::IsMember({"running", "checkpoint", "done"}))->capture_default_str();
  command->add_option("--timeout", options->timeout, "at most this long");
  command->callback([&context, &exit, options] { exit = wait(context, *options); });
}

}  // namespace muster::client
