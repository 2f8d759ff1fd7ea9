// Sets the variables that torchrun sets for a worker, without torchrun, with the values of static
// rendezvous.
//
// Source: PyTorch 1.13, torch/distributed/run.py and elastic/agent/server/local_elastic_agent.py.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "common/engine/model/host_network.h"
#include "common/engine/model/rows.h"
#include "common/engine/torch/torch.h"

namespace muster::engine {
namespace {

constexpr const char* kSource = "engine torch";

constexpr std::array<std::string_view, 16> kIdentity = {
    "RANK",
    "LOCAL_RANK",
    "WORLD_SIZE",
    "LOCAL_WORLD_SIZE",
    "GROUP_RANK",
    "GROUP_WORLD_SIZE",
    "ROLE_NAME",
    "ROLE_RANK",
    "ROLE_WORLD_SIZE",
    "MASTER_ADDR",
    "MASTER_PORT",
    "TORCHELASTIC_RESTART_COUNT",
    "TORCHELASTIC_MAX_RESTARTS",
    "TORCHELASTIC_RUN_ID",
    "TORCHELASTIC_USE_AGENT_STORE",
    "TORCH_NPU_ELASTIC_USE_AGENT_STORE",
};

constexpr std::array<std::string_view, 2> kLaunchers = {"torchrun", "torch.distributed.launch"};

}  // namespace

std::span<const std::string_view> torch_identity() { return kIdentity; }
LaunchSigns torch_signs() { return {.launchers = kLaunchers}; }

void put_torchrun(Launching& launching, const char* source) {
  const LaunchRequest& request = launching.request;
  const std::string world = std::to_string(request.world_size());
  const std::string groups = std::to_string(std::ranges::count_if(
      request.nodes, [](const PlacedNode& node) { return node.rank_count > 0; }));
  const std::string port = std::to_string(request.master_port);
  const std::string restarts = std::to_string(request.attempt > 0 ? request.attempt - 1 : 0);
  const std::string restarts_max = std::to_string(request.spec->recovery().max_restarts());
  for (RankPlan& rank : launching.plan.ranks) {
    Environment& env = rank.env;
    const PlacedNode& node = request.nodes[rank.node];
    const std::string number = std::to_string(rank.rank);
    put(env, "RANK", number, source);
    put(env, "LOCAL_RANK", std::to_string(rank.local_rank), source);
    put(env, "WORLD_SIZE", world, source);
    put(env, "LOCAL_WORLD_SIZE", std::to_string(node.rank_count), source);
    put(env, "GROUP_RANK", std::to_string(rank.node), source);
    put(env, "GROUP_WORLD_SIZE", groups, source);
    put(env, "ROLE_NAME", "default", source);
    put(env, "ROLE_RANK", number, source);
    put(env, "ROLE_WORLD_SIZE", world, source);
    put(env, "MASTER_ADDR", request.nodes.front().address, source);
    put(env, "MASTER_PORT", port, source);
    put(env, "TORCHELASTIC_RESTART_COUNT", restarts, source);
    put(env, "TORCHELASTIC_MAX_RESTARTS", restarts_max, source);
    put(env, "TORCHELASTIC_RUN_ID", request.job_id, source);
    // Never "True": no agent hosts a store, so rank 0 must start it. With "True" every rank would
    // wait as a client for ever.
    put(env, "TORCHELASTIC_USE_AGENT_STORE", "False", source);
    if (is_ascend(device_type(request, node)))
      put(env, "TORCH_NPU_ELASTIC_USE_AGENT_STORE", "False", source);
    // Both names are set, for old and new releases. Neither is set if the spec sets one: the other
    // name's value would override it.
    if (!env.contains("TORCH_NCCL_ASYNC_ERROR_HANDLING") &&
        !env.contains("NCCL_ASYNC_ERROR_HANDLING")) {
      put(env, "TORCH_NCCL_ASYNC_ERROR_HANDLING", "1", source);
      put(env, "NCCL_ASYNC_ERROR_HANDLING", "1", source);
    }
    if (node.rank_count > 1) put_default(env, "OMP_NUM_THREADS", "1", source);
    put_host_network(request, rank, source);
    put_hccl_port(request, rank, source);
  }
}

void launch_torch(Launching& launching) { put_torchrun(launching, kSource); }

void check_no_launcher_inside(const v1::JobSpec& spec, Problems& problems) {
  const v1::LaunchSpec& launch = spec.launch();
  if (launch.per() != v1::LAUNCH_PER_RANK || launch.run().empty()) return;
  // npos + 1 is 0
  const auto name = [](std::string_view word) { return word.substr(word.rfind('/') + 1); };
  int at = name(launch.run(0)) == "torchrun" || name(launch.run(0)) == "msrun" ? 0 : -1;
  for (int i = 1; i + 1 < launch.run_size() && at < 0 && launch.run(i).starts_with('-'); ++i)
    if (launch.run(i) == "-m" && (launch.run(i + 1) == "torch.distributed.run" ||
                                  launch.run(i + 1) == "torch.distributed.launch"))
      at = i + 1;
  if (at < 0) return;
  problems.push_back(
      {.key = fmt::format("launch.run[{}]", at),
       .message = fmt::format("'{}' starts ranks itself, and launch.per: rank would start it once "
                              "a device; leave it out with its options: muster sets what it sets",
                              launch.run(at))});
}

void check_torch(const v1::JobSpec& spec, Problems& problems) {
  check_no_launcher_inside(spec, problems);
  check_ascending(spec, problems);
  check_hccl_variables(spec, problems);
}

}  // namespace muster::engine
