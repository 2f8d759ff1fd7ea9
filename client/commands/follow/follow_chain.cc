#include "client/commands/follow/follow_chain.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>

#include "client/commands/call/call.h"
#include "client/commands/call/out.h"
#include "client/render/text.h"

namespace muster::client {
namespace {

class ChainFollower {
 public:
  ChainFollower(const Context& context, const Session& session, Interrupt& interrupt,
                const ChainFollowOptions& options)
      : context_(context), session_(session), interrupt_(interrupt), options_(options) {}

  Result<int> run(const std::vector<v1::ChainStage>& stages) {
    int worst = kOk;
    std::string summary;
    for (std::size_t i = 0; i < stages.size(); ++i) {
      const v1::ChainStage& stage = stages[i];
      auto ended = never_ran(stage);
      if (!ended) return stopped(ended.error());
      if (!*ended) {
        if (!options_.quiet)
          banner(stage, options_.before + i + 1, options_.before + stages.size());
        const bool joins = options_.joins && i == 0;
        const auto code = follow(context_, session_, interrupt_,
                                 {.job = stage.job_id(),
                                  .logs = options_.logs,
                                  .quiet = options_.quiet,
                                  .chain = options_.chain,
                                  .joins = joins});
        if (!code || interrupt_.fired()) return code;
        *ended = *code;
      }
      worst = worse_exit(worst, **ended);
      summary += fmt::format("{}{} {}", summary.empty() ? "" : ", ", stage.stage(), word(**ended));
    }
    fmt::print("chain {} {}: {}\n", render::printable(options_.chain), word(worst),
               render::printable(summary));
    flush_out();
    return worst;
  }

 private:
  static std::string_view word(int code) {
    return code == kOk ? "succeeded" : code == kCancelled ? "cancelled" : "failed";
  }

  // For a stage that never ran: prints why, and returns its exit code.
  Result<std::optional<int>> never_ran(const v1::ChainStage& stage) {
    v1::GetJobRequest request;
    request.set_job(stage.job_id());
    const auto answer = ask(session_, &Jobs::GetJob, request, &interrupt_);
    if (!answer) return fail(answer.error());
    const v1::Job& job = answer->job();
    if (!render::is_final(job.phase()) || job.attempt() > 0) return std::nullopt;
    fmt::print(
        "{} {}{}\n", render::printable(job.spec().name()), render::phase_text(job.phase()),
        job.verdict().reason().empty() ? "" : ": " + render::printable(job.verdict().reason()));
    return exit_code(job.phase());
  }

  Result<int> stopped(const Error& error) {
    if (!interrupt_.fired()) return fail(error);
    fmt::print(stderr,
               "{0}; chain '{1}' goes on. Come back with 'muster watch {1}', stop it with 'muster "
               "cancel {1}'\n",
               interrupt_.timed_out() ? "time is up" : "detached",
               render::printable(options_.chain));
    return interrupt_.timed_out() ? kTimedOut : kOk;
  }

  void banner(const v1::ChainStage& stage, std::size_t number, std::size_t count) {
    const std::string text = fmt::format("==== stage {} ({} of {}): job {} ====", stage.stage(),
                                         number, count, stage.job_id());
    fmt::print("{}\n", context_.out.paint(render::Tint::Bold, render::printable(text)));
    flush_out();
  }

  const Context& context_;
  const Session& session_;
  Interrupt& interrupt_;
  const ChainFollowOptions& options_;
};

}  // namespace

Result<int> follow_chain(const Context& context, const Session& session, Interrupt& interrupt,
                         const std::vector<v1::ChainStage>& stages,
                         const ChainFollowOptions& options) {
  return ChainFollower(context, session, interrupt, options).run(stages);
}

int worse_exit(int a, int b) {
  // Any other code is worse than all of these.
  constexpr auto kOrder = std::to_array<int>({kOk, kCancelled, kUnsatisfiable, kJobFailed});
  return std::ranges::find(kOrder, a) >= std::ranges::find(kOrder, b) ? a : b;
}

}  // namespace muster::client
