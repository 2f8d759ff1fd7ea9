// muster events: transitions with their cause, of one job, one node or everything.
#include <fmt/format.h>

#include <cstdio>

#include "client/commands/commands.h"
#include "client/commands/interrupt.h"
#include "client/render/event_text.h"

namespace muster::client {
namespace {

struct Options {
  std::string target;
  bool follow = false;
  std::uint64_t from = 0;
  std::string timeout;
  std::string output = "table";
};

int events(const Context& context, const Options& options) {
  const auto format = render::parse_format(options.output, render::Names::No);
  if (!format) return report(context, format.error());
  std::optional<std::chrono::milliseconds> timeout;
  if (!options.timeout.empty()) {
    auto parsed = parse_timeout(options.timeout);
    if (!parsed) return report(context, parsed.error());
    timeout = *parsed;
  }
  Interrupt interrupt(timeout);
  auto session = context.connect();
  if (!session) return report(context, session.error());

  // Without -f: up to the journal's index of now.
  std::uint64_t last = 0;
  std::string node;
  v1::WatchRequest request;
  request.set_from_index(options.from);
  {
    grpc::ClientContext call;
    session->prepare(call);
    const Interrupt::Guard guard(interrupt, call);
    v1::GetClusterStatusResponse status;
    if (const auto result = session->nodes->GetClusterStatus(&call, {}, &status); !result.ok()) {
      if (interrupt.fired()) return interrupt.timed_out() && options.follow ? kTimedOut : kOk;
      return report(context, *session, result);
    }
    last = status.journal_index();
  }
  if (!options.target.empty()) {
    grpc::ClientContext call;
    session->prepare(call);
    v1::GetNodeRequest ask;
    ask.set_name(options.target);
    v1::GetNodeResponse answer;
    if (session->nodes->GetNode(&call, ask, &answer).ok()) node = options.target;
    else request.set_job(options.target);
  }
  request.set_until_final(!request.job().empty());
  if (!options.follow && !request.job().empty()) {
    grpc::ClientContext call;
    session->prepare(call);
    v1::GetJobRequest ask;
    ask.set_job(options.target);
    v1::GetJobResponse answer;
    if (const auto status = session->jobs->GetJob(&call, ask, &answer); !status.ok()) return report(context, *session, status);
    last = answer.job().last_index();
  }
  if (!options.follow && last <= options.from) return kOk;
  grpc::ClientContext call;
  session->prepare(call, std::nullopt);
  const Interrupt::Guard guard(interrupt, call);
  auto stream = session->jobs->Watch(&call, request);
  v1::WatchResponse response;
  bool done = false;
  while (stream->Read(&response)) {
    if (!response.has_event()) continue;
    const v1::Event& event = response.event();
    if (!options.follow && event.index() > last) {
      done = true;
      break;
    }
    if (node.empty() || event.node() == node) {
      if (*format == render::Format::Table || *format == render::Format::Wide) fmt::print("{}\n", render::event_line(event, context.out, request.job().empty()));
      else fmt::print("{}", render::document(event, "Event", *format == render::Format::Json ? render::Format::Jsonl : *format));
      std::fflush(stdout);
    }
    if (!options.follow && event.index() == last && !request.job().empty()) {
      done = true;
      break;
    }
    if (!options.follow && event.index() >= last) done = true;
    if (done && request.job().empty()) break;
  }
  if (done) call.TryCancel();
  const auto status = stream->Finish();
  if (done || status.ok() || interrupt.interrupted()) return kOk;
  if (interrupt.timed_out()) return options.follow ? kTimedOut : kOk;
  return report(context, *session, status);
}

}  // namespace

void add_events(CLI::App& app, Context& context, int& exit) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("events", "Print what happened, with its cause: of a job, of a node, or of everything");
  command->add_option("target", options->target, "a job (name, id, @last) or a node; without: everything");
  command->add_flag("-f,--follow", options->follow, "go on with what comes; ends with the job");
  command->add_option("--from", options->from, "only events behind this journal index");
  command->add_option("--timeout", options->timeout, "at most this long (exit 4 with -f)");
  add_output_option(*command, options->output, render::Names::No);
  command->callback([&context, &exit, options] { exit = events(context, *options); });
}

}  // namespace muster::client
