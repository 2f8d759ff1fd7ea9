#include "client/commands/job/job_filter.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "client/render/text.h"
#include "common/proto/proto_time.h"
#include "common/text/words.h"

namespace muster::client {
namespace {

struct OrderWord {
  std::string_view word;
  JobOrder order;
};
constexpr auto kOrders = std::to_array<OrderWord>({{"age", JobOrder::Newest},
                                                   {"name", JobOrder::Name},
                                                   {"phase", JobOrder::Phase},
                                                   {"run", JobOrder::Run},
                                                   {"step", JobOrder::Step}});

std::vector<v1::JobPhase> all_phases() {
  std::vector<v1::JobPhase> phases;
  for (int phase = v1::JobPhase_MIN; phase <= v1::JobPhase_MAX; ++phase)
    if (v1::JobPhase_IsValid(phase) && phase != v1::JOB_PHASE_UNSPECIFIED)
      phases.push_back(static_cast<v1::JobPhase>(phase));
  return phases;
}

std::string hint(std::string_view word, const std::vector<std::string>& known) {
  const std::vector<std::string_view> words(known.begin(), known.end());
  const std::string_view near = nearest(word, words);
  return near.empty() ? "" : fmt::format("; did you mean '{}'?", near);
}

// Returns the start time of the latest attempt. A job that never ran sorts after all jobs that did.
WallTime started_at(const v1::Job& job) {
  if (job.attempts().empty() || !job.attempts(job.attempts_size() - 1).has_running_at())
    return WallTime::max();
  return to_wall(job.attempts(job.attempts_size() - 1).running_at());
}

}  // namespace

bool JobFilter::takes(const v1::Job& job) const {
  if (!phases.empty() && !phases.contains(job.phase())) return false;
  return std::ranges::all_of(labels, [&](const auto& wanted) {
    const auto found = job.spec().labels().find(wanted.first);
    return found != job.spec().labels().end() &&
           (!wanted.second || found->second == *wanted.second);
  });
}

bool JobFilter::wants_ended() const {
  return std::ranges::any_of(
      phases, [](int phase) { return render::is_final(static_cast<v1::JobPhase>(phase)); });
}

Result<JobFilter> job_filter(const std::vector<std::string>& states,
                             const std::vector<std::string>& labels) {
  JobFilter filter;
  std::vector<std::string> known;
  for (const v1::JobPhase phase : all_phases()) known.push_back(render::phase_text(phase));
  known.insert(known.end(), {"live", "ended"});
  for (const std::string& state : states) {
    const std::size_t before = filter.phases.size();
    bool same = false;
    for (const v1::JobPhase phase : all_phases()) {
      const bool meant = state == render::phase_text(phase) ||
                         (state == "live" && !render::is_final(phase)) ||
                         (state == "ended" && render::is_final(phase));
      if (meant) same = !filter.phases.insert(phase).second || same;
    }
    if (filter.phases.size() == before && !same)
      return fail(ErrorCode::InvalidArgument,
                  fmt::format("option --state '{}': no phase of a job{} ({})", state,
                              hint(state, known), fmt::join(known, ", ")));
  }
  for (const std::string& label : labels) {
    const std::size_t equals = label.find('=');
    if (label.empty() || equals == 0)
      return fail(ErrorCode::InvalidArgument,
                  fmt::format("option --label '{}': write NAME or NAME=VALUE", label));
    filter.labels.emplace_back(
        label.substr(0, equals),
        equals == std::string::npos ? std::nullopt : std::optional(label.substr(equals + 1)));
  }
  return filter;
}

std::vector<std::string_view> job_orders() {
  std::vector<std::string_view> words;
  for (const OrderWord& one : kOrders) words.push_back(one.word);
  return words;
}

Result<JobOrder> job_order(const std::string& word) {
  if (word.empty()) return JobOrder::Newest;
  for (const OrderWord& one : kOrders)
    if (one.word == word) return one.order;
  const std::string_view near = nearest(word, job_orders());
  return fail(ErrorCode::InvalidArgument,
              fmt::format("option --sort '{}': jobs are not sorted by that{} ({})", word,
                          near.empty() ? "" : fmt::format("; did you mean '{}'?", near),
                          fmt::join(job_orders(), ", ")));
}

void sort_jobs(std::vector<v1::Job>& jobs, JobOrder order) {
  const auto by = [&](const auto& key) { std::ranges::stable_sort(jobs, {}, key); };
  switch (order) {
    case JobOrder::Newest: return;  // keep the given order
    case JobOrder::LiveFirst:
      return by([](const v1::Job& job) { return render::is_final(job.phase()); });
    case JobOrder::Name: return by([](const v1::Job& job) { return job.spec().name(); });
    case JobOrder::Phase:
      return by([](const v1::Job& job) { return static_cast<int>(job.phase()); });
    case JobOrder::Run: return by(started_at);
    case JobOrder::Step:
      return by([](const v1::Job& job) {
        return job.progress().has_step() ? -job.progress().step() : 1;
      });
  }
}

}  // namespace muster::client
