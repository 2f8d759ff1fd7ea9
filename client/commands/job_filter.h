// Which jobs `muster ps` lists, and in which order. Values.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/error.h"
#include "muster/v1/job.pb.h"

namespace muster::client {

struct JobFilter {
  // v1::JobPhase; empty: any
  std::set<int> phases;
  // each has to be there; nothing: with whatever value
  std::vector<std::pair<std::string, std::optional<std::string>>> labels;

  [[nodiscard]] bool takes(const v1::Job& job) const;
  [[nodiscard]] bool wants_ended() const;  // a phase that only jobs have which have ended
};
// Errors: a word that is no phase, a label without a name.
Result<JobFilter> job_filter(const std::vector<std::string>& states,
                             const std::vector<std::string>& labels);

enum class JobOrder : std::uint8_t { Newest, LiveFirst, Name, Phase, Run, Step };
// The words of --sort.
std::vector<std::string_view> job_orders();
// Empty: Newest. Errors: no such word.
Result<JobOrder> job_order(const std::string& word);
// Stable: of those that are equal the newer one stays first.
void sort_jobs(std::vector<v1::Job>& jobs, JobOrder order);

}  // namespace muster::client
