// muster ps: lists jobs, live ones first, then newest first.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>
#include <string>
#include <utility>

#include "client/commands/call/call.h"
#include "client/commands/call/commands.h"
#include "client/commands/follow/pause_warning.h"
#include "client/commands/job/job_filter.h"
#include "client/render/job_table.h"
#include "client/render/text.h"
#include "common/base/time.h"

namespace muster::client {
namespace {

struct PsOptions {
  bool all = false;
  std::vector<std::string> states;
  std::vector<std::string> labels;
  std::string sort;
  std::string output = "table";
};

void print_jobs(const Context& context, std::vector<v1::Job> jobs, const PsOptions& options,
                bool all, bool wide) {
  if (jobs.empty()) {
    const bool chosen = !options.states.empty() || !options.labels.empty();
    fmt::print(stderr, "no {}jobs{}{}\n", all ? "" : "live ", chosen ? " of this kind" : "",
               all ? "" : "; 'muster ps -a' shows finished ones");
    return;
  }
  if (options.sort.empty()) sort_jobs(jobs, JobOrder::LiveFirst);
  fmt::print("{}", render::jobs_text(jobs, wide, context.out,
                                     render::is_terminal(1) ? render::terminal_width(1) : 0,
                                     system_clock().now().wall));
}

Result<std::vector<v1::Job>> list_jobs(const Context& context, bool all, const JobFilter& filter) {
  auto session = context.connect();
  if (!session) return fail(std::move(session.error()));
  std::vector<v1::Job> jobs;
  v1::ListJobsRequest request;
  request.set_all(all);
  do {
    auto page = ask(*session, &Jobs::ListJobs, request);
    if (!page) return fail(std::move(page.error()));
    for (auto& job : *page->mutable_jobs())
      if (filter.takes(job)) jobs.push_back(std::move(job));
    request.set_page_token(page->next_page_token());
  } while (!request.page_token().empty());
  return jobs;
}

Result<int> ps(const Context& context, const PsOptions& options) {
  auto filter = job_filter(options.states, options.labels);
  if (!filter) return fail(std::move(filter.error()));
  auto order = job_order(options.sort);
  if (!order) return fail(std::move(order.error()));
  const bool all = options.all || filter->wants_ended();
  const auto fetch = [&]() -> Result<std::vector<v1::Job>> {
    auto jobs = list_jobs(context, all, *filter);
    if (jobs) sort_jobs(*jobs, *order);
    return jobs;
  };
  const auto names = [](const std::vector<v1::Job>& jobs) {
    std::string text;
    for (const auto& job : jobs) text += job.spec().name() + "\n";
    return text;
  };
  return show_answer<std::vector<v1::Job>>(
      options.output, fetch,
      {.names = names,
       .document = [](const auto& jobs,
                      render::Format format) { return render::document_list(jobs, "Job", format); },
       .people =
           [&](const auto& jobs, bool wide) {
             print_jobs(context, jobs, options, all, wide);
             warn_of_pause(context);
           }});
}

}  // namespace

void add_ps(CLI::App& app, Context& context, int& exit) {
  auto options = std::make_shared<PsOptions>();
  CLI::App* command =
      app.add_subcommand("ps", "List jobs: phase, step, loss, time left, run time, why they wait");
  command->add_flag("-a,--all", options->all, "finished jobs too");
  command
      ->add_option("--state", options->states,
                   "only in these phases: queued,running; live and ended stand for all such; a "
                   "finished one implies -a")
      ->delimiter(',')
      ->type_name("PHASE")
      ->allow_extra_args(false);
  command
      ->add_option("--label", options->labels,
                   "only with this label, of this value where one is given (may be given again: "
                   "all of them)")
      ->type_name("NAME[=VALUE]")
      ->allow_extra_args(false);
  command
      ->add_option("--sort", options->sort,
                   fmt::format("by {} (default: newest first, in a table live ones before all)",
                               fmt::join(job_orders(), ", ")))
      ->type_name("KEY");
  add_output_option(*command, options->output);
  command->footer(
      "ID is the end of the job's id: 'muster show ID' finds it; -o wide has all of it, and "
      "labels, description, nodes\n"
      "RUN is how long the latest attempt has run; REASON why a job waits, or what it failed of: "
      "'muster why' says more\n"
      "examples:     muster ps -a --state failed --label team=llm\n"
      "              muster ps --sort name -o json");
  on_chosen(*command, context, exit,
            [options](const Context& chosen) { return ps(chosen, *options); });
}

}  // namespace muster::client
