// Gives each rank what DeepSpeed's launcher gives it, without the launcher: no hostfile is read,
// and no node is reached by ssh. In addition to torchrun's variables this file sets:
//
//   LOCAL_SIZE       number of the node's ranks
//   CROSS_RANK       number of the node
//   CROSS_SIZE       number of the nodes
//   --local_rank=N   first argument of launch.script. A command in launch.run gets nothing, as with
//                    the launcher's --no_local_rank
//
// Source: deepspeedai/DeepSpeed deepspeed/launcher/launch.py, deepspeed/launcher/runner.py,
// deepspeed/constants.py, v0.9 to v0.19.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "common/engine/deepspeed/deepspeed.h"
#include "common/engine/model/arguments.h"
#include "common/engine/torch/torch.h"

namespace muster::engine {
namespace {

constexpr const char* kSource = "engine deepspeed";
constexpr const char* kLocalSize = "LOCAL_SIZE";
constexpr const char* kCrossRank = "CROSS_RANK";
constexpr const char* kCrossSize = "CROSS_SIZE";
constexpr std::array<std::string_view, 2> kPrograms = {"deepspeed", "ds"};
constexpr std::array<std::string_view, 2> kModules = {"deepspeed.launcher.runner",
                                                      "deepspeed.launcher.launch"};

// A script that is given the argument already would get it twice.
void put_local_rank(CommandLine& command) {
  if (has_option(command, "--local_rank") || has_option(command, "--local-rank")) return;
  const auto script = std::ranges::find(command, "launch.script", &Word::key);
  if (script != command.end())
    command.insert(script + 1, {.text = "--local_rank=${local_rank}", .key = kSource});
}

void check_no_deepspeed_inside(const v1::JobSpec& spec, Problems& problems) {
  const v1::LaunchSpec& launch = spec.launch();
  if (launch.per() != v1::LAUNCH_PER_RANK || launch.run().empty()) return;
  const auto any = [](const auto& names, std::string_view name) {
    return std::ranges::find(names, name) != names.end();
  };
  const std::string_view program = launch.run(0);
  // npos + 1 is 0
  int at = any(kPrograms, program.substr(program.rfind('/') + 1)) ? 0 : -1;
  for (int i = 1; i + 1 < launch.run_size() && at < 0 && launch.run(i).starts_with('-'); ++i)
    if (launch.run(i) == "-m" && any(kModules, launch.run(i + 1))) at = i + 1;
  if (at < 0) return;
  problems.push_back(
      {.key = fmt::format("launch.run[{}]", at),
       .message = fmt::format("'{}' starts ranks itself, and launch.per: rank would start it once "
                              "a device; leave it out with its options and its hostfile: muster "
                              "sets what it sets",
                              launch.run(at))});
}

// The number of ranks decides when a checkpoint is complete, and muster does not know how many
// ranks the one process starts.
void check_not_once(const v1::JobSpec& spec, Problems& problems) {
  if (spec.launch().per() != v1::LAUNCH_PER_ONCE) return;
  problems.push_back(
      {.key = "launch.per",
       .message = "once starts one process, and a checkpoint of DeepSpeed is complete with the "
                  "files of all ranks, whose number is not known here; write launch.per: rank, or "
                  "engine: command, which does not use such checkpoints"});
}

}  // namespace

std::span<const std::string_view> deepspeed_identity() {
  static const std::vector<std::string_view> names = [] {
    const auto torch = torch_identity();
    std::vector<std::string_view> all(torch.begin(), torch.end());
    all.insert(all.end(), {kLocalSize, kCrossRank, kCrossSize});
    return all;
  }();
  return names;
}

void launch_deepspeed(Launching& launching) {
  put_torchrun(launching, kSource);
  for (RankPlan& rank : launching.plan.ranks) {
    put(rank.env, kLocalSize, rank.env["LOCAL_WORLD_SIZE"].text, kSource);
    put(rank.env, kCrossRank, rank.env["GROUP_RANK"].text, kSource);
    put(rank.env, kCrossSize, rank.env["GROUP_WORLD_SIZE"].text, kSource);
  }
  put_local_rank(launching.command);
}

void check_deepspeed(const v1::JobSpec& spec, Problems& problems) {
  check_no_deepspeed_inside(spec, problems);
  check_not_once(spec, problems);
  check_torch(spec, problems);
}

}  // namespace muster::engine
