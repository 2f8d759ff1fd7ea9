// Tables that the vendor's own tools made (golden/, with the inputs in cases.json): made again byte
// for byte, and read again.
#include <gtest/gtest.h>

#include "common/engine/ranktable/device_range.h"
#include "common/engine/ranktable/json_tree.h"
#include "common/engine/ranktable/judge.h"
#include "common/engine/ranktable/read_table.h"
#include "common/engine/ranktable/table_text.h"
#include "common/engine/ranktable/words.h"
#include "tests/unit/ranktable/samples.h"

namespace muster::ranktable {
namespace {

const std::string& text(const Json& object, std::string_view key) { return object.get(key)->text; }

struct Made {
  RankTable table;
  std::string file_name;
};

// As `generate` makes it from one host's inputs.
Made generated(const Json& host) {
  const auto range = parse_device_range(
      text(host, "device_range"), *parse_number(text(host, "device_num_per_node")), std::nullopt);
  Made made{.table = {.servers = {{.server_id = text(host, "server_id"),
                                   .host_nic_ip = std::string(kReserved)}}}};
  std::vector<std::uint32_t> logic;
  for (std::uint32_t device = range->first; device < range->end; ++device) {
    logic.push_back(device);
    made.table.servers.front().devices.push_back(
        {.device_id = device, .device_ip = text(*host.get("device_ips"), std::to_string(device))});
  }
  number_ranks(made.table);
  made.file_name = server_file_name(logic, text(host, "server_id"));
  return made;
}

TEST(Golden, EveryTableIsMadeAgainByteForByteAndReadBack) {
  const auto cases = read_json(file_bytes(golden_path("cases.json")));
  ASSERT_TRUE(cases) << cases.error().message;
  std::size_t seen = 0;
  for (const Json& one : cases->get("cases")->items) {
    SCOPED_TRACE(text(one, "id"));
    std::vector<RankTable> parts;
    std::vector<std::string> names;
    for (const Json& host : one.get("hosts")->items) {
      Made made = generated(host);
      parts.push_back(std::move(made.table));
      names.push_back(made.file_name);
    }
    RankTable table = parts.front();
    std::string name = names.front();
    if (text(one, "kind") == "merge") {
      for (std::size_t i = 0; i < names.size(); ++i)
        EXPECT_EQ(names[i], one.get("input_file_names")->items[i].text);
      auto merged = merge(parts);
      ASSERT_TRUE(merged) << merged.error().message;
      table = std::move(*merged);
      name = merged_file_name(table);
    }
    EXPECT_EQ(name, text(one, "tool_file_name"));
    const std::string expected = file_bytes(golden_path(text(one, "expected_file")));
    ASSERT_FALSE(expected.empty());
    EXPECT_EQ(table_text(table), expected);
    const auto read = load_table(expected);
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(*read, table);
    EXPECT_EQ(table_text(*read), expected);
    for (const Chip chip : {Chip::A910, Chip::A910B, Chip::A910_93}) {
      const Judgement judgement = judge(expected, chip);
      EXPECT_EQ(judgement.verdict, Verdict::Acceptable) << problem_text(judgement.findings);
      EXPECT_EQ(judgement.ranks, table.rank_count());
    }
    ++seen;
  }
  EXPECT_EQ(seen, 3u);
}

// What the controller makes from an attempt's nodes is the same file, with the hash that sha256sum
// gives.
TEST(Golden, AnAttemptsTableIsTheMergedFile) {
  const std::string expected = file_bytes(golden_path("hccl_2s_16p.json"));
  auto table = load_table(expected);
  ASSERT_TRUE(table);
  for (Server& server : table->servers) {
    for (Device& device : server.devices) device.rank_id = 0;
  }
  const auto file = make_table_file(*table);
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->bytes, expected);
  EXPECT_EQ(file->hash, "18a9816b03cf7202a26b043ecdffbde586ad0301ec8dd64a7b8e1fd2770d2b7b");
  table->servers[1].devices[0].device_ip = table->servers[0].devices[0].device_ip;
  const auto refused = make_table_file(*table);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message,
            "server_list[1].device[0].device_ip: '192.1.11.10' is there twice, first at "
            "server_list[0].device[0]; every card of the cluster has its own address");
}

}  // namespace
}  // namespace muster::ranktable
