// Engine torch: PyTorch programs whose ranks torchrun would start. Pure.
#pragma once

#include <span>

#include "common/engine/model/rows.h"

namespace muster::engine {

void launch_torch(Launching& launching);
void check_torch(const v1::JobSpec& spec, Problems& problems);
std::span<const std::string_view> torch_identity();
LaunchSigns torch_signs();
// Sets torchrun's worker variables for every rank.
void put_torchrun(Launching& launching, const char* source);

}  // namespace muster::engine
