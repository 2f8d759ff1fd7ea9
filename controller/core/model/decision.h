// The answer of decide(). Plain values. The shell owns it for the length of one batch.
#pragma once

#include <optional>
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

}  // namespace muster::core
