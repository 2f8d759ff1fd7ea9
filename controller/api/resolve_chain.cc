#include "controller/api/resolve_chain.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <set>
#include <tuple>
#include <utility>

#include "common/engine/model/engine.h"
#include "common/engine/model/layout.h"
#include "common/engine/model/start.h"
#include "common/spec/keys/names.h"
#include "common/spec/keys/values.h"
#include "common/store/store_url.h"

namespace muster::controller {
namespace {

using spec::shown;

std::string doing_of(const std::string& doing, const v1::JobSpec& spec) {
  return spec.has_stage() ? fmt::format("{} stage '{}' of chain '{}': ", doing, spec.stage().name(),
                                        spec.stage().chain_name())
                          : fmt::format("{} job '{}': ", doing, spec.name());
}

std::string job_text(const NamedJob& job) {
  return fmt::format("job '{}' ({})", job.name, job.id.str());
}

// "the nearest are 100 and 200"
std::string nearest_steps(const NamedJob& job, std::int64_t asked) {
  std::optional<std::int64_t> below, above;
  for (const core::CheckpointRecord& one : job.whole) {
    if (one.step < asked) below = std::max(one.step, below.value_or(one.step));
    if (one.step > asked) above = std::min(one.step, above.value_or(one.step));
  }
  if (below && above) return fmt::format("the nearest are {} and {}", *below, *above);
  return fmt::format("the nearest is {}", below ? *below : above.value_or(asked));
}

class Filler {
 public:
  Filler(Submission& submission, const NamedJobs& named, const std::string& cluster_out,
         const std::string& inputs_root)
      : submission_(submission), named_(named), inputs_root_(inputs_root) {
    for (std::size_t i = 0; i < submission.jobs.size(); ++i) {
      const v1::JobSpec& spec = submission.jobs[i].spec;
      if (!spec.has_stage()) continue;
      NamedJob job{.id = submission.ids[i],
                   .name = spec.name(),
                   .phase = core::JobPhase::Queued,
                   .layout = spec.checkpoint().layout()};
      job.out = engine::out_dir(spec, job.id.str(), cluster_out);
      job.checkpoints = engine::checkpoint_dir(spec, job.out).value_or(job.out + "/checkpoints");
      stages_[spec.stage().name()] = {.job = std::move(job), .pending = true};
    }
    for (const auto& [stage, job] : submission.done) stages_[stage] = {.job = named.at(job)};
  }

  Result<Resolved> run() {
    if (auto wrong = check_done()) return fail(std::move(*wrong));
    for (std::size_t i = 0; i < submission_.jobs.size(); ++i) {
      JobToSubmit& job = submission_.jobs[i];
      std::optional<Error> wrong = fill_after(job);
      if (!wrong) fill_stage(job);
      for (const v1::InputSpec& input : job.spec.inputs())
        (*job.resolved.mutable_inputs())[input.name()] =
            store::is_url(input.from()) ? staged_place(submission_.ids[i], input)
                                        : place_of(input.from());
      if (!wrong && engine::has_start(job.spec)) wrong = fill_start(job);
      if (wrong) return fail(wrong->code, doing_of(submission_.doing, job.spec) + wrong->message);
    }
    result_.jobs = std::move(submission_.jobs);
    return std::move(result_);
  }

 private:
  struct Stage {
    NamedJob job;
    bool pending = false;  // submitted now
  };

  std::optional<Error> check_done() {
    if (submission_.done.empty()) return std::nullopt;
    const std::string& chain = submission_.jobs.front().spec.stage().chain_name();
    for (const auto& [stage, text] : submission_.done) {
      const NamedJob& job = named_.at(text);
      const std::string doing = fmt::format("{} chain '{}': stage '{}' is to be done by {}, ",
                                            submission_.doing, chain, stage, job_text(job));
      if (job.name != fmt::format("{}.{}", chain, stage))
        return Error{ErrorCode::InvalidArgument,
                     fmt::format("{}which is not '{}.{}'", doing, chain, stage)};
      if (job.phase != core::JobPhase::Succeeded)
        return Error{
            ErrorCode::Unsatisfiable,
            fmt::format("{}which is {}; only a job that has succeeded can be taken for a stage",
                        doing, core::to_string(job.phase))};
    }
    return std::nullopt;
  }

  // Always found: the chain was checked, and all other names were found.
  const NamedJob& job_of(const spec::Source& source) const {
    return source.kind == "stage" ? stages_.at(std::string(source.name)).job
                                  : named_.at(std::string(source.name));
  }

  std::optional<Error> fill_after(JobToSubmit& submitted) {
    const v1::JobSpec& spec = submitted.spec;
    auto& after = *submitted.resolved.mutable_after();
    std::map<JobId, std::pair<int, std::string>> seen;
    for (int i = 0; i < spec.schedule().after_size(); ++i) {
      const std::string& text = spec.schedule().after(i);
      const spec::Source source = spec::source_of(text);
      const NamedJob& job = source.kind == "stage" ? job_of(source) : named_.at(text);
      const auto [same, fresh] = seen.emplace(job.id, std::pair(i, text));
      if (!fresh) {
        return Error{
            ErrorCode::InvalidArgument,
            fmt::format("schedule.after[{}]: '{}' is the same job as schedule.after[{}]: '{}' ({})",
                        i, shown(text), same->second.first, shown(same->second.second),
                        job.id.str())};
      }
      *after.Add() = job.id.str();
      keep_end(job);
    }
    const auto add = [&](std::string_view from) {
      const spec::Source source = spec::source_of(from);
      if (source.kind != "stage") return;
      const NamedJob& job = job_of(source);
      keep_end(job);
      if (seen.emplace(job.id, std::pair(after.size(), std::string(from))).second)
        *after.Add() = job.id.str();
    };
    add(spec.start().from());
    for (const v1::InputSpec& input : spec.inputs()) add(input.from());
    return std::nullopt;
  }

  void keep_end(const NamedJob& job) {
    if (job.archived) result_.archived[job.id] = {.name = job.name, .phase = job.phase};
  }

  void fill_stage(JobToSubmit& submitted) {
    if (!submitted.spec.has_stage()) return;
    v1::ResolvedStage& stage = *submitted.resolved.mutable_stage();
    stage.set_chain(submission_.ids.front().str());
    for (v1::StageDir& dir : *stage.mutable_dirs()) {
      const NamedJob& job = stages_.at(dir.stage()).job;
      dir.set_job(job.id.str());
      dir.set_out(job.out);
    }
  }

  // The directory that a text names. For a job itself, this is its directory of checkpoints.
  [[nodiscard]] std::string place_of(const std::string& from) const {
    const spec::Source source = spec::source_of(from);
    if (source.kind.empty()) return from;
    const NamedJob& job = job_of(source);
    return source.below.empty() ? job.checkpoints : fmt::format("{}/{}", job.out, source.below);
  }

  // Where each node keeps what it fetches. The last part is as in the store, since programs look at
  // how a name ends. The URL is sound.
  [[nodiscard]] std::string staged_place(const JobId& job, const v1::InputSpec& input) const {
    const auto url = store::parse_url(input.from());
    std::string name = url ? url->path.substr(url->path.rfind('/') + 1) : "";
    if (name.empty()) name = url ? url->place : "input";
    return fmt::format("{}/jobs/{}/{}/{}", inputs_root_, job.str(), input.name(), name);
  }

  std::optional<Error> fill_start(JobToSubmit& submitted) {
    const v1::JobSpec& spec = submitted.spec;
    v1::ResolvedStart& start = *submitted.resolved.mutable_start();
    const auto staged = submitted.resolved.inputs().find(std::string(spec::kStartInput));
    start.set_dir(store::is_url(spec.start().from()) && staged != submitted.resolved.inputs().end()
                      ? staged->second
                      : place_of(spec.start().from()));
    if (!engine::starts_from_job(spec)) {
      if (spec.start().has_step()) start.mutable_point()->set_step(spec.start().step());
      return std::nullopt;
    }
    const spec::Source source = spec::source_of(spec.start().from());
    const NamedJob& job = job_of(source);
    const std::string& layout = spec.checkpoint().layout();
    if (!engine::same_files(job.layout, layout) || layout == "none") {
      return Error{ErrorCode::Unsatisfiable,
                   fmt::format("start.from: the checkpoints of {} are of layout '{}', and this job "
                               "reads '{}' (checkpoint.layout); name a directory with weights in "
                               "its own form",
                               job_text(job), job.layout, layout)};
    }
    if (source.kind == "stage" && stages_.at(std::string(source.name)).pending) return std::nullopt;
    auto point = pick_checkpoint(spec.start(), job);
    if (!point) return std::move(point.error());
    if (!*point) return std::nullopt;
    *start.mutable_point() = std::move(**point);
    if (spec.checkpoint().storage() != v1::CHECKPOINT_STORAGE_LOCAL) return std::nullopt;
    const auto owned = job.owned.find(AttemptNo(start.point().attempt()));
    if (owned == job.owned.end()) return std::nullopt;
    for (const core::ShardHolder& holder : owned->second.holders) {
      v1::ShardHolder& one = *start.mutable_point()->add_holders();
      one.set_node(holder.node.str());
      one.set_first_rank(holder.first_rank.value);
      one.set_ranks(holder.ranks);
    }
    return std::nullopt;
  }

  Submission& submission_;
  const NamedJobs& named_;
  const std::string& inputs_root_;
  std::map<std::string, Stage> stages_;
  Resolved result_;
};

}  // namespace

bool is_plain(const v1::JobSpec& spec) {
  return !spec.has_stage() && spec.schedule().after().empty() && !spec.has_start() &&
         spec.inputs().empty();
}

Result<std::optional<v1::StartPoint>> pick_checkpoint(const v1::StartSpec& start,
                                                      const NamedJob& job) {
  const core::CheckpointRecord* picked = nullptr;
  for (const core::CheckpointRecord& one : job.whole) {
    // A step that is requested by its number counts, even if quarantined. But a job cannot resume
    // from a checkpoint with weights alone.
    const bool weights = one.weights_alone && start.as() == v1::START_AS_WEIGHTS;
    if (one.weights_alone && !weights) continue;
    if (start.has_step() ? one.step != start.step() : one.quarantined && !weights) continue;
    if (picked == nullptr || std::tuple(one.step, !one.quarantined, one.attempt) >
                                 std::tuple(picked->step, !picked->quarantined, picked->attempt))
      picked = &one;
  }
  if (picked != nullptr) {
    v1::StartPoint point;
    point.set_attempt(picked->attempt.value);
    point.set_step(picked->step);
    point.set_path(picked->path);
    return std::optional(std::move(point));
  }
  const auto alone = [](const core::CheckpointRecord& one) { return one.weights_alone; };
  if (start.has_step() && std::ranges::any_of(job.whole, [&](const core::CheckpointRecord& one) {
        return one.step == start.step() && alone(one);
      })) {
    return fail(ErrorCode::Unsatisfiable,
                fmt::format("start.step: of step {} {} has weights alone, saved without their "
                            "optimizer; write start.as: weights to begin with them",
                            start.step(), job_text(job)));
  }
  if (start.has_step() && !job.whole.empty()) {
    return fail(
        ErrorCode::Unsatisfiable,
        fmt::format("start.step: {} has no whole checkpoint of step {}; {} (`muster ckpt ls {}` "
                    "lists them)",
                    job_text(job), start.step(), nearest_steps(job, start.step()), job.id.str()));
  }
  if (start.as() == v1::START_AS_RESUME_OR_SCRATCH) return std::optional<v1::StartPoint>();
  const bool quarantined = !job.whole.empty(), ended = core::is_final(job.phase);
  if (quarantined && start.as() == v1::START_AS_RESUME && std::ranges::all_of(job.whole, alone)) {
    return fail(ErrorCode::Unsatisfiable,
                fmt::format("start.from: {} has saved weights alone, without their optimizer; "
                            "write start.as: weights to begin with them, or start.as: "
                            "resume-or-scratch to begin anew",
                            job_text(job)));
  }
  const std::string missing = fmt::format(
      "start.from: {} has no whole checkpoint{}{}; ", job_text(job),
      quarantined ? " but such as were quarantined" : "", ended ? ", and has ended" : "");
  const std::string wait = ended ? "" : "wait until it has saved one, or ";
  if (start.as() != v1::START_AS_RESUME)
    return fail(
        ErrorCode::Unsatisfiable,
        fmt::format("{}{}name the directory that holds the weights (start.from: job:{}/DIR)",
                    missing, wait, job.name));
  return fail(ErrorCode::Unsatisfiable,
              fmt::format("{}{}write start.as: resume-or-scratch to begin anew{}", missing,
                          quarantined ? "name one of them with start.step, or " : wait,
                          quarantined ? "" : " without"));
}

std::vector<WantedJob> wanted_jobs(const Submission& submission) {
  std::vector<WantedJob> wanted;
  for (const auto& [stage, job] : submission.done)
    wanted.push_back(
        {.text = job,
         .place = fmt::format("{} chain '{}': stage '{}' is done", submission.doing,
                              submission.jobs.front().spec.stage().chain_name(), stage)});
  for (const auto& [spec, resolved] : submission.jobs) {
    const std::string doing = doing_of(submission.doing, spec);
    for (int i = 0; i < spec.schedule().after_size(); ++i) {
      const std::string& text = spec.schedule().after(i);
      if (spec::source_of(text).kind == "stage") continue;
      wanted.push_back(
          {.text = text, .place = fmt::format("{}schedule.after[{}]", doing, i), .only_end = true});
    }
    const auto add = [&](std::string_view from, const std::string& key) {
      if (const spec::Source source = spec::source_of(from); source.kind == "job")
        wanted.push_back({.text = std::string(source.name), .place = doing + key});
    };
    add(spec.start().from(), "start.from");
    for (const v1::InputSpec& input : spec.inputs())
      add(input.from(), fmt::format("inputs.{}", input.name()));
  }
  return wanted;
}

Result<Resolved> fill_in(Submission submission, const NamedJobs& named,
                         const std::string& cluster_out, const std::string& inputs_root) {
  return Filler(submission, named, cluster_out, inputs_root).run();
}

void resolve(Edge& edge, const JobAccess& access, const View& view, Submission submission,
             std::move_only_function<void(Result<Resolved>)> done) {
  const std::vector<WantedJob> wanted = wanted_jobs(submission);
  find_named(edge, access, view, wanted,
             [cluster_out = edge.new_outputs(), inputs_root = edge.inputs_root,
              submission = std::move(submission),
              done = std::move(done)](Result<NamedJobs> named) mutable {
               if (!named) return done(fail(std::move(named.error())));
               done(fill_in(std::move(submission), *named, cluster_out, inputs_root));
             });
}

}  // namespace muster::controller
