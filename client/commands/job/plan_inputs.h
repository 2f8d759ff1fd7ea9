// What the inputs of a plan that come from stores would bring to each node, for `muster plan`. The
// controller lets a node count it. One thread.
#pragma once

#include <string>

#include "client/commands/call/call.h"
#include "client/render/style.h"
#include "muster/v1/job_service.pb.h"

namespace muster::client {

// Fills plan.inputs. What cannot be counted has its reason there. Blocks, two minutes at most.
void measure_inputs(const Session& session, v1::PlanJobResponse& plan);

// Empty: no input is in a store.
std::string inputs_text(const v1::PlanJobResponse& plan, const render::Style& style);

}  // namespace muster::client
