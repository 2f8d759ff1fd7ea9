// Converts a planned launch into the messages that clients get. Pure.
#pragma once

#include <google/protobuf/repeated_ptr_field.h>

#include <set>

#include "common/engine/model/engine.h"
#include "muster/v1/job_service.pb.h"

namespace muster::controller {

void fill(v1::RankLaunch& shown, const engine::LaunchRequest& request,
          const engine::LaunchPlan& plan, const engine::RankPlan& rank);

// Content of up to this many bytes is shown. The same content is shown once, with the first file
// that has it.
inline constexpr std::size_t kShownContentMax = 1U << 20U;
// The files of these nodes, given by their positions in the request.
void fill_files(google::protobuf::RepeatedPtrField<v1::LaunchedFile>& shown,
                const engine::LaunchRequest& request, const engine::LaunchPlan& plan,
                const std::set<std::size_t>& nodes);
void fill_auxiliaries(google::protobuf::RepeatedPtrField<v1::LaunchedAuxiliary>& shown,
                      const engine::LaunchRequest& request, const engine::LaunchPlan& plan,
                      const std::set<std::size_t>& nodes);

}  // namespace muster::controller
