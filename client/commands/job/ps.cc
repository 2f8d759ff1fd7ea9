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
  bool all = false, all_users = false;
  std::string user;
  std::vector<std::string> states;
  std::vector<std::string> labels;
  std::string sort;
  std::string output = "table";
};

struct Listed {
  std::vector<v1::Job> jobs;
  std::uint32_t others = 0;  // jobs of other users, which are not shown
};

void print_jobs(const Context& context, std::vector<v1::Job> jobs, const PsOptions& options,
                bool all, bool wide) {
  if (jobs.empty()) {
    const bool chosen = !options.states.empty() || !options.labels.empty() || !options.user.empty();
    fmt::print(stderr, "no {}jobs{}{}\n", all ? "" : "live ", chosen ? " of this kind" : "",
               all ? "" : "; 'muster ps -a' shows finished ones");
    return;
  }
  if (options.sort.empty()) sort_jobs(jobs, JobOrder::LiveFirst);
  fmt::print("{}", render::jobs_text(jobs, wide, context.out,
                                     render::is_terminal(1) ? render::terminal_width(1) : 0,
                                     system_clock().now().wall));
}

void print_others(const Listed& listed) {
  if (listed.others > 0)
    fmt::print(stderr, "{} job{} of other users; 'muster ps --all-users' shows {}\n", listed.others,
               listed.others == 1 ? "" : "s", listed.others == 1 ? "it" : "them");
}

Result<Listed> list_jobs(const Context& context, bool all, const PsOptions& options,
                         const JobFilter& filter) {
  auto session = context.connect();
  if (!session) return fail(std::move(session.error()));
  Listed listed;
  v1::ListJobsRequest request;
  request.set_all(all);
  request.set_owner(options.user);
  request.set_mine(options.user.empty() && !options.all_users);
  do {
    auto page = ask(*session, &Jobs::ListJobs, request);
    if (!page) return fail(std::move(page.error()));
    for (auto& job : *page->mutable_jobs())
      if (filter.takes(job)) listed.jobs.push_back(std::move(job));
    if (request.page_token().empty() && request.mine()) listed.others = page->others();
    request.set_page_token(page->next_page_token());
  } while (!request.page_token().empty());
  return listed;
}

Result<int> ps(const Context& context, const PsOptions& options) {
  auto filter = job_filter(options.states, options.labels);
  if (!filter) return fail(std::move(filter.error()));
  auto order = job_order(options.sort);
  if (!order) return fail(std::move(order.error()));
  const bool all = options.all || filter->wants_ended();
  const auto fetch = [&]() -> Result<Listed> {
    auto listed = list_jobs(context, all, options, *filter);
    if (listed) sort_jobs(listed->jobs, *order);
    return listed;
  };
  const auto names = [](const Listed& listed) {
    std::string text;
    for (const auto& job : listed.jobs) text += job.spec().name() + "\n";
    return text;
  };
  return show_answer<Listed>(options.output, fetch,
                             {.names = names,
                              .document =
                                  [](const Listed& listed, render::Format format) {
                                    return render::document_list(listed.jobs, "Job", format);
                                  },
                              .people =
                                  [&](const Listed& listed, bool wide) {
                                    print_jobs(context, listed.jobs, options, all, wide);
                                    print_others(listed);
                                    warn_of_pause(context);
                                  }});
}

}  // namespace

void add_ps(CLI::App& app, Context& context, int& exit) {
  auto options = std::make_shared<PsOptions>();
  CLI::App* command =
      app.add_subcommand("ps", "List jobs: phase, step, loss, time left, run time, why they wait");
  command->add_flag("-a,--all", options->all, "finished jobs too");
  auto* all_users = command->add_flag(
      "--all-users", options->all_users,
      "jobs of all users; so it is without this over the controller's own socket");
  command->add_option("--user", options->user, "only jobs of this user")
      ->type_name("NAME")
      ->excludes(all_users);
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
      "with a certificate (host:port) only your own jobs are listed; of jobs of others there are "
      "name, phase, owner, nodes and step\n"
      "examples:     muster ps -a --state failed --label team=llm\n"
      "              muster ps --sort name -o json");
  on_chosen(*command, context, exit,
            [options](const Context& chosen) { return ps(chosen, *options); });
}

}  // namespace muster::client
