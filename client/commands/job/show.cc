// muster show: prints one job as a whole: its phase, its attempts, what broke them, its
// checkpoints.
#include <fmt/format.h>

#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "client/commands/call/call.h"
#include "client/commands/call/commands.h"
#include "client/render/incident.h"
#include "client/render/job_table.h"
#include "client/render/printed_reasons.h"
#include "client/render/progress_text.h"
#include "client/render/table.h"
#include "client/render/text.h"
#include "client/render/wrap.h"
#include "common/base/time.h"

namespace muster::client {
namespace {

// Returns "20", "20 (began at 2)" if the attempt did not continue from there, or "start".
std::string from_step(const v1::Attempt& attempt) {
  if (!attempt.has_resume()) return "start";
  const std::string began =
      render::went_back(attempt) ? fmt::format(" (began at {})", attempt.first_step()) : "";
  return fmt::format("{}{}", attempt.resume().step(), began);
}

// "as above" would be ambiguous here: rows of a table and incidents each name their attempt. The
// job's verdict may have more text than the last attempt's.
std::string like_verdict(const v1::Job& job, const std::string& reason) {
  return job.has_verdict() && reason.size() >= render::PrintedReasons::kLong &&
                 job.verdict().reason().starts_with(reason)
             ? "as the verdict"
             : reason;
}

void print_attempts(const Context& context, const v1::Job& job) {
  if (job.attempts_size() == 0) return;
  render::Table table{.columns = {{"ATTEMPT", render::Align::Right},
                                  {"NODES"},
                                  {"PLACED"},
                                  {"FROM STEP", render::Align::Right},
                                  {"BEST STEP", render::Align::Right},
                                  {"ENDED BY"}},
                      .rows = {}};
  for (const auto& attempt : job.attempts()) {
    std::string nodes;
    for (const auto& node : attempt.nodes()) nodes += (nodes.empty() ? "" : " ") + node.node();
    table.rows.push_back(
        {fmt::format("{}", attempt.number()), nodes, render::clock_text(attempt.placed_at()),
         from_step(attempt), attempt.has_best_step() ? fmt::format("{}", attempt.best_step()) : "-",
         attempt.has_verdict() ? render::printable(like_verdict(job, attempt.verdict().reason()))
                               : "-"});
  }
  fmt::print("\n{}", render::to_text(table, context.out, render::row_width(1)));
}

// Returns why the job waits, and how far its start has come. Everything else is in the job.
std::vector<std::string> why_it_waits(const Context& context, const v1::Job& job) {
  if (job.phase() != v1::JOB_PHASE_QUEUED && job.phase() != v1::JOB_PHASE_LAUNCHING) return {};
  v1::ExplainJobRequest request;
  request.set_job(job.id());
  const auto answer = ask(context, &Jobs::ExplainJob, request);
  if (!answer || answer->phase() != job.phase()) return {};
  return {answer->lines().begin(), answer->lines().end()};
}

// Prints the chain that the job belongs to.
void print_chain(const Context& context, const v1::GetJobResponse& answer) {
  if (answer.chain().empty()) return;
  render::Table table{.columns = {{"STAGE"}, {"ID"}, {"PHASE"}, {""}}, .rows = {}};
  std::vector<std::string> ids;
  for (const v1::ChainStage& stage : answer.chain()) ids.push_back(stage.job_id());
  ids = render::short_ids(ids);
  for (int i = 0; i < answer.chain_size(); ++i) {
    const v1::ChainStage& stage = answer.chain(i);
    const bool shown = stage.job_id() == answer.job().id();
    table.rows.push_back(
        {stage.stage(), ids[static_cast<std::size_t>(i)],
         context.out.paint(render::phase_tint(stage.phase()), render::phase_text(stage.phase())),
         shown ? "(below)" : ""});
  }
  fmt::print("{}", render::field_line(context.out, "chain",
                                      context.out.paint(render::Tint::Bold,
                                                        answer.job().spec().stage().chain_name())));
  fmt::print("{}\n", render::to_text(table, context.out, render::row_width(1)));
}

void print_job(const Context& context, const v1::Job& job) {
  const WallTime now = system_clock().now().wall;
  const std::size_t width = render::row_width(1);
  // Names and paths stay whole, so that they can be copied.
  const auto line = [&](std::string_view name, const std::string& value) {
    fmt::print("{}", render::field_line(context.out, name, value));
  };
  const auto sentence = [&](std::string_view name, const std::string& value) {
    fmt::print("{}", render::field_line(context.out, name, value, width));
  };
  line("name", context.out.paint(render::Tint::Bold, job.spec().name()));
  line("id", job.id());
  line("phase",
       context.out.paint(render::phase_tint(job.phase()), render::phase_text(job.phase())));
  line("owner", render::printable(job.owner()));
  if (job.withheld()) {
    sentence("withheld",
             "what it runs, its checkpoints and why it ended are for its owner and for operators");
  } else {
    for (const std::string& why : why_it_waits(context, job)) sentence("why", why);
  }
  if (!job.spec().description().empty()) sentence("description", job.spec().description());
  const std::map<std::string, std::string> labels(job.spec().labels().begin(),
                                                  job.spec().labels().end());
  for (const auto& [name, value] : labels) line("label", fmt::format("{}={}", name, value));
  if (!job.withheld()) line("engine", job.spec().engine());
  line("submitted", render::ago_text(job.submitted_at(), now));
  if (job.has_ended_at()) line("ended", render::ago_text(job.ended_at(), now));
  if (job.progress().step() > 0) {
    const v1::Progress& progress = job.progress();
    const auto age = render::is_final(job.phase()) ? std::nullopt : render::step_age(job, now);
    sentence("progress",
             fmt::format("step {}{}{}{}", progress.step(),
                         progress.total() > 0 ? fmt::format(" of {}", progress.total()) : "",
                         progress.has_loss() || progress.loss_not_finite()
                             ? ", loss " + render::loss_text(progress, 6)
                             : "",
                         age ? fmt::format(", {} ago", render::duration_text(*age)) : ""));
  }
  if (job.withheld()) {
    line("restarts", fmt::format("{}", job.restarts()));
  } else {
    sentence("restarts", fmt::format("{} (recovery.max_restarts: {} that count)", job.restarts(),
                                     job.spec().recovery().max_restarts()));
    line("output", job.output_dir());
  }
  if (job.has_verdict() && job.withheld()) {
    line("verdict", std::string(render::class_text(job.verdict().failure_class())));
  } else if (job.has_verdict()) {
    sentence("verdict", fmt::format("{}: {}", render::class_text(job.verdict().failure_class()),
                                    render::printable(job.verdict().reason())));
    if (!job.verdict().evidence().empty())
      sentence("evidence", render::printable(job.verdict().evidence()));
  }
  print_attempts(context, job);
  for (v1::Incident incident : job.incidents()) {
    incident.mutable_verdict()->set_reason(like_verdict(job, incident.verdict().reason()));
    fmt::print("\n{}", render::incident_text(incident, job.attempts(), context.out, width));
  }
  if (job.checkpoints_size() > 0) {
    const v1::Checkpoint& last = job.checkpoints(job.checkpoints_size() - 1);
    const std::string text =
        fmt::format("{} checkpoint{}, the last at step {} ({}); 'muster ckpt ls {}' lists them",
                    job.checkpoints_size(), job.checkpoints_size() == 1 ? "" : "s", last.step(),
                    render::bytes_text(last.bytes()), render::printable(job.spec().name()));
    fmt::print("\n{}\n", render::wrap(text, 0, width));
  }
}

// Returns the job with the chain that it belongs to.
std::string document_of(const v1::GetJobResponse& answer, render::Format format) {
  std::vector<const google::protobuf::Message*> chain;
  for (const v1::ChainStage& stage : answer.chain()) chain.push_back(&stage);
  return render::document(answer.job(), "Job", format, "chain", chain);
}

Result<int> show_job(const Context& context, const std::string& job, const std::string& output) {
  const auto fetch = [&] {
    v1::GetJobRequest request;
    request.set_job(job);
    request.set_name_prefix(true);
    return ask(context, &Jobs::GetJob, request);
  };
  return show_answer<v1::GetJobResponse>(
      output, fetch,
      {.names = [](const auto& answer) { return answer.job().id() + "\n"; },
       .document = document_of,
       .people =
           [&](const auto& answer, bool) {
             print_chain(context, answer);
             print_job(context, answer.job());
           }});
}

}  // namespace

void add_show(CLI::App& app, Context& context, int& exit) {
  on_chosen_job(
      *app.add_subcommand(
          "show", "Show one job: attempts, what broke them, recovery timelines, checkpoints"),
      context, exit, show_job);
}

}  // namespace muster::client
