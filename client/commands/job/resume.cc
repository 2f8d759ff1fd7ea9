// muster resume: continues a job's training in a new job, from a whole checkpoint of it. For
// another size it submits a chain where the engine needs one.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>

#include "client/commands/call/call.h"
#include "client/commands/call/commands.h"
#include "client/commands/job/resume_source.h"
#include "client/commands/job/spec_file.h"
#include "client/commands/job/submit.h"
#include "client/render/text.h"
#include "common/engine/model/resume_plan.h"

namespace muster::client {
namespace {

struct ResumeOptions {
  std::string job;
  std::string from = "latest";
  std::uint32_t nodes = 0;
  bool reshard = false;
  SpecOptions spec;  // `file` is unused
  SubmitOptions submit;
};

Result<void> check_over(const v1::Job& job) {
  if (render::is_final(job.phase())) return {};
  return fail(ErrorCode::Conflict,
              fmt::format("resuming job '{}': it is {} and goes on by itself; end it first: muster "
                          "cancel {} && muster wait {}",
                          job.spec().name(), render::phase_text(job.phase()), job.id(), job.id()));
}

// This check comes before the options are read, because their errors would hide it.
Result<void> check_set(const ResumeOptions& options, const v1::JobSpec& before) {
  const auto wrong = [&](std::string message) {
    return fail(ErrorCode::InvalidArgument,
                fmt::format("resuming job '{}': {}", before.name(), message));
  };
  for (const std::string& text : options.spec.set) {
    for (const std::string_view key : {"start", "stages", "schedule"})
      if (text.starts_with(fmt::format("{}=", key)) || text.starts_with(fmt::format("{}.", key)))
        return wrong(
            fmt::format("--set {} is not for a resume, which says itself what the new job starts "
                        "from, and when",
                        key));
    if (text.starts_with("engine=") && text.substr(7) != before.engine())
      return wrong(fmt::format(
          "another engine cannot load what {} has saved; leave --set engine out", before.engine()));
  }
  if (before.resources().has_rank_table() && options.nodes > 0 &&
      options.nodes != before.resources().nodes())
    return wrong(
        "resources.rank_table is of the old size; give --set resources.rank_table=FILE of the new "
        "one in place of --nodes");
  return {};
}

Result<engine::ResumeJobs> jobs_of(const Context& context, const Session& session,
                                   const ResumeOptions& options) {
  auto source = resume_source(session, "resuming", options.job, options.from);
  if (!source) return fail(std::move(source.error()));
  if (auto over = check_over(source->job); !over) return fail(std::move(over.error()));
  if (auto there = check_checkpoint(*source); !there) return fail(std::move(there.error()));
  const v1::JobSpec& before = source->job.spec();
  engine::ResumeAsk ask{.before = &before,
                        .resolved = &source->job.resolved(),
                        .job_id = source->job.id(),
                        .checkpoint = source->checkpoint,
                        .after = before,
                        .cut_again = options.reshard};
  engine::leave_chain(ask.after, *ask.resolved);
  if (auto sound = check_set(options, before); !sound) return fail(std::move(sound.error()));
  SpecOptions over = options.spec;
  if (options.nodes > 0) over.set.push_back(fmt::format("resources.nodes={}", options.nodes));
  if (auto set = set_over(ask.after, over); !set)
    return fail(std::move(set.error()).in(fmt::format("resuming job '{}'", before.name())));
  if (!options.submit.request_id.empty() && ask.after.name() == before.name())
    return fail(ErrorCode::InvalidArgument,
                fmt::format("resuming job '{}': with --request-id give the new job's name, too "
                            "(--set name=NAME); each call takes another",
                            before.name()));
  auto name = next_name(session, source->job.spec(), "r");
  if (!name) return fail(std::move(name.error()));
  ask.name = ask.after.name() == before.name() ? *name : ask.after.name();  // --set name=
  auto type = transform_type(session);
  if (!type) return fail(std::move(type.error()));
  ask.transform_type = *type;
  auto planned = engine::plan_resume(ask);
  if (!planned) return planned;
  const std::vector<v1::JobSpec>& jobs = planned->jobs;
  if (source->quarantined) print_quarantined(context, *source);
  std::string what = fmt::format("'{}' goes on from step {} of job '{}' ({})", ask.name,
                                 ask.checkpoint.step, before.name(), ask.job_id);
  if (jobs.size() > 1) {
    std::vector<std::string> stages;
    for (const v1::JobSpec& spec : jobs) stages.push_back(spec.stage().name());
    what += fmt::format(", cut for the new size first: {}", fmt::join(stages, ", "));
  }
  fmt::print(stderr, "{}\n",
             context.err.paint(render::Tint::Dim, render::printable("muster: " + what)));
  if (const std::string& dir = jobs.back().checkpoint().dir(); dir != before.checkpoint().dir())
    fmt::print(stderr, "{}\n",
               context.err.paint(
                   render::Tint::Dim,
                   render::printable(fmt::format("muster: its checkpoints go below '{}'", dir))));
  return planned;
}

Result<int> resume(const Context& context, const ResumeOptions& options) {
  const auto session = context.connect();
  if (!session) return fail(session.error());
  auto planned = jobs_of(context, *session, options);
  if (!planned) return fail(std::move(planned.error()));
  spec::Parsed wanted;
  wanted.spec = planned->jobs.front();
  if (planned->jobs.size() > 1) wanted.stages = std::move(planned->jobs);
  return submit(context, std::move(wanted), options.submit, planned->fetches);
}

}  // namespace

void add_resume(CLI::App& app, Context& context, int& exit) {
  auto options = std::make_shared<ResumeOptions>();
  CLI::App* command = app.add_subcommand(
      "resume",
      "Go on from a checkpoint of a job that has ended, as a new job; also at another size");
  add_job_option(*command, options->job);
  command
      ->add_option("--from", options->from,
                   "latest, or the step of a checkpoint ('muster ckpt ls' lists them), one that "
                   "was quarantined, too")
      ->type_name("STEP")
      ->capture_default_str();
  add_number_option(*command, "--nodes", options->nodes,
                    "how many nodes (default: as many as it had)", 1, 65536)
      ->type_name("N");
  command
      ->add_option("--set", options->spec.set,
                   "over the job's spec, e.g. --set launch.args='--lr 1e-5' (may be given again)")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  add_env_option(*command, options->spec);
  command->add_flag(
      "--reshard", options->reshard,
      "mindformers: cut the checkpoint again although the number of ranks is the same");
  command->add_flag("-d,--detach", options->submit.detach,
                    "print the new job's id (of a chain: chain:ID) and return");
  command->add_flag("-q,--quiet", options->submit.quiet, "print nothing but how it ended");
  command
      ->add_option("--request-id", options->submit.request_id,
                   "the same id again, with the same --set name=NAME, gives the same job: makes a "
                   "retry safe")
      ->type_name("TEXT");
  add_timeout_option(*command, options->submit.timeout,
                     "stop following after this long (exit 4); the job goes on");
  options->submit.again = true;  // its name is new, so no stage is done
  command->footer(
      "examples:     muster resume llama-7b --nodes 1 --set 'launch.patch={configs/llama.yaml: "
      "{parallel_config.model_parallel: 1}}'\n"
      "              muster resume llama-7b --from 4000 --set launch.args='--lr 1e-5'\n"
      "the new job:  named JOB-r2, JOB-r3, ... (or by --set name=NAME); the spec of the old one, "
      "--set and --env over it: a list or a text is replaced, a map\n"
      "              gets entries, launch.patch further changes\n"
      "another size: megatron, mindspeed-mm and FSDP load their checkpoints themselves; of "
      "--ckpt-format torch tensor and pipeline sizes stay. With\n"
      "              mindformers it is a chain: 'strategy' at the new size, 'transform' "
      "(transform_ckpt.py on one node), 'train'. The\n"
      "              parallel sizes of its configuration have to be those of the new size: --set "
      "launch.patch, which counts for 'strategy' and\n"
      "              'train' alike\n"
      "exit:         as 'muster run'; 2 it has no whole checkpoint  10 no such job, or no such "
      "step  12 it has not ended");
  on_chosen(*command, context, exit,
            [options](const Context& chosen) { return resume(chosen, *options); });
}

}  // namespace muster::client
