// What the inputs of a plan that come from stores would bring to each node, for `muster plan`. The
// controller lets a node count it. One thread.
#pragma once

#include <chrono>
#include <map>
#include <string>

#include "client/commands/call/call.h"
#include "client/render/style.h"
#include "muster/v1/job_service.pb.h"

namespace muster::client {

// Counts each URL once, for all plans of a command. All of it blocks two minutes at most: what
// cannot be counted in that time has its reason.
class InputCounts {
 public:
  explicit InputCounts(const Session& session);  // which lives longer
  void fill(v1::PlanJobResponse& plan);

 private:
  v1::PlannedInput counted(const v1::InputSpec& input, const v1::PlanJobResponse& plan);

  const Session& session_;
  const std::chrono::steady_clock::time_point until_;
  std::map<std::string, v1::PlannedInput> known_;  // by the request without a node
};

// Empty: no input is in a store.
std::string inputs_text(const v1::PlanJobResponse& plan, const render::Style& style);

}  // namespace muster::client
