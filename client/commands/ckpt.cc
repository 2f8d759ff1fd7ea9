// muster ckpt ls: the checkpoints that count: whole on every rank, by the engine's own marks.
#include <fmt/format.h>

#include <cstdio>

#include "client/commands/commands.h"
#include "client/render/table.h"
#include "client/render/text.h"
#include "common/base/time.h"

namespace muster::client {
namespace {

int list(const Context& context, const std::string& job, const std::string& output) {
  const auto format = render::parse_format(output);
  if (!format) return report(context, format.error());
  auto session = context.connect();
  if (!session) return report(context, session.error());
  grpc::ClientContext call;
  session->prepare(call);
  v1::GetJobRequest request;
  request.set_job(job);
  v1::GetJobResponse response;
  if (const auto status = session->jobs->GetJob(&call, request, &response); !status.ok()) return report(context, *session, status);
  const auto& checkpoints = response.job().checkpoints();
  if (*format == render::Format::Name) {
    for (const auto& checkpoint : checkpoints) fmt::print("{}\n", checkpoint.path());
    return kOk;
  }
  if (*format != render::Format::Table && *format != render::Format::Wide) {
    std::vector<const google::protobuf::Message*> items;
    for (const auto& checkpoint : checkpoints) items.push_back(&checkpoint);
    fmt::print("{}", render::document_list(items, "Checkpoint", *format));
    return kOk;
  }
  if (checkpoints.empty()) {
    fmt::print(stderr, "no complete checkpoint yet\n");
    return kOk;
  }
  const WallTime now = system_clock().now().wall;
  render::Table table{.columns = {{"STEP", render::Align::Right}, {"ATTEMPT", render::Align::Right}, {"SHARDS", render::Align::Right}, {"SIZE", render::Align::Right}, {"AGE", render::Align::Right}, {"PATH"}}, .rows = {}};
  for (const auto& checkpoint : checkpoints) {
    table.rows.push_back({fmt::format("{}{}", checkpoint.step(), checkpoint.set_aside() ? " (set aside)" : ""), fmt::format("{}", checkpoint.attempt()), fmt::format("{}", checkpoint.shards()),
                          render::bytes_text(checkpoint.bytes()), render::duration_text(now - render::wall_time(checkpoint.at())), checkpoint.path()});
  }
  fmt::print("{}", render::to_text(table, context.out, 0));
  return kOk;
}

}  // namespace

void add_ckpt(CLI::App& app, Context& context, int& exit) {
  struct Options {
    std::string job;
    std::string output = "table";
  };
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("ckpt", "Checkpoints of a job");
  command->require_subcommand(1);
  CLI::App* ls = command->add_subcommand("ls", "List the complete ones, oldest first");
  ls->add_option("job", options->job, "name, id, unique prefix of an id, or @last")->required();
  add_output_option(*ls, options->output);
  ls->callback([&context, &exit, options] { exit = list(context, options->job, options->output); });
}

}  // namespace muster::client
