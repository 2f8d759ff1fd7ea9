// The step of a start that fetches the job's inputs from their stores: Inputs.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>

#include "agent/stage/input_tree.h"
#include "agent/stage/stage_input.h"
#include "agent/start/start_work.h"
#include "common/base/mutex.h"
#include "common/text/sizes.h"

namespace muster::agent {
namespace {

// How far an input is. Written by the start's thread, read by any.
class News {
 public:
  News(std::string input, const Clock& clock) : input_(std::move(input)), clock_(clock) {}

  void at(const std::string& what) {
    const MutexLock lock(mutex_);
    what_ = what;
    news_.missing = 0;
  }
  void tell(const StageNews& news) {
    const MutexLock lock(mutex_);
    if (news_.missing == 0) since_ = clock_.now().boot;
    news_ = news;
  }
  // "inputs.data: 2.1 of 8.4 GiB, 210.0 MiB/s, 31 s left"
  [[nodiscard]] std::string text() const {
    const MutexLock lock(mutex_);
    std::string text = fmt::format("inputs.{}: ", input_);
    if (news_.missing == 0) return text + what_;
    text += part_text(news_.done, news_.missing);
    const double seconds = std::chrono::duration<double>(clock_.now().boot - since_).count();
    if (news_.done == 0 || seconds < 1) return text;
    const double rate = static_cast<double>(news_.done) / seconds;
    return text +
           fmt::format(
               ", {}/s, {:.0f} s left", size_text(static_cast<std::uint64_t>(rate)),
               static_cast<double>(news_.missing - std::min(news_.missing, news_.done)) / rate);
  }

 private:
  const std::string input_;
  const Clock& clock_;
  mutable Mutex mutex_;
  std::string what_ MUSTER_GUARDED_BY(mutex_);
  StageNews news_ MUSTER_GUARDED_BY(mutex_);
  BootTime since_ MUSTER_GUARDED_BY(mutex_){};
};

// The errors of this step that are the store's doing, or somebody's who writes there.
Refusal input_refusal(const v1::StagedInput& input, const Error& error) {
  Refusal refusal = refusal_of(error);
  if (error.code == ErrorCode::Unreachable || error.code == ErrorCode::Conflict ||
      error.code == ErrorCode::DataLoss)
    refusal.why = v1::START_FAILURE_INPUTS;
  if (error.code == ErrorCode::Conflict && !input.contents_sha256().empty())
    refusal.why = v1::START_FAILURE_INPUTS_CHANGED;
  return refusal;
}

}  // namespace

StepResult step_inputs(StartWork& work) {
  const std::filesystem::path root = work.order.staged(0).root(), jobs = root / "jobs";
  // First whether the root is the agent's own.
  if (const auto cache = InputCache::open(root); !cache)
    return std::unexpected(Refusal{.why = v1::START_FAILURE_NODE, .text = cache.error().message});
  if (auto used =
          use_trees(jobs, work.order.job_id(), trees_run_name(work.context.node, work.context.run),
                    work.layout.inputs(), *work.abandoned);
      !used)
    return std::unexpected(refusal_of(used.error()));
  work.inputs.clear();
  for (const v1::StagedInput& input : work.order.staged()) {
    work.progress->next_part(input_text(work.order, input));
    if (work.abandoned->is_set()) return {};
    std::string key;
    if (!input.secret().empty()) {
      const auto given = work.secrets_given();
      if (!given) return std::unexpected(refusal_of(given.error()));
      const auto value = (*given)->find(input.secret());
      if (value == (*given)->end())
        return std::unexpected(refusal_of(
            {ErrorCode::Internal,
             fmt::format("inputs.{}: the controller gave no key of its store", input.name())}));
      key = value->second;
    }
    const auto news = std::make_shared<News>(input.name(), system_clock());
    work.progress->set_text([news] { return news->text(); });
    const StageCalls calls{.fetch = {.abandoned = *work.abandoned,
                                     .progress = {},
                                     .now = [] { return system_clock().now().wall; }},
                           .at = [&](const std::string& what) { news->at(what); },
                           .news = [&](const StageNews& now) { news->tell(now); }};
    auto staged =
        stage_input(input, work.order.job_id(), key, work.owner(), work.node.min_free_bytes, calls);
    if (!staged) return std::unexpected(input_refusal(input, staged.error()));
    work.inputs.push_back(*std::move(staged));
  }
  return {};
}

}  // namespace muster::agent
