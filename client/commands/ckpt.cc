// muster ckpt ls: the checkpoints that count: whole on every rank, by the engine's own marks.
#include <fmt/format.h>

#include <cstdio>

#include "client/commands/call.h"
#include "client/commands/commands.h"
#include "client/render/table.h"
#include "client/render/text.h"
#include "common/base/time.h"

namespace muster::client {
namespace {

void print_checkpoints(const Context& context, const v1::Job& job) {
  if (job.checkpoints().empty()) {
    fmt::print(stderr, "no complete checkpoint yet\n");
    return;
  }
  const WallTime now = system_clock().now().wall;
  render::Table table{.columns = {{"STEP", render::Align::Right},
                                  {"ATTEMPT", render::Align::Right},
                                  {"SHARDS", render::Align::Right},
                                  {"SIZE", render::Align::Right},
                                  {"AGE", render::Align::Right},
                                  {"PATH"}},
                      .rows = {}};
  for (const auto& checkpoint : job.checkpoints()) {
    table.rows.push_back({fmt::format("{}{}", checkpoint.step(), checkpoint.set_aside() ? " (set aside)" : ""), fmt::format("{}", checkpoint.attempt()),
                          fmt::format("{}", checkpoint.shards()), render::bytes_text(checkpoint.bytes()),
                          render::duration_text(now - render::wall_time(checkpoint.at())), checkpoint.path()});
  }
  fmt::print("{}", render::to_text(table, context.out, 0));
}

// With all of its checkpoints: an answer holds the newest thousand.
Result<v1::Job> job_with_all(const Context& context, const std::string& name) {
  auto session = context.connect();
  if (!session) return fail(std::move(session.error()));
  v1::GetJobRequest request;
  request.set_job(name);
  auto answer = ask(*session, &Jobs::GetJob, request);
  if (!answer) return fail(std::move(answer.error()));
  v1::Job job = std::move(*answer->mutable_job());
  request.set_job(job.id());  // its name may be another job's by the next page
  while (answer->checkpoints_first() > 0) {
    request.set_checkpoints_before(answer->checkpoints_first());
    answer = ask(*session, &Jobs::GetJob, request);
    if (!answer) return fail(std::move(answer.error()));
    auto& older = *answer->mutable_job()->mutable_checkpoints();
    older.MergeFrom(job.checkpoints());
    job.mutable_checkpoints()->Swap(&older);
  }
  return job;
}

Result<int> list(const Context& context, const std::string& job, const std::string& output) {
  const auto paths = [](const v1::Job& answer) {
    std::string text;
    for (const auto& checkpoint : answer.checkpoints()) text += checkpoint.path() + "\n";
    return text;
  };
  return show_answer<v1::Job>(
      output, [&] { return job_with_all(context, job); },
      {.names = paths,
       .document = [](const auto& answer, render::Format format) { return render::document_list(answer.checkpoints(), "Checkpoint", format); },
       .people = [&](const auto& answer, bool) { print_checkpoints(context, answer); }});
}

}  // namespace

void add_ckpt(CLI::App& app, Context& context, int& exit) {
  CLI::App* command = app.add_subcommand("ckpt", "Checkpoints of a job");
  command->require_subcommand(1);
  CLI::App* ls = command->add_subcommand("ls", "List the complete ones, oldest first");
  ls->footer("-o name prints their directories; 'set aside': two attempts failed behind it, it is not resumed from");
  on_chosen_job(*ls, context, exit, list);
}

}  // namespace muster::client
