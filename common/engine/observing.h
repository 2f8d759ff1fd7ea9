// observe.profile and observe.dump: what they are made of with each engine. Pure.
//
//   mindformers   --profile True, and as pairs of configuration keys, which every release from r0.6
//                 on takes, --profile_start_step, --profile_stop_step and --profile_rank_ids (which
//                 r1.3 and later go by; before that every rank is profiled). Into profile/rank_N
//                 below the output root, ${save.dir}. Up to r1.1 it turns sink mode off, without
//                 which the ranks' parts of a checkpoint cannot be loaded again.
//   megatron      --profile, --profile-step-start, --profile-step-end, --profile-ranks: every
//                 release of core. What they record is told to nsys, which has to stand around the
//                 program; with --use-pytorch-profiler (core_r0.9 and later) the program writes it
//                 itself, below the parent of --tensorboard-dir or into it. On Ascend devices the
//                 options are MindSpeed's and MindSpeed-LLM's, whose --profile-save-path is where
//                 it goes.
//   mindspeed-mm  its training loop goes by the map `profile` of the file behind --mm-tool alone,
//                 and by no option: a change of a copy, as with launch.patch. Its FSDP2 back end
//                 (26.0 and later) has no --mm-tool.
//   dump          MindSpore's, by the file that MINDSPORE_DUMP_CONFIG names: its
//                 common_dump_settings.path, below which each rank has rank_N, becomes
//                 ${out}/dump/attempt-N. MindSpore takes letters, digits, '-', '_' and '/' alone
//                 there: where ${out} has others, it becomes PATH/JOB_ID/attempt-N with the PATH
//                 that the file has. There is no dump in PyNative mode (--mode 1).
//
// Sources: mindspore-lab/mindformers mindformers/core/context/build_context.py (r0.6-r1.0),
// mindformers/trainer/trainer.py (r1.1 to master), mindformers/core/callback/callback.py
// (ProfileMonitor), run_mindformer.py; NVIDIA/Megatron-LM megatron/training/arguments.py,
// common_config.py (from core_r0.16), training.py; Ascend/MindSpeed mindspeed/arguments.py,
// Ascend/MindSpeed-LLM mindspeed_llm/training/arguments.py; Ascend/MindSpeed-MM
// mindspeed_mm/tools/profiler.py, mindspeed_mm/tools/tools.json; mindspore-ai/mindspore
// mindspore/ccsrc/debug/data_dump/dump_json_parser.cc.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "common/engine/rows.h"

namespace muster::engine {

inline constexpr std::size_t kDumpBytesMax = 64 << 10;

// Into the command line of mindformers and megatron; the engine's own are in already.
void put_profile(Launching& launching);

// Of mindspeed-mm: the change of the file behind --mm-tool. Nothing: no profile, another engine, no
// such file.
std::optional<v1::ConfigPatch> profile_patch(const v1::JobSpec& spec);

// The dump's file on every node that has ranks in the plan, and the variable that names it.
void put_dump(Launching& launching);

// What does not depend on a placement; of the dump's file the rest is put_dump()'s.
void check_observing(const v1::JobSpec& spec, Problems& problems);

}  // namespace muster::engine
