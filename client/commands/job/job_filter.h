// Selects and sorts the jobs that `muster ps` lists. Plain values.
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
  // each label must be there; nothing: with any value
  std::vector<std::pair<std::string, std::optional<std::string>>> labels;

  [[nodiscard]] bool takes(const v1::Job& job) const;
  [[nodiscard]] bool wants_ended() const;  // one of the phases is that of an ended job
};
// Errors: a word that is not a phase, a label without a name.
Result<JobFilter> job_filter(const std::vector<std::string>& states,
                             const std::vector<std::string>& labels);

enum class JobOrder : std::uint8_t { Newest, LiveFirst, Name, Phase, Run, Step };
// Returns the words of --sort.
std::vector<std::string_view> job_orders();
// An empty text is Newest. Errors: an unknown word.
Result<JobOrder> job_order(const std::string& word);
// The sort is stable: of equal jobs the newer one stays first.
void sort_jobs(std::vector<v1::Job>& jobs, JobOrder order);

}  // namespace muster::client
