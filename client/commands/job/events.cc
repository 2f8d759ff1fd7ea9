// muster events: prints transitions with their cause, of one job, one node, or everything.
#include <fmt/format.h>

#include <cstdio>
#include <functional>
#include <set>

#include "client/commands/call/call.h"
#include "client/commands/call/commands.h"
#include "client/commands/call/out.h"
#include "client/commands/follow/lasting_streams.h"
#include "client/render/event_text.h"
#include "client/render/wrap.h"

namespace muster::client {
namespace {

struct EventsOptions {
  std::string target;
  bool follow = false;
  std::uint64_t from = 0;
  std::string timeout;
  std::string output = "table";
};

// What to watch, and where to end without -f.
struct Aim {
  v1::WatchRequest request;
  std::string node;            // only events of this node
  std::set<std::string> jobs;  // of a chain: only events of these jobs
  std::uint64_t last = 0;      // journal index
};

Result<Aim> aim(const Session& session, Interrupt& interrupt, const EventsOptions& options) {
  Aim aim;
  aim.request.set_from_index(options.from);
  const auto status =
      ask(session, &Nodes::GetClusterStatus, v1::GetClusterStatusRequest(), &interrupt);
  if (!status) return fail(status.error());
  aim.last = status->journal_index();
  if (options.target.empty()) return aim;
  v1::GetNodeRequest as_node;
  as_node.set_name(options.target);
  if (ask(session, &Nodes::GetNode, as_node, &interrupt)) {
    aim.node = options.target;
    return aim;
  }
  v1::GetJobRequest as_job;
  as_job.set_job(options.target);
  as_job.set_name_prefix(true);
  const auto job = ask(session, &Jobs::GetJob, as_job, &interrupt);
  if (!job) return fail(job.error());
  if (job->asked_for_chain()) {
    for (const v1::ChainStage& stage : job->chain()) aim.jobs.insert(stage.job_id());
    return aim;
  }
  aim.request.set_job(job->job().id());
  aim.request.set_until_final(true);
  aim.last = job->job().last_index();
  return aim;
}

Result<int> events(const Session& session, Interrupt& interrupt, const EventsOptions& options,
                   const std::function<void(const v1::Event&, bool with_job)>& print) {
  const auto left = [&] { return interrupt.timed_out() ? kTimedOut : kOk; };
  auto found = aim(session, interrupt, options);
  if (!found && interrupt.fired()) return left();
  if (!found) return fail(std::move(found.error()));
  if (!options.follow && found->last <= options.from) return kOk;
  // The chain's jobs that have ended. Events before --from are not sent, so the count may stay too
  // low; then the stream goes on until Ctrl-C.
  std::size_t ended = 0;
  const auto status = read_events(
      session, interrupt.calls(), found->request, options.follow ? OnLoss::Notify : OnLoss::End,
      [&](const v1::WatchResponse& response) {
        if (!response.has_event()) return true;
        const v1::Event& event = response.event();
        const bool beyond = !options.follow && event.index() > found->last;
        const bool meant = (found->node.empty() || event.node() == found->node) &&
                           (found->jobs.empty() || found->jobs.contains(event.job_id()));
        if (!beyond && meant) print(event, found->request.job().empty());
        if (event.type() == "job-ended" && found->jobs.contains(event.job_id()) &&
            ++ended == found->jobs.size())
          return false;
        return options.follow || event.index() < found->last;
      });
  if (status.ok()) return kOk;
  if (interrupt.fired()) return left();
  return fail(to_error(session, status));
}

}  // namespace

void add_events(CLI::App& app, Context& context, int& exit) {
  auto options = std::make_shared<EventsOptions>();
  CLI::App* command = app.add_subcommand(
      "events", "Print what happened, with its cause: of a job, of a node, or of everything");
  command
      ->add_option("target", options->target,
                   "a job (name, id, @last) or a node; without: everything")
      ->type_name("");
  command->add_flag("-f,--follow", options->follow, "go on with what comes; ends with the job");
  add_number_option(*command, "--from", options->from,
                    "only events behind this journal index (-o json has it)")
      ->type_name("INDEX");
  add_timeout_option(*command, options->timeout, "at most this long (exit 4)");
  add_output_option(*command, options->output, render::Names::No);
  command->footer(
      "examples:     muster events llama-7b\n"
      "              muster events -f -o jsonl\n"
      "exit:         0 all was printed, or Ctrl-C  4 time is up  10 neither a job nor a node");
  on_chosen(*command, context, exit, [options](const Context& chosen) -> Result<int> {
    const auto format = render::parse_format(options->output, render::Names::No);
    if (!format) return fail(format.error());
    return connected(chosen, options->timeout, [&](const Session& session, Interrupt& interrupt) {
      return events(session, interrupt, *options, [&](const v1::Event& event, bool with_job) {
        if (*format == render::Format::Table || *format == render::Format::Wide)
          fmt::print("{}\n", render::event_line(event, chosen.out, with_job, render::row_width(1)));
        else
          fmt::print("{}", render::document(
                               event, "Event",
                               *format == render::Format::Json ? render::Format::Jsonl : *format));
        flush_out();
      });
    });
  });
}

}  // namespace muster::client
