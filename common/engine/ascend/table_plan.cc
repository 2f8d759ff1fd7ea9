#include "common/engine/ascend/table_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "common/digest/sha256.h"
#include "common/engine/ranktable/check_table.h"
#include "common/engine/ranktable/rank_table.h"
#include "common/engine/ranktable/words.h"

namespace muster::engine {
namespace {

constexpr std::size_t kPathBytesMax = 4095;  // PATH_MAX of the kernel, without the final zero byte
constexpr std::size_t kNamed = 3;            // cards or problems that one message names
constexpr const char* kKey = "launch.launcher";
constexpr const char* kOwnKey = "resources.rank_table";

// The chip of all nodes. Nothing: the nodes differ, or one chip is not known.
std::optional<ranktable::Chip> chip_of_all(const LaunchRequest& request) {
  std::optional<ranktable::Chip> chip;
  for (const PlacedNode& node : request.nodes) {
    if (node.rank_count == 0) continue;
    const auto here = ranktable::chip_of(node.device_model, node.device_type);
    if (!here || (chip && *chip != *here)) return std::nullopt;
    chip = here;
  }
  return chip;
}

std::size_t servers(const LaunchRequest& request) {
  return static_cast<std::size_t>(std::ranges::count_if(
      request.nodes, [](const PlacedNode& node) { return node.rank_count > 0; }));
}

const std::string& server_id(const PlacedNode& node) {
  return node.server_id.empty() ? node.address : node.server_id;
}

// The card's number on its host, which HCCL and hccn_tool use. In a container that sees cards 4-7,
// other programs count from 0.
std::uint32_t physical_id(const PlacedNode& node, std::uint32_t local) {
  if (local < node.physical_ids.size()) return node.physical_ids[local];
  return local < node.devices.size() ? node.devices[local] : local;
}

std::string at(const std::vector<std::string>& texts, std::size_t index) {
  return index < texts.size() ? texts[index] : std::string();
}

// Ranks are numbered in the order of the nodes, which are already in rank order.
ranktable::RankTable table_of(const LaunchRequest& request) {
  ranktable::RankTable table;
  std::uint32_t made_up = 0;
  for (std::size_t i = 0; i < request.nodes.size(); ++i) {
    const PlacedNode& node = request.nodes[i];
    if (node.rank_count == 0) continue;
    ranktable::Server server{.server_id = server_id(node),
                             .super_pod_id = node.super_pod_id,
                             .host_nic_ip = std::string(ranktable::kReserved)};
    if (request.imagined) server.server_id = fmt::format("{}-{}", i, std::string(45, 'a'));
    for (std::uint32_t local = 0; local < node.rank_count; ++local) {
      ranktable::Device device{.device_id = physical_id(node, local),
                               .device_ip = at(node.device_ips, local),
                               .super_device_id = at(node.super_device_ids, local)};
      if (request.imagined && device.device_ip.empty())
        device.device_ip =
            fmt::format("100.{}.{}.{}", made_up / 65536 % 256, made_up / 256 % 256, made_up % 256);
      ++made_up;
      server.devices.push_back(std::move(device));
    }
    table.servers.push_back(std::move(server));
  }
  const bool pods = std::ranges::any_of(
      table.servers, [](const ranktable::Server& server) { return !server.super_pod_id.empty(); });
  table.version = pods ? ranktable::Version::SuperPods : ranktable::Version::Servers;
  // The key is not written, so it must not be judged: a card may know its own although its server
  // is in no super-pod.
  if (!pods)
    for (ranktable::Server& server : table.servers)
      for (ranktable::Device& device : server.devices) device.super_device_id.clear();
  ranktable::number_ranks(table);
  return table;
}

// This check is here and not in the table's own check, which knows positions in a file; people know
// nodes and cards.
bool addresses_are_known(const LaunchRequest& request, const ranktable::RankTable& table,
                         Problems& problems) {
  const bool one_pod =
      table.version == ranktable::Version::SuperPods && super_pods(table).size() == 1;
  if (table.servers.size() < 2 || one_pod) return true;
  std::vector<std::string> named;
  std::size_t missing = 0;
  std::uint32_t first = 0;
  for (const PlacedNode& node : request.nodes) {
    for (std::uint32_t local = 0; local < node.rank_count; ++local) {
      if (!at(node.device_ips, local).empty()) continue;
      const std::uint32_t device = local < node.devices.size() ? node.devices[local] : local;
      if (missing++ == 0) first = physical_id(node, local);
      if (named.size() < kNamed)
        named.push_back(fmt::format("device {} of node '{}'", device, node.node.str()));
    }
  }
  if (missing == 0) return true;
  problems.push_back(
      {.key = kKey,
       .message = fmt::format(
           "a rank table over {} nodes needs the address of every card's network port, and {}{} {} "
           "none: see that `hccn_tool -i {} -ip -g` answers there or that the agent can read "
           "/etc/hccn.conf, or use launch.launcher: msrun, which needs no addresses",
           table.servers.size(), fmt::join(named, ", "),
           missing > named.size() ? fmt::format(" and {} more", missing - named.size()) : "",
           missing == 1 ? "has" : "have", first)});
  return false;
}

// Parses "N]" at `at`, and moves `at` past it. Nothing: the text is something else.
std::optional<std::size_t> take_index(std::string_view text, std::size_t& at) {
  const std::size_t end = text.find(']', at);
  if (end == std::string_view::npos) return std::nullopt;
  const auto number = ranktable::parse_number(text.substr(at, end - at));
  if (number) at = end + 1;
  return number;
}

// The check names positions in a file that no person has seen yet; people know nodes and cards.
// "server_list[1].device[0]" becomes "node 'n2' device 0".
std::string with_names(std::string_view text, const std::vector<const PlacedNode*>& nodes) {
  constexpr std::string_view kServer = "server_list[", kDevice = ".device[";
  std::string out;
  while (!text.empty()) {
    const std::size_t found = std::min(text.find(kServer), text.size());
    out += text.substr(0, found);
    text.remove_prefix(found);
    if (text.empty()) break;
    std::size_t at = kServer.size();
    const auto server = take_index(text, at);
    if (!server || *server >= nodes.size()) {
      out += kServer;
      text.remove_prefix(kServer.size());
      continue;
    }
    const PlacedNode& node = *nodes[*server];
    out += fmt::format("node '{}'", node.node.str());
    text.remove_prefix(at);
    at = kDevice.size();
    if (const auto device = text.starts_with(kDevice) ? take_index(text, at) : std::nullopt) {
      out += fmt::format(" device {}", *device < node.devices.size()
                                           ? node.devices[*device]
                                           : static_cast<std::uint32_t>(*device));
      text.remove_prefix(at);
    }
    if (text.starts_with('.')) {
      out += ", ";
      text.remove_prefix(1);
    }
  }
  return out;
}

// One text with the first few problems.
std::string refusal(const ranktable::Findings& found, const LaunchRequest& request) {
  std::vector<const PlacedNode*> nodes;
  for (const PlacedNode& node : request.nodes)
    if (node.rank_count > 0) nodes.push_back(&node);
  std::string text;
  for (std::size_t i = 0; i < std::min(found.problems.size(), kNamed); ++i) {
    const ranktable::Finding& one = found.problems[i];
    text += fmt::format("{}{}{}{}", i == 0 ? "" : "; ", with_names(one.where, nodes),
                        one.where.empty() ? "" : ": ", with_names(one.message, nodes));
  }
  if (const std::size_t all = found.problems.size() + found.left_out; all > kNamed)
    text += fmt::format("; and {} more", all - kNamed);
  return text;
}

std::shared_ptr<const ranktable::TableFile> file_of(std::string bytes) {
  auto file = std::make_shared<ranktable::TableFile>();
  file->bytes = std::move(bytes);
  file->hash = sha256_hex(file->bytes);
  return file;
}

std::shared_ptr<const ranktable::TableFile> make(const LaunchRequest& request, Problems& problems) {
  // The user's own table is used unchanged: it was judged when it was read, and the placement
  // follows it.
  if (request.spec->resources().has_rank_table())
    return file_of(request.spec->resources().rank_table().content());
  if (request.world_size() > ranktable::kRanksMax) {
    problems.push_back({.key = kKey,
                        .message = fmt::format(
                            "{} ranks, and a rank table has at most {}; use launch.launcher: msrun",
                            request.world_size(), ranktable::kRanksMax)});
    return nullptr;
  }
  const ranktable::RankTable table = table_of(request);
  if (!request.imagined) {
    if (!addresses_are_known(request, table, problems)) return nullptr;
    if (const auto found = ranktable::check(table, chip_of_all(request)); !found.problems.empty()) {
      problems.push_back(
          {.key = kKey,
           .message = fmt::format("HCCL would refuse the rank table of this placement: {}",
                                  refusal(found, request))});
      return nullptr;
    }
  }
  return file_of(ranktable::table_text(table));
}

bool starts_ranks_by_table(const v1::JobSpec& spec) {
  return starts_by_table(spec) && spec.launch().per() != v1::LAUNCH_PER_NODE;
}

}  // namespace

bool makes_rank_table(const v1::JobSpec& spec) {
  return starts_ranks_by_table(spec) && ranks_asked(spec) > 1 && !spec.resources().has_rank_table();
}

bool has_rank_table(const LaunchRequest& request) {
  return starts_ranks_by_table(*request.spec) && request.world_size() > 1;
}

std::string rank_table_name(const LaunchRequest& request) {
  if (!has_rank_table(request) && !request.spec->resources().has_rank_table()) return {};
  return fmt::format("hccl_{}s_{}p.json", servers(request), training_world(request));
}

std::string rank_table_path(const LaunchRequest& request, std::size_t node, std::string_view name) {
  return fmt::format("{}/ranktables/attempt-{}/node-{}/{}", request.out_dir, request.attempt, node,
                     name);
}

Result<std::shared_ptr<const ranktable::TableFile>> plan_table(const LaunchRequest& request) {
  if (rank_table_name(request).empty()) return nullptr;
  Problems problems;
  auto table = make(request, problems);
  if (table != nullptr) return table;
  const KeyedProblem& first = problems.front();
  return fail(ErrorCode::InvalidArgument,
              fmt::format("planning job '{}' attempt {}: {}: {}", request.spec->name(),
                          request.attempt, first.key, first.message));
}

void plan_own_table(Launching& launching) {
  const LaunchRequest& request = launching.request;
  if (!request.spec->resources().has_rank_table()) return;
  if (launching.plan.table == nullptr) plan_rank_table(launching);
  const Engine* engine = find_engine(request.spec->engine());
  if (engine == nullptr || engine->by_table == nullptr || engine->by_table(*request.spec)) return;
  const std::string name = rank_table_name(request);
  const auto put_file = [&](Environment& env, std::size_t node) {
    put(env, "RANK_TABLE_FILE", rank_table_path(request, node, name), kOwnKey);
  };
  for (RankPlan& rank : launching.plan.ranks) put_file(rank.env, rank.node);
  for (AuxiliaryDraft& auxiliary : launching.auxiliaries)
    put_file(auxiliary.plan.env, auxiliary.plan.node);
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
    if (path.size() > kPathBytesMax)
      wrong = fmt::format("it has {} bytes, at most {}", path.size(), kPathBytesMax);
    if (!wrong.empty()) {
      launching.problems.push_back(
          {.key = "outputs.dir",
           .message = fmt::format("the rank table would be '{}': {}; choose another outputs.dir",
                                  path, wrong)});
      return;
    }
    plan.files.push_back(
        {.node = node,
         .path = std::move(path),
         .content = bytes,
         .sha256 = plan.table->hash,
         .source = request.spec->resources().has_rank_table() ? kOwnKey : "rank table"});
  }
}

}  // namespace muster::engine
