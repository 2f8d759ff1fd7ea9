#include "common/engine/ranktable/rank_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "common/engine/ranktable/words.h"

namespace muster::ranktable {

Result<std::vector<ServerRanks>> by_rank(const RankTable& table) {
  std::vector<ServerRanks> order;
  order.reserve(table.servers.size());
  for (std::size_t s = 0; s < table.servers.size(); ++s) {
    const std::vector<Device>& devices = table.servers[s].devices;
    const auto rank_of = [&](std::size_t place) { return devices[place].rank_id; };
    ServerRanks one{.server = s, .devices = std::vector<std::size_t>(devices.size())};
    std::iota(one.devices.begin(), one.devices.end(), std::size_t{0});
    std::ranges::sort(one.devices, {}, rank_of);
    if (devices.empty() ||
        rank_of(one.devices.back()) - rank_of(one.devices.front()) + 1 != devices.size())
      return fail(ErrorCode::InvalidArgument,
                  fmt::format("server_list[{}]: ranks of '{}' are mixed with those of other "
                              "servers; give every server ranks that follow each other",
                              s, shown(table.servers[s].server_id)));
    order.push_back(std::move(one));
  }
  std::ranges::sort(order, {}, [&](const ServerRanks& one) {
    return table.servers[one.server].devices[one.devices.front()].rank_id;
  });
  return order;
}

}  // namespace muster::ranktable
