// Engine mindspeed-mm: MindSpeed-MM, on top of Megatron-LM. Pure.
#pragma once

#include <optional>
#include <span>

#include "common/engine/model/grammar_rows.h"
#include "common/engine/model/rows.h"

namespace muster::engine {

void launch_mindspeed_mm(Launching& launching);
void check_mindspeed_mm(const v1::JobSpec& spec, Problems& problems);
LaunchSigns mindspeed_mm_signs();
std::span<const LineHead> mindspeed_mm_heads();  // in addition to megatron's
std::optional<v1::ConfigPatch> mindspeed_mm_profile_patch(const v1::JobSpec& spec);
void check_mindspeed_mm_profile(const v1::JobSpec& spec, Problems& problems);

}  // namespace muster::engine
