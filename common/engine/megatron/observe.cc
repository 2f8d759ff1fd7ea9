// observe.profile with Megatron-LM and MindSpeed.
//
// --profile, --profile-step-start, --profile-step-end, --profile-ranks: every
// release of core. They report to nsys, which must be started around the program.
// With --use-pytorch-profiler (core_r0.9 and later) the program writes the profile
// itself, below the parent of --tensorboard-dir or into that directory. On Ascend
// devices the options are MindSpeed's and MindSpeed-LLM's, and their
// --profile-save-path is the directory of the profile.
//
// Sources: NVIDIA/Megatron-LM megatron/training/arguments.py, common_config.py (from core_r0.16),
// training.py; Ascend/MindSpeed mindspeed/arguments.py, Ascend/MindSpeed-LLM
// mindspeed_llm/training/arguments.py.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "common/engine/megatron/megatron.h"
#include "common/engine/model/arguments.h"
#include "common/engine/model/observing.h"

namespace muster::engine {
namespace {

constexpr const char* kProfileKey = "observe.profile";

bool on_ascend(const LaunchRequest& request) {
  return std::ranges::all_of(request.nodes, [&](const PlacedNode& node) {
    return node.rank_count == 0 || is_ascend(device_type(request, node));
  });
}

}  // namespace

void put_megatron_profile(Launching& launching) {
  const LaunchRequest& request = launching.request;
  CommandLine& command = launching.command;
  const v1::ProfileSpec& profile = request.spec->observe().profile();
  command.push_back({"--profile", kProfileKey});
  if (profile.start() != 0)
    add_profile_option(command, "--profile-step-start", std::to_string(profile.start()));
  if (profile.stop() != 0)
    add_profile_option(command, "--profile-step-end", std::to_string(profile.stop()));
  if (!profile.ranks().empty()) command.push_back({"--profile-ranks", kProfileKey});
  for (const std::uint32_t rank : profile.ranks())
    command.push_back({std::to_string(rank), kProfileKey});
  if (on_ascend(request)) {
    if (!has_option(command, "--profile-save-path"))
      add_profile_option(command, "--profile-save-path", kProfileDir);
  } else if (has_option(command, "--use-pytorch-profiler") &&
             !has_option(command, "--tensorboard-dir")) {
    // main writes into ../torch_profile relative to this directory
    add_profile_option(command, "--tensorboard-dir", fmt::format("{}/tensorboard", kProfileDir));
  }
}

void check_megatron_profile(const v1::JobSpec& spec, Problems& problems) {
  constexpr std::array<std::string_view, 4> kOptions = {"--profile", "--profile-step-start",
                                                        "--profile-step-end", "--profile-ranks"};
  const bool program = spec.launch().run().empty() ||
                       std::ranges::any_of(spec.launch().run(), [](const std::string& word) {
                         return word.ends_with(".py");
                       });
  if (!program)
    return problems.push_back(
        {.key = kProfileKey,
         .message = "no word of launch.run is a Python script, whose option --profile would be; "
                    "leave it out"});
  check_profile_given_once(spec_words(spec), kOptions, problems);
}

}  // namespace muster::engine
