#include "common/spec/complete_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>

#include "common/engine/model/engine.h"
#include "common/engine/ranktable/check_table.h"
#include "common/engine/ranktable/rank_order.h"
#include "common/engine/ranktable/read_table.h"
#include "common/spec/values.h"

namespace muster::spec {
namespace {

constexpr const char* kTableKey = "resources.rank_table";
constexpr std::size_t kTableNameMax = 4096;  // PATH_MAX
constexpr std::size_t kFindingsNamed = 5;

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
  TableReader(v1::JobSpec& spec, const std::function<void(std::string, std::string)>& problem)
      : spec_(spec), resources_(*spec.mutable_resources()), problem_(problem) {}

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
  void wrong(std::string message) { problem_(kTableKey, std::move(message)); }

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
    const engine::Engine* engine = engine::find_engine(spec_.engine());
    const bool by_table =
        engine != nullptr && engine->by_table != nullptr && engine->by_table(spec_);
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
      problem_("resources.nodes",
               fmt::format("{}, but rank table '{}' has {} servers; leave it out",
                           resources_.nodes(), name, servers));
    if (!resources_.device_ids().empty())
      problem_("resources.devices",
               fmt::format("names devices, and so does rank table '{}'; leave it out", name));
    else if (resources_.devices() != 0 && resources_.devices() != devices)
      problem_("resources.devices",
               fmt::format("{}, but rank table '{}' has {} a server; leave it out",
                           resources_.devices(), name, devices));
    if (!resources_.hosts().empty())
      problem_("resources.hosts",
               fmt::format("names nodes, and so does rank table '{}'; leave it out", name));
    if (spec_.launch().per() == v1::LAUNCH_PER_ONCE)
      problem_(
          "launch.per",
          "once starts one process, and a rank table has a rank a device; leave one of them out");
    if (resources_.nodes() == 0) resources_.set_nodes(static_cast<std::uint32_t>(servers));
    if (resources_.devices() == 0 && resources_.device_ids().empty())
      resources_.set_devices(static_cast<std::uint32_t>(devices));
  }

  v1::JobSpec& spec_;
  v1::ResourceSpec& resources_;
  const std::function<void(std::string, std::string)>& problem_;
};

}  // namespace

void complete_rank_table(v1::JobSpec& spec,
                         const std::function<void(std::string key, std::string message)>& problem) {
  if (spec.resources().has_rank_table()) TableReader(spec, problem).run();
}

}  // namespace muster::spec
