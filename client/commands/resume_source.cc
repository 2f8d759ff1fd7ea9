#include "client/commands/resume_source.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "client/commands/call.h"

namespace muster::client {
namespace {

constexpr std::size_t kNameMax = 63, kStageRoom = 10;  // ".transform"

Error wrong(const v1::Job& job, const std::string& doing, ErrorCode code, const std::string& message) {
  return {code, fmt::format("{} job '{}' ({}): {}", doing, job.spec().name(), job.id(), message)};
}

const v1::Attempt* attempt_of(const v1::Job& job, std::uint32_t number) {
  const auto found = std::ranges::find(job.attempts(), number, &v1::Attempt::number);
  return found == job.attempts().end() ? nullptr : &*found;
}

// Of several of a step the last attempt's: the others were given up.
const v1::Checkpoint* choose(const v1::Job& job, std::optional<std::int64_t> step) {
  const v1::Checkpoint* best = nullptr;
  for (const v1::Checkpoint& one : job.checkpoints()) {
    if (one.set_aside() || (step && one.step() != *step)) continue;
    if (best == nullptr || std::pair(one.step(), one.attempt()) > std::pair(best->step(), best->attempt())) best = &one;
  }
  return best;
}

std::string steps_of(const v1::Job& job) {
  std::set<std::int64_t> steps;
  for (const v1::Checkpoint& one : job.checkpoints())
    if (!one.set_aside()) steps.insert(one.step());
  if (steps.empty()) return "it has no whole one";
  constexpr std::size_t kShown = 8;
  while (steps.size() > kShown) steps.erase(steps.begin());
  return fmt::format("the newest are {}", fmt::join(steps, ", "));
}

}  // namespace

Result<v1::Job> job_with_all(const Session& session, const std::string& name) {
  v1::GetJobRequest request;
  request.set_job(name);
  auto answer = ask(session, &Jobs::GetJob, request);
  if (!answer) return fail(std::move(answer.error()));
  v1::Job job = std::move(*answer->mutable_job());
  request.set_job(job.id());  // its name may be another job's by the next page
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

Result<ResumeSource> resume_source(const Session& session, const std::string& doing, const std::string& job, const std::string& from) {
  std::optional<std::int64_t> step;
  if (from != "latest") {
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(from.data(), from.data() + from.size(), number);
    if (error != std::errc() || end != from.data() + from.size() || number < 0)
      return fail(ErrorCode::InvalidArgument, fmt::format("{} job '{}': '{}' is not a step (latest | a number)", doing, job, from));
    step = number;
  }
  auto found = job_with_all(session, job);
  if (!found) return fail(std::move(found.error()));
  ResumeSource source{.job = std::move(*found), .checkpoint = {.step = -1}, .doing = doing};
  const v1::Checkpoint* chosen = choose(source.job, step);
  if (chosen == nullptr && step && choose(source.job, std::nullopt) != nullptr)
    return fail(wrong(source.job, doing, ErrorCode::NotFound, fmt::format("it has no whole checkpoint of step {}; {}", *step, steps_of(source.job))));
  if (chosen == nullptr) return source;
  source.checkpoint = {.step = chosen->step(), .path = chosen->path(), .shards = chosen->shards()};
  if (const v1::Attempt* attempt = attempt_of(source.job, chosen->attempt())) source.checkpoint.save_dir = attempt->save_dir();
  return source;
}

Result<void> check_checkpoint(const ResumeSource& source) {
  if (source.checkpoint.step >= 0) return {};
  const v1::StageSpec& stage = source.job.spec().stage();
  const std::string other = stage.name().empty() ? ""
                                                 : fmt::format("; it is stage '{}' of chain '{}', name another one as {}.STAGE", stage.name(),
                                                               stage.chain_name(), stage.chain_name());
  return fail(wrong(source.job, source.doing, ErrorCode::Unsatisfiable,
                    fmt::format("it has no whole checkpoint ('muster ckpt ls {}'), and weights alone are none; run it anew, or start a new job from weights "
                                "with start: {{from: DIRECTORY, as: weights}}{}",
                                source.job.id(), other)));
}

Result<std::string> next_name(const Session& session, const v1::JobSpec& spec, const std::string& letters) {
  // "llama-r2.train" and "llama-r2" are both followed by "llama-r3".
  std::string base = spec.stage().name() == "train" ? spec.stage().chain_name() : spec.name();
  std::ranges::replace(base, '.', '-');
  const std::string mark = "-" + letters;
  if (const std::size_t at = base.rfind(mark);
      at != std::string::npos && at > 0 && at + mark.size() < base.size() && base.find_first_not_of("0123456789", at + mark.size()) == std::string::npos)
    base.resize(at);
  for (std::uint32_t number = 2;; ++number) {
    const std::string end = fmt::format("{}{}", mark, number);
    std::string name = base.substr(0, kNameMax - kStageRoom - end.size()) + end;
    v1::GetJobRequest request;
    request.set_job(name);
    const auto taken = ask(session, &Jobs::GetJob, request);
    if (taken) continue;
    if (taken.error().code == ErrorCode::NotFound) return name;
    if (taken.error().code != ErrorCode::Conflict) return fail(taken.error());  // several, as the beginning of ids
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
