// muster why: why a job waits, or what broke it.
#include <fmt/format.h>

#include <cstdio>

#include "client/commands/commands.h"
#include "client/render/text.h"

namespace muster::client {
namespace {

int why(const Context& context, const std::string& job, const std::string& output) {
  const auto format = render::parse_format(output);
  if (!format) return report(context, format.error());
  auto session = context.connect();
  if (!session) return report(context, session.error());
  grpc::ClientContext call;
  session->prepare(call);
  v1::ExplainJobRequest request;
  request.set_job(job);
  v1::ExplainJobResponse response;
  if (const auto status = session->jobs->ExplainJob(&call, request, &response); !status.ok()) return report(context, *session, status);
  if (*format == render::Format::Name) {
    fmt::print("{}\n", response.job_id());
    return kOk;
  }
  if (*format != render::Format::Table && *format != render::Format::Wide) {
    fmt::print("{}", render::document(response, "Explanation", *format));
    return kOk;
  }
  fmt::print("{}\n", context.out.paint(render::phase_tint(response.phase()), render::phase_text(response.phase())));
  const std::string phase = render::phase_text(response.phase());
  for (const auto& line : response.lines()) {  // the phase stands above already
    if (line == phase) continue;
    fmt::print("  {}\n", render::printable(line.starts_with(phase + ": ") ? line.substr(phase.size() + 2) : line));
  }
  return kOk;
}

}  // namespace

void add_why(CLI::App& app, Context& context, int& exit) {
  struct Options {
    std::string job;
    std::string output = "table";
  };
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("why", "Say why a job waits, or what broke it");
  command->add_option("job", options->job, "name, id, unique prefix of an id, or @last")->required();
  add_output_option(*command, options->output);
  command->callback([&context, &exit, options] { exit = why(context, options->job, options->output); });
}

}  // namespace muster::client
