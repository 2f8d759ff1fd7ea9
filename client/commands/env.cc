// muster env JOB --rank R: the environment and command line that a rank really got, and where each value came from.
#include <fmt/format.h>

#include <cstdio>

#include "client/commands/commands.h"
#include "client/render/launch_text.h"

namespace muster::client {
namespace {

struct Options {
  std::string job;
  std::uint32_t rank = 0;
  std::uint32_t attempt = 0;
  std::string output = "table";
};

int env(const Context& context, const Options& options) {
  const auto format = render::parse_format(options.output, render::Names::No);
  if (!format) return report(context, format.error());
  auto session = context.connect();
  if (!session) return report(context, session.error());
  grpc::ClientContext call;
  session->prepare(call);
  v1::GetRankLaunchRequest request;
  request.set_job(options.job);
  request.set_rank(options.rank);
  request.set_attempt(options.attempt);
  v1::GetRankLaunchResponse response;
  if (const auto status = session->jobs->GetRankLaunch(&call, request, &response); !status.ok()) return report(context, *session, status);
  if (*format != render::Format::Table && *format != render::Format::Wide) {
    fmt::print("{}", render::document(response.launch(), "RankLaunch", *format));
    return kOk;
  }
  fmt::print("{}", render::launch_text(response.launch(), context.out));
  return kOk;
}

}  // namespace

void add_env(CLI::App& app, Context& context, int& exit) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("env", "Print what a rank really gets: command line, directory, environment and where each value came from");
  command->add_option("job", options->job, "name, id, unique prefix of an id, or @last")->required();
  command->add_option("-r,--rank", options->rank, "global rank")->required();
  command->add_option("--attempt", options->attempt, "attempt number (default: the current one)");
  add_output_option(*command, options->output, render::Names::No);
  command->callback([&context, &exit, options] { exit = env(context, *options); });
}

}  // namespace muster::client
