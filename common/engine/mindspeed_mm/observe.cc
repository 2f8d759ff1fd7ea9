// observe.profile with MindSpeed-MM.
//
// Its training loop reads only the map `profile` of the file after --mm-tool, and
// no option. So muster changes a copy of this file, as with launch.patch. The
// FSDP2 back end (26.0 and later) has no --mm-tool.
//
// Sources: Ascend/MindSpeed-MM mindspeed_mm/tools/profiler.py, mindspeed_mm/tools/tools.json.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/engine/mindspeed_mm/mindspeed_mm.h"
#include "common/engine/model/arguments.h"
#include "common/engine/model/observing.h"

namespace muster::engine {

std::optional<v1::ConfigPatch> mindspeed_mm_profile_patch(const v1::JobSpec& spec) {
  const CommandLine command = spec_words(spec);
  const auto file = find_option(command, "--mm-tool");
  if (!file || !file->has_value || file->value.empty()) return std::nullopt;
  const v1::ProfileSpec& profile = spec.observe().profile();
  v1::ConfigPatch patch;
  patch.set_file(std::string(file->value));
  const auto change = [&](const char* at, std::string value) {
    v1::ConfigChange& one = *patch.add_changes();
    one.set_at(at);
    one.set_value(std::move(value));
  };
  change("profile.enable", "true");
  change("profile.profile_type", "static");
  if (!profile.ranks().empty())
    change("profile.ranks", fmt::format("[{}]", fmt::join(profile.ranks(), ", ")));
  if (profile.start() != 0)
    change("profile.static_param.start_step", std::to_string(profile.start()));
  if (profile.stop() != 0) change("profile.static_param.end_step", std::to_string(profile.stop()));
  change("profile.static_param.save_path", fmt::format("'{}'", kProfileDir));
  return patch;
}

void check_mindspeed_mm_profile(const v1::JobSpec& spec, Problems& problems) {
  if (mindspeed_mm_profile_patch(spec)) return;
  problems.push_back(
      {.key = "observe.profile",
       .message = "needs a file behind --mm-tool in launch.args: MindSpeed-MM reads from it what "
                  "to profile; of the FSDP2 back end change the configuration with launch.patch, "
                  "and leave it out"});
}

}  // namespace muster::engine
