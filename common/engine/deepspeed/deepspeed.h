// Engine deepspeed: programs that the launcher `deepspeed` would start. Pure.
//
// launch.cc has its variables and its argument, grammar.cc its log lines, checkpoints.cc its files,
// reshard.cc another size.
#pragma once

#include <memory>
#include <span>

#include "common/engine/model/grammar_rows.h"
#include "common/engine/model/layout.h"
#include "common/engine/model/rows.h"

namespace muster::engine {

void launch_deepspeed(Launching& launching);
void check_deepspeed(const v1::JobSpec& spec, Problems& problems);
std::span<const std::string_view> deepspeed_identity();
std::span<const LineHead> deepspeed_heads();
std::unique_ptr<CheckpointLayout> deepspeed_layout(const LayoutOptions& options);
Result<void> check_deepspeed_size(const ResumeAsk& ask);
Result<bool> deepspeed_is_whole(const v1::JobSpec& spec, const SavedCheckpoint& checkpoint);

}  // namespace muster::engine
