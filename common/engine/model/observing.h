// The options and files that observe.profile and observe.dump become for each engine. Pure.
//
//   mindformers   --profile True, and as pairs of configuration keys, which every release from r0.6
//                 on takes, --profile_start_step, --profile_stop_step and --profile_rank_ids (r1.3
//                 and later use the last one; earlier releases profile every rank). It is written
//                 to profile/rank_N below the output root, ${save.dir}. Up to r1.1 a profile turns
//                 sink mode off, and without sink mode the ranks' parts of a checkpoint cannot be
//                 loaded again.
//   megatron      --profile, --profile-step-start, --profile-step-end, --profile-ranks: every
//                 release of core. They report to nsys, which must be started around the program.
//                 With --use-pytorch-profiler (core_r0.9 and later) the program writes the profile
//                 itself, below the parent of --tensorboard-dir or into that directory. On Ascend
//                 devices the options are MindSpeed's and MindSpeed-LLM's, and their
//                 --profile-save-path is the directory of the profile.
//   mindspeed-mm  its training loop reads only the map `profile` of the file after --mm-tool, and
//                 no option. So muster changes a copy of this file, as with launch.patch. The
//                 FSDP2 back end (26.0 and later) has no --mm-tool.
//   dump          MindSpore's dump, controlled by the file that MINDSPORE_DUMP_CONFIG names. Each
//                 rank has rank_N below common_dump_settings.path of this file. muster sets the
//                 path to ${out}/dump/attempt-N. MindSpore accepts only letters, digits, '-', '_'
//                 and '/' in this path. If ${out} has others, the path becomes
//                 PATH/JOB_ID/attempt-N with the PATH in the file. There is no dump in PyNative
//                 mode (--mode 1).
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

#include "common/engine/model/rows.h"

namespace muster::engine {

inline constexpr std::size_t kDumpBytesMax = 64 << 10;

// Adds options to the command line of mindformers and megatron, after the engine's own options.
void put_profile(Launching& launching);

// For mindspeed-mm: the change of the file after --mm-tool. Nothing: no profile, another engine, or
// no such file.
std::optional<v1::ConfigPatch> profile_patch(const v1::JobSpec& spec);

// Adds the dump's file on every node that has ranks in the plan, and the variable that names the
// file.
void put_dump(Launching& launching);

// Checks what does not depend on a placement. put_dump() checks the rest of the dump's file.
void check_observing(const v1::JobSpec& spec, Problems& problems);

}  // namespace muster::engine
