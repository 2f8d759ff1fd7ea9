// The answer of decide(), and how its parts make one. Plain values. The shell owns it for the
// length of one batch.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/error.h"
#include "controller/core/model/event.h"

namespace muster::core {

struct Decision {
  std::vector<EventBody> events;  // may be empty: already known
  std::optional<Error> refusal;   // then events is empty
  // For a submission: the job that it made, or the earlier job with the same request id.
  std::optional<JobId> job;
  bool repeated = false;
};

inline Decision nothing() { return {}; }
inline Decision refuse(ErrorCode code, std::string message) {
  return {.refusal = Error{code, std::move(message)}};
}
template <class... Bodies>
Decision accept(Bodies&&... bodies) {
  Decision decision;
  (decision.events.emplace_back(std::forward<Bodies>(bodies)), ...);
  return decision;
}

}  // namespace muster::core
