// muster ckpt ls: lists the checkpoints that count: those that are whole on every rank, by the
// engine's own marks.
// muster ckpt export --whole: writes one of them as one file.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "client/commands/call/call.h"
#include "client/commands/call/commands.h"
#include "client/commands/job/resume_source.h"
#include "client/commands/job/submit.h"
#include "client/render/table.h"
#include "client/render/text.h"
#include "common/base/time.h"
#include "common/proto/proto_time.h"
#include "common/rpc/backoff.h"

namespace muster::client {
namespace {

// Prints a file that the program saved and that muster does not know as a checkpoint, from the
// newest attempt that has one.
void print_unknown(const v1::Job& job) {
  const auto found =
      std::find_if(job.attempts().rbegin(), job.attempts().rend(),
                   [](const v1::Attempt& attempt) { return !attempt.unknown_file().empty(); });
  if (found == job.attempts().rend()) return;
  fmt::print(
      stderr, "{}\n",
      render::printable(fmt::format("'{}/{}' of attempt {} is no checkpoint that layout {} knows: "
                                    "no attempt goes on from it; docs/engines/torch.md says what "
                                    "${{save.dir}} must hold",
                                    found->save_dir(), found->unknown_file(), found->number(),
                                    job.spec().checkpoint().layout())));
}

void print_checkpoints(const Context& context, const v1::Job& job) {
  print_unknown(job);
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
  const bool uploads = !job.spec().outputs().to().empty();
  if (uploads) table.columns.insert(table.columns.end() - 1, render::Column{"UPLOADED"});
  for (const auto& checkpoint : job.checkpoints()) {
    table.rows.push_back(
        {fmt::format("{}{}", checkpoint.step(), checkpoint.quarantined() ? " (quarantined)" : ""),
         fmt::format("{}", checkpoint.attempt()), fmt::format("{}", checkpoint.shards()),
         render::bytes_text(checkpoint.bytes()),
         render::duration_text(now - to_wall(checkpoint.at())), checkpoint.path()});
    if (!uploads) continue;
    std::vector<std::string>& row = table.rows.back();
    row.insert(row.end() - 1, checkpoint.uploaded() ? "yes" : "no");
  }
  fmt::print("{}", render::to_text(table, context.out, 0));
}

Result<v1::Job> job_of(const Context& context, const std::string& name) {
  auto session = context.connect();
  if (!session) return fail(std::move(session.error()));
  return job_with_all(*session, name, true);
}

Result<int> list(const Context& context, const std::string& job, const std::string& output) {
  const auto paths = [](const v1::Job& answer) {
    std::string text;
    for (const auto& checkpoint : answer.checkpoints()) text += checkpoint.path() + "\n";
    return text;
  };
  return show_answer<v1::Job>(
      output, [&] { return job_of(context, job); },
      {.names = paths,
       .document =
           [](const auto& answer, render::Format format) {
             return render::document_list(answer.checkpoints(), "Checkpoint", format);
           },
       .people = [&](const auto& answer, bool) { print_checkpoints(context, answer); }});
}

// --- export --------------------------------------------------------------------------------------

struct ExportOptions {
  std::string job;
  bool whole = false;
  std::optional<std::int64_t> step;
  std::string dir;
  std::string timeout;
};

Error cannot_export(const ResumeSource& source, std::string_view why) {
  return {ErrorCode::InvalidArgument,
          fmt::format("{} job '{}' ({}), step {}: {}", source.doing, source.job.spec().name(),
                      source.job.id(), source.checkpoint.step, why)};
}

// Returns the directory of a checkpoint that is already whole, or nothing if it must be merged
// first.
Result<std::optional<std::string>> whole_already(const ResumeSource& source) {
  const v1::JobSpec& spec = source.job.spec();
  const std::string& path = source.checkpoint.path;
  const auto whole = engine::is_whole(spec, source.checkpoint);
  if (!whole) return fail(cannot_export(source, whole.error().message));
  return *whole ? std::optional(path) : std::nullopt;
}

// Waits until the job is final.
Result<v1::Job> ended(const Session& session, Interrupt& interrupt, const std::string& job) {
  v1::GetJobRequest which;
  which.set_job(job);
  rpc::Backoff backoff(std::hash<std::string>{}(job));
  while (!interrupt.fired()) {
    auto answer = ask(session, &Jobs::GetJob, which, &interrupt);
    if (answer && render::is_final(answer->job().phase())) return std::move(*answer->mutable_job());
    if (!answer && !interrupt.fired() && !may_pass(answer.error()))
      return fail(std::move(answer.error()));
    grpc::ClientContext call;
    session.prepare(call, std::nullopt);
    const CallGroup::Member member(interrupt.calls(), call);
    v1::WatchRequest request;
    request.set_job(job);
    request.set_until_final(true);
    const auto stream = session.jobs->Watch(&call, request);
    v1::WatchResponse response;
    while (stream->Read(&response)) backoff.reset();
    stream->Finish();
    if (!interrupt.fired()) interrupt.wait_for(backoff.next());
  }
  return fail(ErrorCode::TimedOut,
              fmt::format("exporting a checkpoint by job '{}': {}; the job goes on: muster wait {}",
                          job, interrupt.timed_out() ? "time is up" : "interrupted", job));
}

Result<int> make_whole(const Context& context, const ExportOptions& options,
                       const ResumeSource& source, const Session& session, Interrupt& interrupt) {
  engine::ResumeAsk wanted{.before = &source.job.spec(),
                           .resolved = &source.job.resolved(),
                           .job_id = source.job.id(),
                           .checkpoint = source.checkpoint};
  auto name = next_name(session, source.job.spec(), "whole");
  if (!name) return fail(std::move(name.error()));
  wanted.name = *name;
  auto type = transform_type(session);
  if (!type) return fail(std::move(type.error()));
  wanted.transform_type = *type;
  const std::string file =
      fmt::format("{}-step{}.ckpt", source.job.spec().name(), source.checkpoint.step);
  std::error_code ignored;
  const std::string dir =
      options.dir.empty()
          ? ""
          : std::filesystem::absolute(options.dir, ignored).lexically_normal().string();
  auto planned = engine::plan_whole(
      wanted, dir.empty() ? file : fmt::format("{}{}{}", dir, dir.ends_with('/') ? "" : "/", file));
  if (!planned) return fail(std::move(planned.error()));
  const auto submitted =
      submit_once(session, std::move(planned->jobs.front()), planned->fetches, interrupt);
  if (!submitted) return fail(submitted.error());
  fmt::print(stderr, "{}\n",
             context.err.paint(
                 render::Tint::Dim,
                 render::printable(fmt::format(
                     "muster: job '{}' ({}) makes step {} of '{}' one file", wanted.name,
                     submitted->job_id(), source.checkpoint.step, source.job.spec().name()))));
  const auto job = ended(session, interrupt, submitted->job_id());
  if (!job) return fail(job.error());
  if (job->phase() != v1::JOB_PHASE_SUCCEEDED) {
    fmt::print(stderr, "{} {}\n", context.err.paint(render::Tint::Bad, "muster:"),
               render::printable(fmt::format("exporting a checkpoint of job '{}': job '{}' has {}: "
                                             "{}; 'muster logs {}' has what the tool printed",
                                             source.job.spec().name(), wanted.name,
                                             render::phase_text(job->phase()),
                                             job->verdict().reason(), job->id())));
    return exit_code(job->phase());
  }
  fmt::print("{}/{}\n",
             render::printable(dir.empty()  ? job->output_dir()
                               : dir == "/" ? ""
                                            : dir),
             file);
  return kOk;
}

Result<int> export_one(const Context& context, const ExportOptions& options) {
  return connected(
      context, options.timeout, [&](const Session& session, Interrupt& interrupt) -> Result<int> {
        auto source = resume_source(session, "exporting a checkpoint of", options.job,
                                    options.step ? std::to_string(*options.step) : "latest");
        if (!source) return fail(std::move(source.error()));
        if (auto there = check_checkpoint(*source); !there) return fail(std::move(there.error()));
        if (!options.whole)
          return fail(cannot_export(
              *source,
              fmt::format(
                  "without --whole, a copy as it is, is not in this release; its files are in '{}'",
                  source->checkpoint.path)));
        if (source->quarantined) print_quarantined(context, *source);
        auto whole = whole_already(*source);
        if (!whole) return fail(std::move(whole.error()));
        if (!*whole) return make_whole(context, options, *source, session, interrupt);
        fmt::print(
            stderr, "{}\n",
            context.err.paint(
                render::Tint::Dim,
                "muster: the checkpoint is whole as it is: the engine loads it at any size"));
        fmt::print("{}\n", render::printable(**whole));
        return kOk;
      });
}

}  // namespace

void add_ckpt(CLI::App& app, Context& context, int& exit) {
  CLI::App* command = app.add_subcommand("ckpt", "Checkpoints of a job");
  command->require_subcommand(1);
  CLI::App* ls = command->add_subcommand("ls", "List the complete ones, oldest first");
  ls->footer(
      "-o name prints their directories; 'quarantined': its files are torn, or two attempts that "
      "went on from it failed alike, and no other does so; 'muster resume JOB --from STEP' does");
  on_chosen_job(*ls, context, exit, list);

  auto options = std::make_shared<ExportOptions>();
  CLI::App* one = command->add_subcommand(
      "export", "Make a checkpoint one whole file, by a job of its own; prints where it is");
  add_job_option(*one, options->job);
  one->add_flag(
      "--whole", options->whole,
      "all shards as one model (mindformers: transform_ckpt.py without a target strategy)");
  add_number_option(*one, "--step", options->step.emplace(-1),
                    "which checkpoint (default: the newest)")
      ->type_name("N");
  CLI::Option* step = one->get_option("--step");
  one->add_option(
         "-o,--output-dir", options->dir,
         "directory on the nodes that it goes into (default: that of the job that makes it)")
      ->type_name("DIR");
  add_timeout_option(*one, options->timeout,
                     "stop waiting after this long (exit 4); the job goes on");
  one->footer(
      "example:      muster ckpt export llama-7b --whole --step 4000 -o /data/weights\n"
      "exit:         0 it is made, or whole as it is  1 the job that makes it failed  2 there is "
      "no whole checkpoint  10 no such job, or step  64 the engine's\n"
      "              checkpoints are not made whole by muster");
  on_chosen(*one, context, exit, [options, step](const Context& chosen) {
    if (step->count() == 0) options->step.reset();
    return export_one(chosen, *options);
  });
}

}  // namespace muster::client
