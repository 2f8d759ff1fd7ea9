// Formats the timeline of one incident, from the fault to the first new step. Pure.
#pragma once

#include <cstddef>
#include <string>

#include "client/render/style.h"
#include "muster/v1/job.pb.h"

namespace muster::render {

// Returns several lines, each with its end. Times that are not reached yet are left out. The steps
// in which nodes failed to start are those of the incident's attempt, if it is in `attempts`.
// Texts are wrapped to `width` columns (wrap.h).
std::string incident_text(const v1::Incident& incident,
                          const google::protobuf::RepeatedPtrField<v1::Attempt>& attempts,
                          const Style& style, std::size_t width = 0);

}  // namespace muster::render
