// What shows that a launch without muster is a launch of an engine, and what the draft of its spec
// contains. `muster import` and `muster run -- LAUNCHER` use it (client/import). Plain values.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace muster::engine {

struct LaunchSigns {
  // the launchers that start its ranks, by launcher::name_of(); empty: no launch shows this engine
  std::span<const std::string_view> launchers = {};
  // Whether a program that they start has this engine's arguments. Of several engines, the last row
  // counts. Null: any program, unless another engine with the same launcher has its arguments.
  bool (*by_arguments)(std::span<const std::string> args) = nullptr;
  // Variables of a rank that a script starts itself. One of them is enough; the first row counts.
  std::span<const std::string_view> rank_variables = {};
  // Options of Engine::script that become launch.config and launch.mode. A relative configuration
  // is below the script's directory. Empty: there is no such option.
  std::string_view config_option = {};
  std::string_view mode_option = {};
  // Without launch.cwd each rank has a directory of its own. So a draft names the directory that
  // the ranks share.
  bool rank_cwd = false;
};

}  // namespace muster::engine
