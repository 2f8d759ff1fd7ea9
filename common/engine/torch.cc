// torchrun's contract for a worker, kept without torchrun: the same variables, with static rendezvous' values.
#include <algorithm>
#include <array>

#include "common/engine/rows.h"

namespace muster::engine {
namespace {

constexpr const char* kSource = "engine torch";

constexpr std::array<std::string_view, 15> kIdentity = {
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
};

}  // namespace

std::span<const std::string_view> torch_identity() { return kIdentity; }

void launch_torch(const LaunchRequest& request, LaunchPlan& plan) {
  const std::string world = std::to_string(request.world_size());
  const std::string groups = std::to_string(std::ranges::count_if(request.nodes, [](const NodeSlot& node) { return node.rank_count > 0; }));
  const std::string port = std::to_string(request.master_port);
  const std::string restarts = std::to_string(request.attempt > 0 ? request.attempt - 1 : 0);
  const std::string restarts_max = std::to_string(request.spec->recovery().max_restarts());
  for (RankPlan& rank : plan.ranks) {
    Environment& env = rank.env;
    const NodeSlot& node = request.nodes[rank.node];
    const std::string number = std::to_string(rank.rank);
    put(env, "RANK", number, kSource);
    put(env, "LOCAL_RANK", std::to_string(rank.local_rank), kSource);
    put(env, "WORLD_SIZE", world, kSource);
    put(env, "LOCAL_WORLD_SIZE", std::to_string(node.rank_count), kSource);
    put(env, "GROUP_RANK", std::to_string(rank.node), kSource);
    put(env, "GROUP_WORLD_SIZE", groups, kSource);
    put(env, "ROLE_NAME", "default", kSource);
    put(env, "ROLE_RANK", number, kSource);
    put(env, "ROLE_WORLD_SIZE", world, kSource);
    put(env, "MASTER_ADDR", request.nodes.front().address, kSource);
    put(env, "MASTER_PORT", port, kSource);
    put(env, "TORCHELASTIC_RESTART_COUNT", restarts, kSource);
    put(env, "TORCHELASTIC_MAX_RESTARTS", restarts_max, kSource);
    put(env, "TORCHELASTIC_RUN_ID", request.job_id, kSource);
    // Never "True": there is no agent that hosts a store, so rank 0 must start it; with "True" every rank waits as a client for ever.
    put(env, "TORCHELASTIC_USE_AGENT_STORE", "False", kSource);
    // Both names, for old and new releases; not beside one that the spec sets, whose value the other would overrule.
    if (!env.contains("TORCH_NCCL_ASYNC_ERROR_HANDLING") && !env.contains("NCCL_ASYNC_ERROR_HANDLING")) {
      put(env, "TORCH_NCCL_ASYNC_ERROR_HANDLING", "1", kSource);
      put(env, "NCCL_ASYNC_ERROR_HANDLING", "1", kSource);
    }
    if (node.rank_count > 1) put_default(env, "OMP_NUM_THREADS", "1", kSource);
  }
}

}  // namespace muster::engine
