// Engine megatron: Megatron-LM, MindSpeed and MindSpeed-LLM. MindSpeed-MM builds on it. Pure.
//
// launch.cc has its arguments, grammar.cc its log lines, checkpoints.cc its files, observe.cc its
// profile, reshard.cc another size.
#pragma once

#include <memory>
#include <span>

#include "common/engine/model/grammar_rows.h"
#include "common/engine/model/layout.h"
#include "common/engine/model/rows.h"

namespace muster::engine {

void launch_megatron(Launching& launching);
// The part of the launch that MindSpeed-MM and Megatron-LM share.
void launch_on_megatron(Launching& launching, const char* source);
void check_megatron(const v1::JobSpec& spec, Problems& problems);
ArgumentEdits intercepted_megatron(const LaunchRequest& request);
bool megatron_sets_save_dir(const v1::JobSpec& spec);
bool megatron_loads_start(const v1::JobSpec& spec);
LaunchSigns megatron_signs();
std::span<const LineHead> megatron_heads();
std::unique_ptr<CheckpointLayout> megatron_layout(const LayoutOptions& options);
void put_megatron_profile(Launching& launching);
void check_megatron_profile(const v1::JobSpec& spec, Problems& problems);
Result<void> check_megatron_size(const ResumeAsk& ask);
Result<bool> megatron_is_whole(const v1::JobSpec& spec, const SavedCheckpoint& checkpoint);

}  // namespace muster::engine
