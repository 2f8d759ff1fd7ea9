// The rules of resources. If the spec has a rank table of the user's own, the rest of the section
// follows from it.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

#include "common/base/names.h"
#include "common/engine/ranktable/check_table.h"
#include "common/engine/ranktable/rank_order.h"
#include "common/engine/ranktable/read_table.h"
#include "common/spec/keys/key_table.h"
#include "common/spec/keys/values.h"
#include "common/spec/rules/checks.h"

namespace muster::spec {
namespace {

constexpr const char* kTableKey = "resources.rank_table";
constexpr std::size_t kTableNameMax = 4096;  // PATH_MAX
constexpr std::size_t kFindingsNamed = 5;
constexpr std::uint64_t kDevicesMost = 1U << 20U;  // of a job

// Joins the first few lines ("where: message", one a line) into one sentence.
std::string one_sentence(std::string_view lines) {
  std::string text;
  std::size_t named = 0, more = 0;
  while (!lines.empty()) {
    const std::size_t end = std::min(lines.find('\n'), lines.size());
    if (named < kFindingsNamed)
      text += fmt::format("{}{}", named++ == 0 ? "" : "; ", lines.substr(0, end));
    else
      ++more;
    lines.remove_prefix(std::min(end + 1, lines.size()));
  }
  return more == 0
             ? text
             : fmt::format("{}; and {} more: `muster ranktable check` names them", text, more);
}

class TableReader {
 public:
  explicit TableReader(Draft& draft) : draft_(draft), resources_(*draft.spec.mutable_resources()) {}

  void run() {
    const v1::RankTableFile& file = resources_.rank_table();
    if (file.name().size() > kTableNameMax)
      return wrong(
          fmt::format("its name has {} bytes, at most {}", file.name().size(), kTableNameMax));
    if (file.content().size() > kRankTableBytesMax)
      return wrong(fmt::format("'{}' has {} bytes, at most {}", shown(file.name()),
                               file.content().size(), kRankTableBytesMax));
    const auto table = ranktable::load_table(file.content());
    if (!table)
      return wrong(
          fmt::format("'{}': {}", shown(file.name()), one_sentence(table.error().message)));
    const auto order = ranktable::by_rank(*table);
    if (!order) return wrong(fmt::format("'{}': {}", shown(file.name()), order.error().message));
    const std::size_t devices = table->servers.front().devices.size();
    for (std::size_t s = 0; s < table->servers.size(); ++s) {
      if (std::string why = server_problem(*table, s, devices); !why.empty())
        return wrong(fmt::format("'{}': server_list[{}].device: {}", shown(file.name()), s, why));
    }
    if (const auto chip = ranktable::chip_of({}, resources_.type())) {
      const ranktable::Findings found = ranktable::check(*table, chip);
      if (!found.problems.empty())
        return wrong(fmt::format("'{}': {}", shown(file.name()),
                                 one_sentence(ranktable::to_text(found.problems, found.left_out))));
    }
    order_of_devices(*table, *order);
    agree(table->servers.size(), devices);
  }

 private:
  void wrong(std::string message) { draft_.problem(kTableKey, std::move(message)); }

  static std::string server_problem(const ranktable::RankTable& table, std::size_t s,
                                    std::size_t devices) {
    const ranktable::Server& server = table.servers[s];
    if (server.devices.size() != devices)
      return fmt::format(
          "{} device{}, but the first server has {}; a job has as many on every node",
          server.devices.size(), server.devices.size() == 1 ? "" : "s", devices);
    std::set<std::uint32_t> seen;
    for (const ranktable::Device& device : server.devices) {
      if (!seen.insert(device.device_id).second)
        return fmt::format("device {} is there twice; a job has one rank a device",
                           device.device_id);
    }
    return {};
  }

  // A rank table assigns a device to each rank. Without one, ranks count the visible devices
  // upwards.
  void order_of_devices(const ranktable::RankTable& table,
                        const std::vector<ranktable::ServerRanks>& order) {
    const engine::Engine* engine = draft_.engine;
    const bool by_table =
        engine != nullptr && engine->by_table != nullptr && engine->by_table(draft_.spec);
    if (by_table || resources_.type() == "cpu") return;
    for (const ranktable::ServerRanks& one : order) {
      const std::vector<ranktable::Device>& devices = table.servers[one.server].devices;
      if (std::ranges::is_sorted(one.devices, {},
                                 [&](std::size_t at) { return devices[at].device_id; }))
        continue;
      return wrong(
          fmt::format("'{}': server_list[{}]: its ranks go up in another order than its devices, "
                      "and only engine mindformers with launch.launcher: ranktable can start them "
                      "so: others count the devices of a node upwards",
                      shown(resources_.rank_table().name()), one.server));
    }
  }

  void agree(std::size_t servers, std::size_t devices) {
    const std::string name = shown(resources_.rank_table().name());
    if (resources_.nodes() != 0 && resources_.nodes() != servers)
      draft_.problem("resources.nodes",
                     fmt::format("{}, but rank table '{}' has {} servers; leave it out",
                                 resources_.nodes(), name, servers));
    if (!resources_.device_ids().empty())
      draft_.problem("resources.devices",
                     fmt::format("names devices, and so does rank table '{}'; leave it out", name));
    else if (resources_.devices() != 0 && resources_.devices() != devices)
      draft_.problem("resources.devices",
                     fmt::format("{}, but rank table '{}' has {} a server; leave it out",
                                 resources_.devices(), name, devices));
    if (!resources_.hosts().empty())
      draft_.problem("resources.hosts",
                     fmt::format("names nodes, and so does rank table '{}'; leave it out", name));
    if (draft_.spec.launch().per() == v1::LAUNCH_PER_ONCE)
      draft_.problem(
          "launch.per",
          "once starts one process, and a rank table has a rank a device; leave one of them out");
    if (resources_.nodes() == 0) resources_.set_nodes(static_cast<std::uint32_t>(servers));
    if (resources_.devices() == 0 && resources_.device_ids().empty())
      resources_.set_devices(static_cast<std::uint32_t>(devices));
  }

  Draft& draft_;
  v1::ResourceSpec& resources_;
};

void complete_devices(Draft& draft, v1::ResourceSpec& resources) {
  std::set<std::uint32_t> seen;
  for (int i = 0; i < resources.device_ids_size(); ++i) {
    const std::uint32_t device = resources.device_ids(i);
    if (device > 1023)
      draft.problem(fmt::format("resources.devices[{}]", i),
                    fmt::format("{} is out of range (0..1023)", device));
    if (!seen.insert(device).second)
      draft.problem(fmt::format("resources.devices[{}]", i),
                    fmt::format("device {} is there twice", device));
  }
  if (!seen.empty() && resources.devices() != 0 && resources.devices() != seen.size())
    draft.problem("resources.devices",
                  fmt::format("{} devices, and {} named ones; leave one of the two out",
                              resources.devices(), seen.size()));
  if (!seen.empty())
    resources.set_devices(0);
  else if (resources.devices() == 0)
    resources.set_devices(draft.spec.launch().per() == v1::LAUNCH_PER_ONCE ? 1 : 8);
  if (resources.devices() > 1024)
    draft.problem("resources.devices", fmt::format("{} is out of range ({})", resources.devices(),
                                                   accepted_of("resources.devices")));
  if (const std::uint64_t all = std::uint64_t{resources.nodes()} *
                                std::max<std::uint64_t>(resources.devices(), seen.size());
      resources.nodes() <= 65536 && resources.devices() <= 1024 && all > kDevicesMost)
    draft.problem("resources.nodes",
                  fmt::format("with {} devices each these are {} devices, at most {} a job",
                              all / resources.nodes(), all, kDevicesMost));
}

void check_hosts(Draft& draft, const v1::ResourceSpec& resources) {
  std::set<std::string_view> seen;
  for (int i = 0; i < resources.hosts_size(); ++i) {
    const std::string key = fmt::format("resources.hosts[{}]", i);
    if (!is_node_name(resources.hosts(i)))
      draft.problem(key,
                    fmt::format("'{}' is not a node's name (letters, digits, . _ -, at most 63 "
                                "characters); `muster node ls` lists them",
                                shown(resources.hosts(i))));
    else if (!seen.insert(resources.hosts(i)).second)
      draft.problem(key, fmt::format("'{}' is there twice", resources.hosts(i)));
  }
  const auto count = static_cast<std::uint32_t>(resources.hosts_size());
  if (count > 0 && count < resources.nodes())
    draft.problem("resources.hosts",
                  fmt::format("{} node{} named, but resources.nodes is {}", count,
                              count == 1 ? " is" : "s are", resources.nodes()));
}

}  // namespace

void complete_resources(Draft& draft) {
  v1::ResourceSpec& resources = *draft.spec.mutable_resources();
  if (resources.has_rank_table()) TableReader(draft).run();
  if (resources.nodes() == 0) resources.set_nodes(1);
  if (resources.nodes() > 65536)
    draft.problem("resources.nodes", fmt::format("{} is out of range ({})", resources.nodes(),
                                                 accepted_of("resources.nodes")));
  complete_devices(draft, resources);
  if (resources.type().empty()) resources.set_type("auto");
  if (constexpr auto kTypes = std::to_array<std::string_view>(
          {"auto", "cpu", "ascend", "ascend910", "ascend910b", "ascend910_93", "nvidia"});
      std::ranges::find(kTypes, resources.type()) == kTypes.end())
    draft.problem("resources.type",
                  fmt::format("'{}' is not accepted ({})", shown(resources.type()),
                              accepted_of("resources.type")));
  check_hosts(draft, resources);
  check_labels(draft, "resources.select", resources.select());
}

}  // namespace muster::spec
