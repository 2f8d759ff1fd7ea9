// The timeline of one incident, from the fault to the first new step, as text. Pure.
#pragma once

#include <string>

#include "client/render/style.h"
#include "muster/v1/job.pb.h"

namespace muster::render {

// Several lines, each with its end; marks not reached yet are left out.
std::string incident_text(const v1::Incident& incident, const Style& style);

}  // namespace muster::render
