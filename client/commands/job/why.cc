// muster why: explains why a job waits, or what broke it.
#include <fmt/format.h>

#include <cstdio>

#include "client/commands/call/call.h"
#include "client/commands/call/commands.h"
#include "client/render/text.h"
#include "client/render/wrap.h"

namespace muster::client {
namespace {

// Prints which stage of a chain the answer is about, if the user asked for a chain.
void print_stage(const Context& context, const std::string& job, const std::string& id) {
  v1::GetJobRequest request;
  request.set_job(job);
  request.set_name_prefix(true);
  const auto answer = ask(context, &Jobs::GetJob, request);
  if (!answer || !answer->asked_for_chain() || answer->job().id() != id) return;
  fmt::print("stage {}, job {}\n", render::printable(answer->job().spec().stage().name()),
             render::printable(id));
}

void print_why(const Context& context, const std::string& job,
               const v1::ExplainJobResponse& answer) {
  if (job != answer.job_id()) print_stage(context, job, answer.job_id());
  const std::string phase = render::phase_text(answer.phase());
  fmt::print("{}\n", context.out.paint(render::phase_tint(answer.phase()), phase));
  const std::size_t width = render::row_width(1);
  for (const auto& line : answer.lines()) {  // the phase is already printed above
    if (line == phase) continue;
    const std::string text =
        render::printable(line.starts_with(phase + ": ") ? line.substr(phase.size() + 2) : line);
    fmt::print("{}\n", render::wrap("  " + text, 2, width));
  }
}

Result<int> why(const Context& context, const std::string& job, const std::string& output) {
  const auto fetch = [&] {
    v1::ExplainJobRequest request;
    request.set_job(job);
    return ask(context, &Jobs::ExplainJob, request);
  };
  return show_answer<v1::ExplainJobResponse>(
      output, fetch,
      {.names = [](const auto& answer) { return answer.job_id() + "\n"; },
       .document =
           [](const auto& answer, render::Format format) {
             return render::document(answer, "Explanation", format);
           },
       .people = [&](const auto& answer, bool) { print_why(context, job, answer); }});
}

}  // namespace

void add_why(CLI::App& app, Context& context, int& exit) {
  on_chosen_job(*app.add_subcommand("why", "Say why a job waits, or what broke it"), context, exit,
                why);
}

}  // namespace muster::client
