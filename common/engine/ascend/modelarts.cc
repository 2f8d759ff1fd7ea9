#include "common/engine/ascend/modelarts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <set>

#include "common/digest/sha256.h"
#include "common/engine/ascend/table_plan.h"
#include "common/engine/ranktable/check_table.h"
#include "common/engine/ranktable/group_text.h"
#include "common/engine/ranktable/read_table.h"

namespace muster::engine {
namespace {

constexpr const char* kCompat = "compat";  // key of the spec, and source of the values that it sets
constexpr const char* kTableVariable = "RANK_TABLE_FILE";
constexpr const char* kCloudTable = "modelarts/jobstart_hccl.json";
// each node's part of the plan makes the whole list again
constexpr std::size_t kGroupRanksMax = 4096;
constexpr std::array<std::string_view, 3> kTaskVariables = {"VC_WORKER_NUM", "VC_TASK_INDEX",
                                                            "VC_WORKER_HOSTS"};

std::string directory_of(const std::string& path) {
  const std::size_t end = path.find_last_not_of('/');
  const std::size_t slash = end == std::string::npos ? 0 : path.rfind('/', end);
  return slash == 0 || slash == std::string::npos ? "/" : path.substr(0, slash);
}

std::string platform_job(const LaunchRequest& request) { return "ma-job-" + request.job_id; }

std::string home_of(const LaunchRequest& request, std::size_t node) {
  return fmt::format("{}/modelarts/node-{}", work_dir(request.out_dir, request.attempt), node);
}

std::size_t cards_of_node(const LaunchRequest& request, const PlacedNode& node) {
  if (!node.devices.empty() || !request.imagined) return node.devices.size();
  const v1::ResourceSpec& wanted = request.spec->resources();
  return wanted.device_ids().empty() ? wanted.devices()
                                     : static_cast<std::size_t>(wanted.device_ids_size());
}

void report_no_list(Launching& launching, const std::string& why) {
  launching.problems.push_back(
      {.key = kCompat,
       .message = fmt::format("the rank table in the platform's form (RANK_TABLE_FILE) cannot be "
                              "made: {}; set RANK_TABLE_FILE in runtime.env, be it to nothing, and "
                              "none is made",
                              why)});
}

// The table of the placement, with one rank for each device, regardless of who starts the ranks.
std::optional<ranktable::RankTable> cloud_table(Launching& launching) {
  const LaunchRequest& request = launching.request;
  ranktable::RankTable table;
  std::uint32_t made_up = 0;
  for (std::size_t i = 0; i < request.nodes.size(); ++i) {
    const PlacedNode& node = request.nodes[i];
    if (node.rank_count == 0) continue;
    ranktable::Server server{.server_id = node.server_id.empty() ? node.address : node.server_id};
    if (request.imagined) server.server_id = fmt::format("{}-{}", i, std::string(45, 'a'));
    for (std::size_t local = 0; local < cards_of_node(request, node); ++local) {
      ranktable::Device& device = server.devices.emplace_back();
      device.device_id =
          static_cast<std::uint32_t>(request.imagined ? local % (ranktable::kGroupDeviceMost + 1)
                                     : local < node.physical_ids.size() ? node.physical_ids[local]
                                                                        : node.devices[local]);
      if (local < node.device_ips.size()) device.device_ip = node.device_ips[local];
      if (request.imagined)
        device.device_ip =
            fmt::format("100.{}.{}.{}", made_up / 65536 % 256, made_up / 256 % 256, made_up % 256);
      ++made_up;
    }
    table.servers.push_back(std::move(server));
  }
  ranktable::number_ranks(table);
  if (request.imagined) return table;
  if (const auto found = ranktable::check(table, std::nullopt); !found.problems.empty()) {
    report_no_list(launching,
                   fmt::format("HCCL would refuse it: {}{}{}", found.problems.front().where,
                               found.problems.front().where.empty() ? "" : ": ",
                               found.problems.front().message));
    return std::nullopt;
  }
  return table;
}

std::optional<ranktable::RankTable> table_to_list(Launching& launching) {
  const v1::ResourceSpec& resources = launching.request.spec->resources();
  if (!resources.has_rank_table()) return cloud_table(launching);
  auto own = ranktable::load_table(resources.rank_table().content());
  if (own) return *std::move(own);
  report_no_list(launching, own.error().message);
  return std::nullopt;
}

// Devices of another vendor have no such table.
bool on_ascend(const LaunchRequest& request) {
  return std::ranges::all_of(request.nodes, [&](const PlacedNode& node) {
    return node.rank_count == 0 || request.imagined || is_ascend(device_type(request, node));
  });
}

void put_group_list(Launching& launching) {
  const LaunchRequest& request = launching.request;
  std::set<std::size_t> nodes;
  for (const RankPlan& rank : launching.plan.ranks)
    if (!rank.env.contains(kTableVariable)) nodes.insert(rank.node);
  if (nodes.empty()) return;
  const auto table = table_to_list(launching);
  if (!table) return;
  if (table->rank_count() > kGroupRanksMax)
    return report_no_list(launching, fmt::format("it would have {} ranks, at most {}",
                                                 table->rank_count(), kGroupRanksMax));
  auto text = ranktable::group_list_text(*table, platform_job(request) + "-worker");
  if (!text) return report_no_list(launching, text.error().message);
  const auto bytes = std::make_shared<const std::string>(*std::move(text));
  const std::string hash = sha256_hex(*bytes);
  for (const std::size_t node : nodes)
    launching.plan.files.push_back({.node = node,
                                    .path = rank_table_path(request, node, kCloudTable),
                                    .content = bytes,
                                    .sha256 = hash,
                                    .source = kCompat});
  for (RankPlan& rank : launching.plan.ranks)
    put_default(rank.env, kTableVariable,
                directory_of(rank_table_path(request, rank.node, kCloudTable)), kCompat);
}

}  // namespace

bool is_modelarts(const v1::JobSpec& spec) { return spec.compat() == "modelarts"; }

bool is_modelarts_variable(std::string_view name) {
  return name.starts_with("MA_") || std::ranges::find(kTaskVariables, name) != kTaskVariables.end();
}

bool gives_group_list(const v1::JobSpec& spec) {
  const std::string& type = spec.resources().type();
  const Engine* engine = find_engine(spec.engine());
  return is_modelarts(spec) && engine != nullptr && engine->any_program &&
         (type.empty() || type == "auto" || is_ascend(type));
}

void put_modelarts(Launching& launching, const Engine& engine) {
  const LaunchRequest& request = launching.request;
  if (!is_modelarts(*request.spec)) return;
  std::string hosts;
  for (const PlacedNode& node : request.nodes)
    hosts +=
        fmt::format("{}{}", hosts.empty() ? "" : ",",
                    request.imagined && node.address.empty() ? std::string(45, '1') : node.address);
  if (hosts.size() + sizeof "VC_WORKER_HOSTS=" > kStringBytesMax) {
    launching.problems.push_back(
        {.key = kCompat,
         .message = fmt::format("VC_WORKER_HOSTS of {} nodes has {} bytes, more than a variable "
                                "may have ({}); ask for fewer nodes, or leave compat out",
                                request.nodes.size(), hosts.size(), kStringBytesMax)});
    return;
  }
  const std::string nodes = std::to_string(request.nodes.size()), job = platform_job(request);
  const auto outside = [&](std::string_view name) {
    return std::ranges::find(engine.cloud, name) == engine.cloud.end();
  };
  for (RankPlan& rank : launching.plan.ranks) {
    const PlacedNode& node = request.nodes[rank.node];
    const std::string number = std::to_string(rank.node), home = home_of(request, rank.node);
    Environment& env = rank.env;
    for (const char* name : {"VC_WORKER_NUM", "MA_NUM_HOSTS"}) put(env, name, nodes, kCompat);
    put(env, "VC_TASK_INDEX", number, kCompat);
    put(env, "VC_WORKER_HOSTS", hosts, kCompat);
    put(env, "MA_NUM_GPUS", std::to_string(node.devices.size()), kCompat);
    for (const char* name : {"MA_CURRENT_IP", "MA_CURRENT_HOST_IP"})
      put(env, name, node.address, kCompat);
    put(env, "MA_VJ_NAME", job, kCompat);
    put(env, "MA_TASK_NAME", "worker", kCompat);
    put(env, "MA_CURRENT_INSTANCE_NAME", fmt::format("{}-worker-{}", job, number), kCompat);
    put(env, "MA_HOME", home, kCompat);
    put(env, "MA_MOUNT_PATH", home + "/modelarts", kCompat);
    if (outside("MA_JOB_DIR"))
      put(env, "MA_JOB_DIR", directory_of(code_dir(*request.spec, request.out_dir, rank.node)),
          kCompat);
    if (outside("MA_LOG_DIR")) put(env, "MA_LOG_DIR", home + "/modelarts/log", kCompat);
  }
  if (gives_group_list(*request.spec) && on_ascend(request)) put_group_list(launching);
}

std::vector<std::string> modelarts_dirs(const LaunchRequest& request, std::size_t node) {
  if (!is_modelarts(*request.spec)) return {};
  return {home_of(request, node) + "/modelarts/log"};
}

}  // namespace muster::engine
