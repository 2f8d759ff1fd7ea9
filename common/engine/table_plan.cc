#include "common/engine/table_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "common/engine/ranktable/check_table.h"
#include "common/engine/ranktable/rank_table.h"
#include "common/engine/ranktable/words.h"

namespace muster::engine {
namespace {

constexpr std::size_t kPathBytesMax = 4095;  // PATH_MAX of the kernel, without its end
constexpr std::size_t kNamed = 3;            // cards named in one message
constexpr const char* kKey = "launch.launcher";

// npu-smi's names. Those with a digit behind "910B" are the later chip; "910B" itself is one of the first.
std::optional<ranktable::Chip> chip_of(std::string_view model) {
  if (model.starts_with("Ascend")) model.remove_prefix(6);
  if (model.starts_with("910_93")) return ranktable::Chip::A910_93;
  if (model.starts_with("910B") && model.size() > 4 && model[4] >= '1' && model[4] <= '9') return ranktable::Chip::A910B;
  if (model == "910A" || model == "910B" || model == "910ProA" || model == "910ProB" || model == "910PremiumA") return ranktable::Chip::A910;
  return std::nullopt;
}

// That of all nodes; nothing where they differ or one is not known.
std::optional<ranktable::Chip> chip_of(const LaunchRequest& request) {
  std::optional<ranktable::Chip> chip;
  for (const NodeSlot& node : request.nodes) {
    if (node.rank_count == 0) continue;
    const auto here = chip_of(node.device_model);
    if (!here || (chip && *chip != *here)) return std::nullopt;
    chip = here;
  }
  return chip;
}

std::size_t servers(const LaunchRequest& request) {
  return static_cast<std::size_t>(std::ranges::count_if(request.nodes, [](const NodeSlot& node) { return node.rank_count > 0; }));
}

const std::string& server_id(const NodeSlot& node) { return node.server_id.empty() ? node.address : node.server_id; }

std::string at(const std::vector<std::string>& texts, std::size_t index) { return index < texts.size() ? texts[index] : std::string(); }

// In the order of ranks, which nodes are in already.
ranktable::RankTable table_of(const LaunchRequest& request) {
  ranktable::RankTable table;
  std::uint32_t made_up = 0;
  for (std::size_t i = 0; i < request.nodes.size(); ++i) {
    const NodeSlot& node = request.nodes[i];
    if (node.rank_count == 0) continue;
    ranktable::Server server{.server_id = server_id(node), .super_pod_id = node.super_pod_id, .host_nic_ip = std::string(ranktable::kReserved)};
    if (request.imagined) server.server_id = fmt::format("{}-{}", i, std::string(45, 'a'));
    for (std::uint32_t local = 0; local < node.rank_count; ++local) {
      ranktable::Device device{.device_id = local < node.devices.size() ? node.devices[local] : local,
                               .device_ip = at(node.device_ips, local),
                               .super_device_id = at(node.super_device_ids, local)};
      if (request.imagined && device.device_ip.empty())
        device.device_ip = fmt::format("100.{}.{}.{}", made_up / 65536 % 256, made_up / 256 % 256, made_up % 256);
      ++made_up;
      server.devices.push_back(std::move(device));
    }
    table.servers.push_back(std::move(server));
  }
  const bool pods = std::ranges::any_of(table.servers, [](const ranktable::Server& server) { return !server.super_pod_id.empty(); });
  table.version = pods ? ranktable::Version::SuperPods : ranktable::Version::Servers;
  if (!pods)  // not written, and not to be judged: a card may know its own without its server being in a pod
    for (ranktable::Server& server : table.servers)
      for (ranktable::Device& device : server.devices) device.super_device_id.clear();
  ranktable::number_ranks(table);
  return table;
}

// Said here and not by the table's own check: it knows places in a file, people know nodes and cards.
bool addresses_are_known(const LaunchRequest& request, const ranktable::RankTable& table, Problems& problems) {
  const bool one_pod = table.version == ranktable::Version::SuperPods && super_pods(table).size() == 1;
  if (table.servers.size() < 2 || one_pod) return true;
  std::vector<std::string> named;
  std::size_t missing = 0;
  std::uint32_t first = 0;
  for (const NodeSlot& node : request.nodes) {
    for (std::uint32_t local = 0; local < node.rank_count; ++local) {
      if (!at(node.device_ips, local).empty()) continue;
      const std::uint32_t device = local < node.devices.size() ? node.devices[local] : local;
      if (missing++ == 0) first = device;
      if (named.size() < kNamed) named.push_back(fmt::format("device {} of node '{}'", device, node.name));
    }
  }
  if (missing == 0) return true;
  problems.push_back(
      {.key = kKey,
       .message = fmt::format("a rank table over {} nodes needs the address of every card's network port, and {}{} {} none: see that `hccn_tool -i {} -ip -g` "
                              "answers there or that the agent can read /etc/hccn.conf, or use launch.launcher: msrun, which needs no addresses",
                              table.servers.size(), fmt::join(named, ", "), missing > named.size() ? fmt::format(" and {} more", missing - named.size()) : "",
                              missing == 1 ? "has" : "have", first)});
  return false;
}

std::shared_ptr<const ranktable::TableFile> make(const LaunchRequest& request, Problems& problems) {
  if (request.world_size() > ranktable::kRanksMax) {
    problems.push_back(
        {.key = kKey,
         .message = fmt::format("{} ranks, and a rank table has at most {}; use launch.launcher: msrun", request.world_size(), ranktable::kRanksMax)});
    return nullptr;
  }
  const ranktable::RankTable table = table_of(request);
  if (!request.imagined) {
    if (!addresses_are_known(request, table, problems)) return nullptr;
    if (const auto found = ranktable::check(table, chip_of(request)); !found.problems.empty()) {
      problems.push_back(
          {.key = kKey, .message = fmt::format("HCCL would refuse the rank table of this placement: {}", to_text(found.problems, found.left_out))});
      return nullptr;
    }
  }
  auto file = std::make_shared<ranktable::TableFile>();
  file->bytes = ranktable::table_text(table);
  file->hash = ranktable::content_hash(file->bytes);
  return file;
}

}  // namespace

bool has_rank_table(const LaunchRequest& request) {
  return request.spec->engine() == "mindformers" && request.spec->launch().launcher() != v1::LAUNCHER_MSRUN && request.world_size() > 1;
}

std::string rank_table_name(const LaunchRequest& request) {
  if (!has_rank_table(request)) return {};
  return fmt::format("hccl_{}s_{}p.json", servers(request), request.world_size());
}

std::string rank_table_path(const LaunchRequest& request, std::size_t node, std::string_view name) {
  return fmt::format("{}/ranktables/attempt-{}/node-{}/{}", request.out_dir, request.attempt, node, name);
}

void plan_rank_table(Launching& launching) {
  const LaunchRequest& request = launching.request;
  LaunchPlan& plan = launching.plan;
  plan.table = request.table != nullptr ? request.table : make(request, launching.problems);
  if (plan.table == nullptr) return;
  const std::shared_ptr<const std::string> bytes(plan.table, &plan.table->bytes);
  const std::string name = rank_table_name(request);
  std::set<std::size_t> nodes;
  for (const RankPlan& rank : plan.ranks) nodes.insert(rank.node);
  for (const std::size_t node : nodes) {
    std::string path = rank_table_path(request, node, name);
    std::string wrong = ranktable::path_problem(path);
    if (path.size() > kPathBytesMax) wrong = fmt::format("it has {} bytes, at most {}", path.size(), kPathBytesMax);
    if (!wrong.empty()) {
      launching.problems.push_back({.key = "output_dir", .message = fmt::format("the rank table would be '{}': {}; choose another output_dir", path, wrong)});
      return;
    }
    plan.files.push_back({.node = node, .path = std::move(path), .content = bytes, .sha256 = plan.table->hash});
  }
}

}  // namespace muster::engine
