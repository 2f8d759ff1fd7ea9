// muster ps: jobs, newest first.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <string>
#include <string_view>

#include "client/commands/call.h"
#include "client/commands/commands.h"
#include "client/render/table.h"
#include "client/render/text.h"
#include "common/base/time.h"

namespace muster::client {
namespace {

std::string step_text(const v1::Progress& progress) {
  if (progress.step() < 0 || (progress.step() == 0 && !progress.has_loss() && progress.total() == 0)) return "-";
  return progress.total() > 0 ? fmt::format("{}/{}", progress.step(), progress.total()) : fmt::format("{}", progress.step());
}

// Of this attempt; 0 = unknown. Not every program writes how long a step took: then the mean since its ranks were up, their set-up among it.
double step_seconds(const v1::Job& job) {
  const v1::Progress& progress = job.progress();
  if (progress.step_seconds() > 0 || job.attempts().empty()) return progress.step_seconds();
  const v1::Attempt& attempt = job.attempts(job.attempts_size() - 1);
  const std::int64_t steps = progress.step() - (attempt.has_resume() ? attempt.resume().step() : 0);
  if (progress.attempt() != attempt.number() || steps <= 0 || !attempt.has_running_at() || !progress.has_at()) return 0;
  return std::chrono::duration<double>(render::wall_time(progress.at()) - render::wall_time(attempt.running_at())).count() / static_cast<double>(steps);
}

std::string eta_text(const v1::Job& job) {
  const v1::Progress& progress = job.progress();
  const double each = step_seconds(job);
  if (job.phase() != v1::JOB_PHASE_RUNNING || progress.total() <= 0 || each <= 0) return "-";
  const double left = static_cast<double>(std::max<std::int64_t>(0, progress.total() - progress.step())) * each;
  return render::duration_text(std::chrono::duration_cast<Duration>(std::chrono::duration<double>(left)));
}

// "queued", and behind whom: by name, where the list has it.
std::string phase_of(const v1::Job& job, const std::map<std::string_view, std::string_view>& names) {
  std::string text(render::phase_text(job.phase()));
  const auto& after = job.spec().schedule().after();
  if (job.phase() != v1::JOB_PHASE_QUEUED || after.empty()) return text;
  const auto named = names.find(after[0]);
  text += fmt::format(" behind {}", named == names.end() ? std::string_view(after[0]) : named->second);
  return after.size() == 1 ? text : text + fmt::format(" and {} more", after.size() - 1);
}

void print_jobs(const Context& context, const std::vector<v1::Job>& jobs, bool all, bool wide) {
  if (jobs.empty()) {
    fmt::print(stderr, "no {}jobs{}\n", all ? "" : "live ", all ? "" : "; 'muster ps -a' shows finished ones");
    return;
  }
  render::Table table{.columns = {{"NAME"},
                                  {"ID"},
                                  {"PHASE"},
                                  {"STEP", render::Align::Right},
                                  {"LOSS", render::Align::Right},
                                  {"ETA", render::Align::Right},
                                  {"RESTARTS", render::Align::Right},
                                  {"AGE", render::Align::Right}},
                      .rows = {}};
  if (wide) {
    table.columns.push_back({"ATTEMPT", render::Align::Right});
    table.columns.push_back({"NODES"});
    table.columns.push_back({"ENGINE"});
  }
  const WallTime now = system_clock().now().wall;
  std::map<std::string_view, std::string_view> names;
  for (const auto& job : jobs) names.emplace(job.id(), job.spec().name());
  for (const auto& job : jobs) {
    std::vector<std::string> row = {job.spec().name(),
                                    job.id(),
                                    context.out.paint(render::phase_tint(job.phase()), phase_of(job, names)),
                                    step_text(job.progress()),
                                    job.progress().has_loss() ? fmt::format("{:.4f}", job.progress().loss()) : "-",
                                    eta_text(job),
                                    fmt::format("{}", job.restarts()),
                                    render::duration_text(now - render::wall_time(job.submitted_at()))};
    if (wide) {
      std::string nodes;
      if (job.attempts_size() > 0) {
        for (const auto& node : job.attempts(job.attempts_size() - 1).nodes()) nodes += (nodes.empty() ? "" : ",") + node.node();
      }
      row.push_back(fmt::format("{}", job.attempt()));
      row.push_back(nodes.empty() ? "-" : nodes);
      row.push_back(job.spec().engine());
    }
    table.rows.push_back(std::move(row));
  }
  fmt::print("{}", render::to_text(table, context.out, render::is_terminal(1) ? render::terminal_width(1) : 0));
}

Result<std::vector<v1::Job>> list_jobs(const Context& context, bool all) {
  auto session = context.connect();
  if (!session) return fail(std::move(session.error()));
  std::vector<v1::Job> jobs;
  v1::ListJobsRequest request;
  request.set_all(all);
  do {
    auto page = ask(*session, &Jobs::ListJobs, request);
    if (!page) return fail(std::move(page.error()));
    for (auto& job : *page->mutable_jobs()) jobs.push_back(std::move(job));
    request.set_page_token(page->next_page_token());
  } while (!request.page_token().empty());
  return jobs;
}

Result<int> ps(const Context& context, bool all, const std::string& output) {
  const auto names = [](const std::vector<v1::Job>& jobs) {
    std::string text;
    for (const auto& job : jobs) text += job.spec().name() + "\n";
    return text;
  };
  return show_answer<std::vector<v1::Job>>(output, [&] { return list_jobs(context, all); },
                                           {.names = names,
                                            .document = [](const auto& jobs, render::Format format) { return render::document_list(jobs, "Job", format); },
                                            .people = [&](const auto& jobs, bool wide) { print_jobs(context, jobs, all, wide); }});
}

}  // namespace

void add_ps(CLI::App& app, Context& context, int& exit) {
  struct Options {
    bool all = false;
    std::string output = "table";
  };
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("ps", "List jobs: phase, step, loss, time left, restarts");
  command->add_flag("-a,--all", options->all, "finished jobs too");
  add_output_option(*command, options->output);
  on_chosen(*command, context, exit, [options](const Context& chosen) { return ps(chosen, options->all, options->output); });
}

}  // namespace muster::client
