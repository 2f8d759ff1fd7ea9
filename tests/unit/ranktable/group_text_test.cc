// Tables in the form of a cloud's jobstart_hccl.json: what the cloud's launcher makes from them is
// the original table.
#include "common/engine/ranktable/group_text.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "common/engine/ranktable/group_list.h"
#include "common/engine/ranktable/json_tree.h"
#include "common/engine/ranktable/read_table.h"
#include "tests/unit/ranktable/samples.h"

namespace muster::ranktable {
namespace {

// As `muster ranktable convert` does it.
RankTable read_back(const std::string& text) {
  const auto document = read_json(text);
  EXPECT_TRUE(document) << document.error().message;
  const auto head = read_head(*document);
  EXPECT_TRUE(head && head->form == Form::GroupList && head->completed);
  Findings found;
  const GroupList list = read_group_list(*document, found);
  EXPECT_EQ(to_text(found.problems), "");
  EXPECT_FALSE(list.lab);
  auto table = as_launcher_reads(list);
  EXPECT_TRUE(table) << table.error().message;
  return table ? *table : RankTable();
}

TEST(GroupText, TheLaunchersTableIsTheOneThatItWasMadeOf) {
  for (const auto& [servers, devices] :
       {std::pair(1, 1), std::pair(1, 8), std::pair(2, 8), std::pair(13, 4)}) {
    RankTable table = sample(static_cast<std::size_t>(servers), static_cast<std::size_t>(devices));
    // nobody reads it, and the form has no field for it
    for (Server& server : table.servers) server.host_nic_ip.clear();
    const auto text = group_list_text(table, "ma-job-1-worker");
    ASSERT_TRUE(text) << text.error().message;
    EXPECT_EQ(read_back(*text), table) << servers << " servers of " << devices;
  }
}

TEST(GroupText, IsWhatTheCloudWrites) {
  const auto text = group_list_text(sample(1, 2), "ma-job-7-worker");
  ASSERT_TRUE(text);
  EXPECT_EQ(*text, R"({
    "status": "completed",
    "group_count": "1",
    "group_list": [
        {
            "group_name": "worker",
            "instance_count": "1",
            "device_count": "2",
            "instance_list": [
                {
                    "pod_name": "ma-job-7-worker-0",
                    "server_id": "10.20.0.0",
                    "devices": [
                        {
                            "device_id": "0",
                            "device_ip": "192.0.0.0"
                        },
                        {
                            "device_id": "1",
                            "device_ip": "192.1.0.0"
                        }
                    ]
                }
            ]
        }
    ]
})");
}

// The launcher numbers by position, a table by rank ids.
TEST(GroupText, FollowsTheRanksAndNotTheFile) {
  RankTable table = sample(3, 4);
  const auto expected = group_list_text(table, "p");
  std::ranges::reverse(table.servers);
  for (Server& server : table.servers) std::ranges::reverse(server.devices);
  const auto text = group_list_text(table, "p");
  ASSERT_TRUE(text && expected);
  EXPECT_EQ(*text, *expected);
}

TEST(GroupText, RefusesWhatTheFormHasNoPlaceFor) {
  const auto problem_text_of = [](const RankTable& table) {
    return group_list_text(table, "p").error().message;
  };
  EXPECT_EQ(problem_text_of(sample(2, 2, Version::SuperPods)),
            "a group list has no place for super-pods");
  EXPECT_EQ(problem_text_of(sample(1, 9)),
            "device 8 of server '10.20.0.0': a group list has devices 0 to 7 only");
  RankTable mixed = sample(2, 2);
  std::swap(mixed.servers[0].devices[0].rank_id, mixed.servers[1].devices[1].rank_id);
  EXPECT_NE(problem_text_of(mixed).find("are mixed with those of other servers"), std::string::npos)
      << problem_text_of(mixed);
}

}  // namespace
}  // namespace muster::ranktable
