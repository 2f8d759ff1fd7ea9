// launch.per: node: muster starts one script on each node, and not the ranks of an engine. This
// file sets two groups of variables. Launch scripts read the first ones. muster's own torchrun and
// msrun (worker/shim; docs/launcher-shim.md) read the MUSTER_SHIM_* ones when the script calls
// them:
//
//   NNODES NODE_RANK MASTER_ADDR MASTER_PORT NPROC_PER_NODE GPUS_PER_NODE NPUS_PER_NODE
//                             for scripts of PyTorch's and MindSpeed's tutorials
//   PET_*                     the defaults of a real torchrun's options
//                             (torch/distributed/argparse_util.py)
//   PYTHON_EXEC               runtime.python if it is an absolute path: the python that torchrun
//                             runs
//   MUSTER_SHIM_WORLD_SIZE    ranks of the training over all nodes
//   MUSTER_SHIM_FIRST_RANK    the first rank of this node
//   MUSTER_SHIM_LOGS          directory of the ranks' logs
//   MUSTER_SHIM_GRACE_MS      time between SIGTERM and SIGKILL, after one rank has failed
//   MUSTER_SHIM_RESTARTS, MUSTER_SHIM_MAX_RESTARTS    for TORCHELASTIC_*
//   MUSTER_SHIM_EDITS         ArgumentEdits as one line of JSON; empty: none
//   MUSTER_SHIM_SAVED         LaunchRequest::saved, one on each line: directory, job, step and
//                             checkpoint, separated by tabs
//   MUSTER_SHIM_LINKS         directory in which the shim makes links to such checkpoints
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "common/engine/model/host_network.h"
#include "common/engine/model/rows.h"
#include "common/engine/model/start.h"
#include "common/engine/model/training_end.h"
#include "common/proto/proto_time.h"

namespace muster::engine {
namespace {

constexpr const char* kNodeSource = "launch.per: node";
constexpr const char* kInsideSource = "launcher in the script";
constexpr std::size_t kSavedBytesMax = 32 << 10;

bool has_tab(std::string_view text) { return text.find_first_of("\t\n") != std::string_view::npos; }

bool is_script(const v1::JobSpec& spec) { return spec.launch().per() == v1::LAUNCH_PER_NODE; }

void put_for_shim(const LaunchRequest& request, RankPlan& rank, const std::string& edits,
                  std::size_t first) {
  const auto grace = std::chrono::duration_cast<std::chrono::milliseconds>(
      to_duration(request.spec->recovery().stop_grace()));
  put(rank.env, "MUSTER_SHIM_WORLD_SIZE", std::to_string(training_world(request)), "muster");
  put(rank.env, "MUSTER_SHIM_FIRST_RANK", std::to_string(first), "muster");
  put(rank.env, "MUSTER_SHIM_LOGS", rank_log_dir(request.out_dir, request.attempt), "muster");
  put(rank.env, "MUSTER_SHIM_GRACE_MS", std::to_string(grace.count()), "muster");
  put(rank.env, "MUSTER_SHIM_RESTARTS",
      std::to_string(request.attempt > 0 ? request.attempt - 1 : 0), "muster");
  put(rank.env, "MUSTER_SHIM_MAX_RESTARTS", std::to_string(request.spec->recovery().max_restarts()),
      "muster");
  put(rank.env, "MUSTER_SHIM_EDITS", edits, "muster");
  std::string saved;
  for (const SavedBefore& one : request.saved) {
    if (has_tab(one.named_dir) || has_tab(one.path) || saved.size() > kSavedBytesMax) continue;
    saved += fmt::format("{}\t{}\t{}\t{}\n", one.named_dir, one.job.str(), one.step, one.path);
  }
  if (saved.empty()) return;
  put(rank.env, "MUSTER_SHIM_SAVED", std::move(saved), "muster");
  put(rank.env, "MUSTER_SHIM_LINKS",
      fmt::format("{}/resume/attempt-{}.earlier", request.out_dir, request.attempt), "muster");
}

}  // namespace

std::uint32_t ranks_on_node(const v1::JobSpec& spec, std::size_t node, std::size_t devices) {
  if (spec.launch().per() == v1::LAUNCH_PER_ONCE) return node == 0 ? 1 : 0;
  return is_script(spec) ? 1 : static_cast<std::uint32_t>(devices);
}

std::size_t training_world(const LaunchRequest& request) {
  if (!is_script(*request.spec)) return request.world_size();
  std::size_t ranks = 0;
  for (const PlacedNode& node : request.nodes)
    ranks += std::max<std::size_t>(1, node.devices.size());
  return ranks;
}

std::optional<TrainingPlace> training_place(const LaunchRequest& request, std::uint32_t number) {
  if (!is_script(*request.spec)) return std::nullopt;
  for (std::size_t node = 0; node < request.nodes.size(); ++node) {
    const auto here =
        static_cast<std::uint32_t>(std::max<std::size_t>(1, request.nodes[node].devices.size()));
    if (number < here) return TrainingPlace{.node = node, .local_rank = number};
    number -= here;
  }
  return std::nullopt;
}

// Sets the same values as worker/shim/place.cc.
RankPlan training_rank(const LaunchRequest& request, const RankPlan& script, std::uint32_t number,
                       TrainingPlace place) {
  RankPlan rank = script;
  rank.local_rank = place.local_rank;
  std::erase_if(rank.env,
                [](const auto& variable) { return variable.first.starts_with("MUSTER_SHIM_"); });
  const PlacedNode& node = request.nodes[place.node];
  const std::string own = std::to_string(number), local = std::to_string(place.local_rank),
                    world = std::to_string(training_world(request));
  const std::string here = std::to_string(std::max<std::size_t>(1, node.devices.size()));
  const auto give = [&rank](const char* name, std::string value) {
    put(rank.env, name, std::move(value), kInsideSource);
  };
  give("MUSTER_RANK", own);
  give("MUSTER_LOCAL_RANK", local);
  give("MUSTER_WORLD_SIZE", world);
  give("MUSTER_LOCAL_WORLD_SIZE", here);
  const std::string address = request.nodes.front().address,
                    port = std::to_string(request.master_port);
  if (request.spec->launch().launcher() == v1::LAUNCHER_MSRUN) {
    for (const auto& [name, value] : {std::pair{"MS_ROLE", std::string("MS_WORKER")},
                                      {"MS_WORKER_NUM", world},
                                      {"MS_SCHED_HOST", address},
                                      {"MS_SCHED_PORT", port},
                                      {"MS_NODE_ID", own},
                                      {"RANK_ID", own},
                                      {"RANK_SIZE", world}})
      give(name, value);
    if (place.local_rank < node.devices.size())
      give("DEVICE_ID", std::to_string(node.devices[place.local_rank]));
    rank.env.erase("ASCEND_RT_VISIBLE_DEVICES");
    return rank;
  }
  for (const auto& [name, value] : {std::pair{"RANK", own},
                                    {"LOCAL_RANK", local},
                                    {"WORLD_SIZE", world},
                                    {"LOCAL_WORLD_SIZE", here},
                                    {"GROUP_RANK", std::to_string(place.node)},
                                    {"GROUP_WORLD_SIZE", std::to_string(request.nodes.size())},
                                    {"ROLE_RANK", own},
                                    {"ROLE_WORLD_SIZE", world},
                                    {"MASTER_ADDR", address},
                                    {"MASTER_PORT", port},
                                    {"TORCHELASTIC_RUN_ID", request.job_id}})
    give(name, value);
  return rank;
}

void launch_node_script(Launching& launching, const Engine& engine) {
  const LaunchRequest& request = launching.request;
  const bool intercept = request.spec->launch().intercept();
  std::string edits;
  if (intercept && engine.intercepted != nullptr) edits = json_of(engine.intercepted(request));
  const std::string nodes = std::to_string(request.nodes.size()),
                    port = std::to_string(request.master_port);
  const std::string& python = request.spec->runtime().python();
  std::vector<std::size_t> first(request.nodes.size(), 0);
  for (std::size_t i = 1; i < first.size(); ++i)
    first[i] = first[i - 1] + std::max<std::size_t>(1, request.nodes[i - 1].devices.size());
  for (RankPlan& rank : launching.plan.ranks) {
    const PlacedNode& node = request.nodes[rank.node];
    const std::string processes = std::to_string(std::max<std::size_t>(1, node.devices.size())),
                      number = std::to_string(rank.node);
    Environment& env = rank.env;
    for (const char* name : {"NNODES", "PET_NNODES"}) put_default(env, name, nodes, kNodeSource);
    for (const char* name : {"NODE_RANK", "PET_NODE_RANK"})
      put_default(env, name, number, kNodeSource);
    for (const char* name : {"MASTER_ADDR", "PET_MASTER_ADDR"})
      put_default(env, name, request.nodes.front().address, kNodeSource);
    for (const char* name : {"MASTER_PORT", "PET_MASTER_PORT"})
      put_default(env, name, port, kNodeSource);
    for (const char* name :
         {"NPROC_PER_NODE", "GPUS_PER_NODE", "NPUS_PER_NODE", "PET_NPROC_PER_NODE"})
      put_default(env, name, processes, kNodeSource);
    if (python.starts_with('/')) put_default(env, "PYTHON_EXEC", python, "runtime.python");
    if (engine.torch_workers) put_host_network(request, rank, kNodeSource);
    if (engine.put_script != nullptr) engine.put_script(request, rank);
    if (engine.hccl) put_hccl_port(request, rank, kNodeSource);
    if (intercept) put_for_shim(request, rank, edits, first[rank.node]);
  }
}

void check_node_script(const v1::JobSpec& spec, Problems& problems) {
  if (!is_script(spec)) return;
  if (starts_by_table(spec))
    problems.push_back({.key = "launch.launcher",
                        .message = "with launch.per: node only msrun is served: the script calls "
                                   "msrun, and muster answers it; write launcher: msrun, or leave "
                                   "launch.per out: muster then makes the rank table and starts "
                                   "every rank itself"});
  if (spec.launch().mode() == v1::LAUNCH_MODE_STRATEGY)
    problems.push_back({.key = "launch.mode",
                        .message =
                            "strategy is for launch.per: rank, where muster gives every rank its "
                            "arguments; a script says --only_save_strategy itself"});
  const std::string line_end = "\n";
  if (spec.output_dir().find(line_end) != std::string::npos ||
      spec.checkpoint().dir().find(line_end) != std::string::npos)
    problems.push_back({.key = "outputs.dir",
                        .message = "has a line feed in it, which cannot be passed to a script a "
                                   "node; choose another directory"});
}

}  // namespace muster::engine
