#include "common/engine/ranktable/rank_order.h"

#include <gmock/gmock.h>

#include "tests/unit/ranktable/samples.h"

namespace muster::ranktable {
namespace {

using testing::ElementsAre;

TEST(RankOrder, IsThatOfTheIdsAndNotOfTheFile) {
  RankTable table = sample(3, 2);
  // Written as c, a, b; on b the second card is first.
  const auto ranks = [&](std::size_t server, std::uint32_t first, std::uint32_t second) {
    table.servers[server].devices[0].rank_id = first;
    table.servers[server].devices[1].rank_id = second;
  };
  ranks(0, 4, 5);
  ranks(1, 0, 1);
  ranks(2, 3, 2);
  const auto order = by_rank(table);
  ASSERT_TRUE(order) << order.error().message;
  std::vector<std::size_t> servers;
  for (const ServerRanks& one : *order) servers.push_back(one.server);
  EXPECT_THAT(servers, ElementsAre(1, 2, 0));
  EXPECT_THAT(order->at(1).devices, ElementsAre(1, 0));
}

TEST(RankOrder, MixedRanksAreRefused) {
  RankTable table = sample(2, 2);
  std::swap(table.servers[0].devices[1].rank_id, table.servers[1].devices[0].rank_id);
  const auto order = by_rank(table);
  ASSERT_FALSE(order);
  EXPECT_EQ(order.error().message,
            "server_list[0]: ranks of '10.20.0.0' are mixed with those of other servers; give "
            "every server ranks that follow each other");
}

}  // namespace
}  // namespace muster::ranktable
