// MindSpeed-MM (its own pretrain_*.py). It takes Megatron-LM's arguments and variables, and also
// --mm-data, --mm-model and --mm-tool with files of the model. These files are relative to the
// working directory and are not changed.
//
// Its example scripts pass --no-save-optim and similar options. For such runs the user gets an
// error that they cannot resume.
//
// Source: Ascend/MindSpeed-MM examples/**/*.sh, mindspeed_mm/arguments.py (a parser on top of
// Megatron-LM's).
#include <fmt/format.h>

#include <array>

#include "common/engine/megatron/megatron.h"
#include "common/engine/mindspeed_mm/mindspeed_mm.h"
#include "common/engine/model/arguments.h"
#include "common/engine/model/rows.h"
#include "common/engine/torch/torch.h"

namespace muster::engine {
namespace {

bool has_mindspeed_mm_arguments(std::span<const std::string> args) {
  return has_option(args, "--mm-model") || has_option(args, "--mm-data");
}

}  // namespace

LaunchSigns mindspeed_mm_signs() {
  return {.launchers = torch_signs().launchers, .by_arguments = has_mindspeed_mm_arguments};
}

void launch_mindspeed_mm(Launching& launching) {
  launch_on_megatron(launching, "engine mindspeed-mm");
}

void check_mindspeed_mm(const v1::JobSpec& spec, Problems& problems) {
  check_megatron(spec, problems);
  const CommandLine command = spec_words(spec);
  for (const std::string_view name :
       std::array<std::string_view, 3>{"--mm-data", "--mm-model", "--mm-tool"})
    if (const auto option = find_option(command, name); option && !option->has_value)
      problems.push_back({.key = command[option->word].key,
                          .message = fmt::format("{} has no file behind it", name)});
}

}  // namespace muster::engine
