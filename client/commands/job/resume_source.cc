#include "client/commands/job/resume_source.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <set>
#include <tuple>
#include <utility>

#include "client/commands/call/call.h"
#include "client/render/style.h"

namespace muster::client {
namespace {

constexpr std::size_t kNameMax = 63, kStageRoom = 10;  // ".transform"

Error wrong(const v1::Job& job, const std::string& doing, ErrorCode code,
            const std::string& message) {
  return {code, fmt::format("{} job '{}' ({}): {}", doing, job.spec().name(), job.id(), message)};
}

const v1::Attempt* attempt_of(const v1::Job& job, std::uint32_t number) {
  const auto found = std::ranges::find(job.attempts(), number, &v1::Attempt::number);
  return found == job.attempts().end() ? nullptr : &*found;
}

// If several checkpoints have the same step, the last attempt's is chosen, because the others were
// abandoned. A checkpoint that is requested by its step is used even if it is quarantined. The
// controller chooses in the same way (resolve_chain.cc).
const v1::Checkpoint* choose(const v1::Job& job, std::optional<std::int64_t> step) {
  const v1::Checkpoint* best = nullptr;
  const auto rank = [](const v1::Checkpoint& one) {
    return std::tuple(one.step(), !one.quarantined(), one.attempt());
  };
  for (const v1::Checkpoint& one : job.checkpoints()) {
    if (step ? one.step() != *step : one.quarantined()) continue;
    if (best == nullptr || rank(one) > rank(*best)) best = &one;
  }
  return best;
}

// Returns the newest steps: "8, 12".
std::string steps_of(const v1::Job& job) {
  std::set<std::int64_t> steps;
  for (const v1::Checkpoint& one : job.checkpoints()) steps.insert(one.step());
  constexpr std::size_t kShown = 8;
  while (steps.size() > kShown) steps.erase(steps.begin());
  return fmt::format("{}", fmt::join(steps, ", "));
}

constexpr std::size_t kBaseMax = kNameMax - kStageRoom;

// Returns "llama" for "llama-r2" with the mark "-r", or nothing if the name has no such end.
std::optional<std::string> without_number(const std::string& name, const std::string& mark) {
  const std::size_t at = name.rfind(mark);
  if (at == std::string::npos || at == 0 || at + mark.size() >= name.size()) return std::nullopt;
  if (name.find_first_not_of("0123456789", at + mark.size()) != std::string::npos)
    return std::nullopt;
  return name.substr(0, at);
}

}  // namespace

Result<v1::Job> job_with_all(const Session& session, const std::string& name, bool name_prefix) {
  v1::GetJobRequest request;
  request.set_job(name);
  request.set_name_prefix(name_prefix);
  auto answer = ask(session, &Jobs::GetJob, request);
  if (!answer) return fail(std::move(answer.error()));
  v1::Job job = std::move(*answer->mutable_job());
  if (job.withheld())
    return fail(wrong(
        job, "reading the checkpoints of", ErrorCode::NotAllowed,
        fmt::format("it is of user '{}', and only its owner and operators may", job.owner())));
  request.set_job(job.id());  // its name may belong to another job by the next page
  while (answer->checkpoints_first() > 0) {
    request.set_checkpoints_before(answer->checkpoints_first());
    answer = ask(session, &Jobs::GetJob, request);
    if (!answer) return fail(std::move(answer.error()));
    auto& older = *answer->mutable_job()->mutable_checkpoints();
    older.MergeFrom(job.checkpoints());
    job.mutable_checkpoints()->Swap(&older);
  }
  return job;
}

Result<ResumeSource> resume_source(const Session& session, const std::string& doing,
                                   const std::string& job, const std::string& from) {
  std::optional<std::int64_t> step;
  if (from != "latest") {
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(from.data(), from.data() + from.size(), number);
    if (error != std::errc() || end != from.data() + from.size() || number < 0)
      return fail(
          ErrorCode::InvalidArgument,
          fmt::format("{} job '{}': '{}' is not a step (latest | a number)", doing, job, from));
    step = number;
  }
  auto found = job_with_all(session, job);
  if (!found) return fail(std::move(found.error()));
  return choose_checkpoint(std::move(*found), doing, step);
}

Result<ResumeSource> choose_checkpoint(v1::Job job, const std::string& doing,
                                       std::optional<std::int64_t> step) {
  ResumeSource source{.job = std::move(job), .checkpoint = {.step = -1}, .doing = doing};
  const v1::Checkpoint* chosen = choose(source.job, step);
  if (chosen == nullptr && step && !source.job.checkpoints().empty())
    return fail(wrong(source.job, doing, ErrorCode::NotFound,
                      fmt::format("it has no whole checkpoint of step {}; the newest are {}", *step,
                                  steps_of(source.job))));
  if (chosen == nullptr) return source;
  source.quarantined = chosen->quarantined();
  source.checkpoint = {.step = chosen->step(), .path = chosen->path(), .shards = chosen->shards()};
  if (const v1::Attempt* attempt = attempt_of(source.job, chosen->attempt()))
    source.checkpoint.save_dir = attempt->save_dir();
  return source;
}

void print_quarantined(const Context& context, const ResumeSource& source) {
  const std::string line = fmt::format(
      "muster: the checkpoint of step {} was quarantined ('muster events {}' says how); it is "
      "taken because it was asked for",
      source.checkpoint.step, source.job.id());
  fmt::print(stderr, "{}\n", context.err.paint(render::Tint::Warn, line));
}

Result<void> check_checkpoint(const ResumeSource& source) {
  if (source.checkpoint.step >= 0) return {};
  const v1::StageSpec& stage = source.job.spec().stage();
  const std::string other =
      stage.name().empty()
          ? ""
          : fmt::format("; it is stage '{}' of chain '{}', name another one as {}.STAGE",
                        stage.name(), stage.chain_name(), stage.chain_name());
  if (!source.job.checkpoints().empty())
    return fail(wrong(
        source.job, source.doing, ErrorCode::Unsatisfiable,
        fmt::format("all its whole checkpoints (steps {}) were quarantined: they hold weights "
                    "alone, are torn, or two attempts that went on from each failed alike; "
                    "'muster events {}' says which; of torn ones that are mended name the "
                    "step to load all the same, from weights a new job begins with start: "
                    "{{from: job:JOB, as: weights}}{}",
                    steps_of(source.job), source.job.id(), other)));
  return fail(wrong(source.job, source.doing, ErrorCode::Unsatisfiable,
                    fmt::format("it has no whole checkpoint ('muster ckpt ls {}'), and weights "
                                "alone are none; run it anew, or start a new job from weights "
                                "with start: {{from: DIRECTORY, as: weights}}{}",
                                source.job.id(), other)));
}

// "llama-r2.train" and "llama-r2" are both followed by "llama-r3". A user may have chosen a name
// with such an end ("ppo-r2"), which is then a name like any other. The start of the job shows who
// made the number: it is that of the job with the base name, or with another number after it.
std::string base_name(const v1::JobSpec& spec, const std::string& letters, const NameOf& name_of) {
  const bool train = spec.stage().name() == "train";
  std::string name = train ? spec.stage().chain_name() : spec.name();
  std::ranges::replace(name, '.', '-');
  const std::string mark = "-" + letters;
  const auto base = without_number(name, mark);
  const v1::StartSpec& start = spec.start();
  if (!base || start.as() != v1::START_AS_RESUME) return name;
  constexpr std::string_view kJob = "job:", kReshaped = "stage:transform/";
  if (train && (start.from().starts_with(kReshaped) || start.from().starts_with('/'))) return *base;
  if (!start.from().starts_with(kJob)) return name;
  std::string before = name_of(start.from().substr(kJob.size()));
  std::ranges::replace(before, '.', '-');
  const auto is_base = [&](const std::string& one) {
    return one == *base ||
           (one.size() > base->size() && name.size() >= kBaseMax && one.starts_with(*base));
  };
  const auto numbered = without_number(before, mark);
  return before.empty() || is_base(before) || (numbered && is_base(*numbered)) ? *base : name;
}

Result<std::string> next_name(const Session& session, const v1::JobSpec& spec,
                              const std::string& letters) {
  const std::string base = base_name(spec, letters, [&](const std::string& id) -> std::string {
    v1::GetJobRequest request;
    request.set_job(id);
    const auto before = ask(session, &Jobs::GetJob, request);
    if (!before) return "";
    const v1::JobSpec& its = before->job().spec();
    return its.stage().name() == "train" ? its.stage().chain_name() : its.name();
  });
  const std::string mark = "-" + letters;
  for (std::uint32_t number = 2;; ++number) {
    const std::string end = fmt::format("{}{}", mark, number);
    std::string name = base.substr(0, kBaseMax - end.size()) + end;
    v1::GetJobRequest request;
    request.set_job(name);
    const auto taken = ask(session, &Jobs::GetJob, request);
    if (taken) continue;
    if (taken.error().code == ErrorCode::NotFound) return name;
    // Conflict: the name is the beginning of several ids.
    if (taken.error().code != ErrorCode::Conflict) return fail(taken.error());
  }
}

Result<std::string> transform_type(const Session& session) {
  const auto answer = ask(session, &Nodes::ListNodes, v1::ListNodesRequest());
  if (!answer) return fail(answer.error());
  for (const v1::Node& node : answer->nodes())
    for (const v1::Device& device : node.inventory().devices())
      if (device.type() == "cpu" && !node.dead()) return "cpu";
  return "";
}

}  // namespace muster::client
