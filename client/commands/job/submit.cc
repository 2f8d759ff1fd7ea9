#include "client/commands/job/submit.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>
#include <random>
#include <set>

#include "client/commands/call/call.h"
#include "client/commands/chain/done_stages.h"
#include "client/commands/chain/stage_keys.h"
#include "client/commands/follow/follow.h"
#include "client/commands/follow/follow_chain.h"
#include "client/commands/job/plan_warnings.h"
#include "client/commands/job/spec_notes.h"
#include "common/engine/patch_plan.h"

namespace muster::client {
namespace {

// A retry after a lost answer must not make a second job.
std::string fresh_request_id() {
  std::random_device chance;
  return fmt::format("cli-{:08x}{:08x}-{}", chance(), chance(), getpid());
}

// A name for messages.
std::string what_of(const v1::SubmitJobRequest& request) {
  return request.stages().empty()
             ? fmt::format("job '{}'", request.spec().name())
             : fmt::format("chain '{}'", request.stages(0).stage().chain_name());
}

// Returns what can be compared of two specs. A stage may have another key or number, because files
// have changed, or because other stages are done by now.
std::string comparable(v1::JobSpec spec) {
  (void)spec::complete(spec);
  if (spec.has_stage()) {
    spec.mutable_stage()->clear_key();
    spec.mutable_stage()->clear_number();
    spec.mutable_stage()->clear_count();
  }
  return spec::spec_hash(spec);
}

// A user who gives the same id with another spec means another job, and must not get the old one.
// This program completes both specs.
Result<void> check_same(const Session& session, const v1::SubmitJobRequest& request,
                        const v1::JobSpec& ours, const std::string& job, Interrupt* interrupt) {
  v1::GetJobRequest which;
  which.set_job(job);
  const auto before = ask(session, &Jobs::GetJob, which, interrupt);
  if (!before) return fail(before.error());
  const v1::JobSpec& theirs = before->job().spec();
  if (comparable(theirs) == comparable(ours)) return {};
  return fail(ErrorCode::Conflict,
              fmt::format("submitting {}: request id '{}' was given before, with another spec, for "
                          "job '{}' ({}); a new job wants a new id",
                          what_of(request), request.request_id(), theirs.name(), job));
}

// A stage of the first submission may be done by now, and is then not in the request any more.
Result<void> check_same_request(const Session& session, const v1::SubmitJobRequest& request,
                                const v1::SubmitJobResponse& response, Interrupt* interrupt) {
  if (request.stages().empty())
    return check_same(session, request, request.spec(), response.job_id(), interrupt);
  std::map<std::string, std::string> jobs;
  for (const v1::ChainStage& stage : response.stages()) jobs[stage.stage()] = stage.job_id();
  for (const v1::JobSpec& ours : request.stages()) {
    const auto theirs = jobs.find(ours.stage().name());
    if (theirs == jobs.end())
      return fail(ErrorCode::Conflict,
                  fmt::format("submitting {}: request id '{}' was given before, without stage "
                              "'{}'; a new chain wants a new id",
                              what_of(request), request.request_id(), ours.stage().name()));
    if (auto same = check_same(session, request, ours, theirs->second, interrupt); !same)
      return same;
  }
  return {};
}

Result<v1::SubmitJobResponse> send(const Session& session, const v1::SubmitJobRequest& request,
                                   Interrupt* interrupt) {
  constexpr int kTriesMost = 3;  // the request id makes a retry safe
  for (int tries = 1;; ++tries) {
    auto response = ask(session, &Jobs::SubmitJob, request, interrupt);
    if (response && response->repeated_request()) {
      if (auto same = check_same_request(session, request, *response, interrupt); !same)
        return fail(std::move(same.error()));
    }
    if (response || response.error().code != ErrorCode::Unreachable || tries == kTriesMost ||
        (interrupt != nullptr && interrupt->fired()))
      return response;
  }
}

// The error when the time-out or Ctrl-C came before the answer.
Error unanswered(const v1::SubmitJobRequest& request, const Interrupt& interrupt) {
  return {interrupt.timed_out() ? ErrorCode::TimedOut : ErrorCode::Unreachable,
          fmt::format("submitting {}: {} before the controller's answer came; 'muster ps' shows "
                      "whether it was taken",
                      what_of(request), interrupt.timed_out() ? "time was up" : "interrupted")};
}

// Prints what was submitted, for a program: a job's id, or "chain:ID" of a chain, whose name may
// belong to another chain later.
void say_detached(const v1::SubmitJobResponse& response, const std::string& name) {
  fmt::print("{}{}\n", response.stages().empty() ? "" : "chain:", response.job_id());
  if (render::is_terminal(2)) {
    fmt::print(stderr, "{}; follow it with 'muster watch {}'\n",
               response.repeated_request() ? "submitted before under this request id" : "submitted",
               render::printable(name));
  }
}

void tell(const Context& context, const std::vector<std::string>& lines) {
  for (const std::string& line : lines)
    fmt::print(stderr, "{}\n",
               context.err.paint(render::Tint::Dim, render::printable("muster: " + line)));
}

// Calls `act` without an interrupt if detached, otherwise with one for Ctrl-C and the time-out.
Result<int> with_session(const Context& context, const SubmitOptions& options,
                         const std::function<Result<int>(const Session&, Interrupt*)>& act) {
  if (!options.detach)
    return connected(context, options.timeout, [&](const Session& session, Interrupt& interrupt) {
      return act(session, &interrupt);
    });
  const auto session = context.connect();
  if (!session) return fail(session.error());
  return act(*session, nullptr);
}

void warn(const Context& context, const v1::SubmitJobResponse& response) {
  for (const std::string& line : response.warnings())
    fmt::print(stderr, "{}\n",
               context.err.paint(render::Tint::Warn, render::printable("muster: " + line)));
}

// Prints the warnings of `muster plan`. The controller fills in the values for changed files. If it
// does not plan the job, the submission reports why.
void warn_as_plan_does(const Context& context, const Session& session,
                       const std::vector<const v1::JobSpec*>& specs, Interrupt* interrupt) {
  std::set<std::string> printed;
  for (const v1::JobSpec* spec : specs) {
    v1::PlanJobResponse plan;
    *plan.mutable_spec() = *spec;
    if (!engine::file_patches(*spec).empty()) {
      v1::PlanJobRequest request;
      *request.mutable_spec() = *spec;
      request.add_ranks(0);
      if (spec->has_stage())
        for (const v1::JobSpec* stage : specs) *request.add_stages() = *stage;
      auto answer = ask(session, &Jobs::PlanJob, request, interrupt);
      if (!answer) continue;
      plan = *std::move(answer);
    }
    for (const std::string& line : plan_warnings(plan))
      if (printed.insert(line).second)
        fmt::print(stderr, "{}\n",
                   context.err.paint(render::Tint::Warn, render::printable("muster: " + line)));
  }
}

Result<int> submit_one(const Context& context, v1::JobSpec spec, const SubmitOptions& options,
                       const std::string& request_id, const JobFetches& fetches) {
  v1::SubmitJobRequest request;
  *request.mutable_spec() = std::move(spec);
  request.mutable_fetches()->Assign(fetches.begin(), fetches.end());
  request.set_request_id(request_id);
  return with_session(
      context, options, [&](const Session& session, Interrupt* interrupt) -> Result<int> {
        warn_as_plan_does(context, session, {&request.spec()}, interrupt);
        auto response = send(session, request, interrupt);
        if (!response && interrupt != nullptr && interrupt->fired())
          return fail(unanswered(request, *interrupt));
        if (!response) return fail(std::move(response.error()));
        warn(context, *response);
        if (interrupt == nullptr) {
          say_detached(*response, response->job_id());
          return kOk;
        }
        return follow(context, session, *interrupt,
                      {.job = response->job_id(), .logs = true, .quiet = options.quiet});
      });
}

Result<int> submit_chain(const Context& context, std::vector<v1::JobSpec> stages,
                         const SubmitOptions& options, const std::string& request_id,
                         const JobFetches& fetches) {
  const std::string chain = stages.front().stage().chain_name();
  return with_session(
      context, options, [&](const Session& session, Interrupt* interrupt) -> Result<int> {
        std::vector<const v1::JobSpec*> specs;
        for (const v1::JobSpec& stage : stages) specs.push_back(&stage);
        warn_as_plan_does(context, session, specs, interrupt);
        DoneStages done;
        v1::SubmitJobRequest request;
        request.set_request_id(request_id);
        request.mutable_fetches()->Assign(fetches.begin(), fetches.end());
        // The keys are set in any case, because later submissions need them.
        auto found = find_done_stages(session, stages, interrupt);
        if (!options.again) {
          if (!found && interrupt != nullptr && interrupt->fired()) {
            *request.add_stages() = stages.front();
            return fail(unanswered(request, *interrupt));
          }
          if (!found) return fail(std::move(found.error()));
          done = std::move(*found);
          if (!options.quiet) tell(context, done.notes);
        }
        for (const v1::JobSpec& spec : stages) {
          const auto stands = done.found.find(spec.stage().name());
          if (stands == done.found.end()) {
            *request.add_stages() = spec;
            continue;
          }
          v1::DoneStage& one = *request.add_done();
          one.set_stage(spec.stage().name());
          one.set_job_id(stands->second.job_id());
        }
        if (request.stages().empty()) {
          tell(context,
               {fmt::format("chain '{}': {}; nothing is run (--again runs {} all the same)", chain,
                            stages.size() == 1
                                ? "its stage is done"
                                : fmt::format("all {} stages are done", stages.size()),
                            stages.size() == 1 ? "it" : "them")});
          if (interrupt == nullptr)
            fmt::print("{}\n", request.done(request.done_size() - 1).job_id());
          return kOk;
        }
        auto response = send(session, request, interrupt);
        if (!response && interrupt != nullptr && interrupt->fired())
          return fail(unanswered(request, *interrupt));
        if (!response) return fail(std::move(response.error()));
        warn(context, *response);
        if (interrupt == nullptr) {
          say_detached(*response, chain);
          return kOk;
        }
        return follow_chain(context, session, *interrupt,
                            {response->stages().begin(), response->stages().end()},
                            {.chain = chain, .logs = true, .quiet = options.quiet});
      });
}

}  // namespace

Result<v1::SubmitJobResponse> submit_once(const Session& session, v1::JobSpec spec,
                                          const JobFetches& fetches, Interrupt& interrupt) {
  v1::SubmitJobRequest request;
  *request.mutable_spec() = std::move(spec);
  request.mutable_fetches()->Assign(fetches.begin(), fetches.end());
  request.set_request_id(fresh_request_id());
  auto response = send(session, request, &interrupt);
  if (!response && interrupt.fired()) return fail(unanswered(request, interrupt));
  return response;
}

void tell_notes(const Context& context, const spec::Parsed& wanted) {
  std::vector<const v1::JobSpec*> specs;
  for (const v1::JobSpec& stage : wanted.stages) specs.push_back(&stage);
  if (specs.empty()) specs.push_back(&wanted.spec);
  std::set<std::string> printed;  // stages inherit notes
  for (const v1::JobSpec* spec : specs)
    for (const std::string& note : spec_notes(*spec))
      if (printed.insert(note).second)
        fmt::print(stderr, "{}\n",
                   context.err.paint(render::Tint::Warn, render::printable("muster: " + note)));
}

Result<int> submit(const Context& context, spec::Parsed wanted, const SubmitOptions& options,
                   const JobFetches& fetches) {
  tell_notes(context, wanted);
  const std::string request_id =
      options.request_id.empty() ? fresh_request_id() : options.request_id;
  if (wanted.stages.empty())
    return submit_one(context, std::move(wanted.spec), options, request_id, fetches);
  return submit_chain(context, std::move(wanted.stages), options, request_id, fetches);
}

}  // namespace muster::client
