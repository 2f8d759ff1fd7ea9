// Properties of every table, over many random ones.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "common/digest/sha256.h"
#include "common/engine/ranktable/group_list.h"
#include "common/engine/ranktable/judge.h"
#include "common/engine/ranktable/read_table.h"
#include "common/engine/ranktable/table_text.h"
#include "tests/unit/ranktable/samples.h"

namespace muster::ranktable {
namespace {

constexpr std::uint32_t kSeed = 20260301;
constexpr int kRounds = 200;

std::size_t below(std::mt19937& random, std::size_t bound) { return random() % bound; }

// Any table that check() accepts: uneven servers, devices in any order, ranks in any order, unknown
// keys, names with odd letters.
RankTable any_table(std::mt19937& random, bool ranks_in_file_order) {
  const Version version = below(random, 2) == 0 ? Version::Servers : Version::SuperPods;
  RankTable table =
      sample(version == Version::SuperPods ? 2 * (1 + below(random, 4)) : 1 + below(random, 9),
             1 + below(random, 16), version);
  for (Server& server : table.servers) {
    std::ranges::shuffle(server.devices, random);
    if (version == Version::Servers)
      server.devices.resize(1 + below(random, server.devices.size()));
    if (below(random, 4) == 0) server.kept.push_back({"hardware_type", "\"800-9000-A2\""});
    if (below(random, 4) == 0) server.server_id += "-\u00e9\u4e2d\U0001F600 \"quoted\\\"";
    for (Device& device : server.devices) {
      if (below(random, 4) == 0) device.kept.push_back({"device_port", "\"16667\""});
      if (below(random, 8) == 0)
        device.kept.push_back(
            {"levels",
             "[\n    1.50,\n    {\n        \"a\": null,\n        \"b\": []\n    },\n    true\n]"});
    }
  }
  number_ranks(table);
  if (!ranks_in_file_order) {
    std::vector<std::uint32_t> ranks(table.rank_count());
    for (std::uint32_t i = 0; i < ranks.size(); ++i) ranks[i] = i;
    std::ranges::shuffle(ranks, random);
    std::size_t next = 0;
    for (Server& server : table.servers) {
      for (Device& device : server.devices) device.rank_id = ranks[next++];
    }
  }
  return table;
}

std::vector<std::uint32_t> ranks_of(const RankTable& table) {
  std::vector<std::uint32_t> ranks;
  for (const Server& server : table.servers) {
    for (const Device& device : server.devices) ranks.push_back(device.rank_id);
  }
  return ranks;
}

void expect_dense(const RankTable& table) {
  std::vector<std::uint32_t> ranks = ranks_of(table);
  std::ranges::sort(ranks);
  for (std::uint32_t i = 0; i < ranks.size(); ++i) ASSERT_EQ(ranks[i], i);
}

TEST(Properties, WhatIsWrittenIsReadBackTheSame) {
  std::mt19937 random(kSeed);
  for (int round = 0; round < kRounds; ++round) {
    const RankTable table = any_table(random, below(random, 2) == 0);
    const std::string text = table_text(table);
    const auto read = load_table(text);
    ASSERT_TRUE(read) << read.error().message << "\n" << text;
    ASSERT_EQ(*read, table) << text;
    ASSERT_EQ(table_text(*read), text);
    ASSERT_TRUE(std::ranges::all_of(text, [](char c) {
      return (c >= 0x20 && c < 0x7F) || c == '\n';
    })) << text;
    ASSERT_FALSE(text.ends_with('\n'));
  }
}

TEST(Properties, MergingTheServersOfATableGivesTheTable) {
  std::mt19937 random(kSeed);
  for (int round = 0; round < kRounds; ++round) {
    const RankTable whole = any_table(random, true);
    const auto parts = per_server(whole);
    ASSERT_EQ(parts.size(), whole.servers.size());
    for (const RankTable& part : parts) expect_dense(part);
    const auto merged = merge(parts);
    ASSERT_TRUE(merged);
    ASSERT_EQ(*merged, whole);
    ASSERT_EQ(table_text(*merged), table_text(whole));
  }
}

TEST(Properties, MergingInSeveralGoesIsMergingAtOnce) {
  std::mt19937 random(kSeed);
  for (int round = 0; round < kRounds; ++round) {
    const auto parts = per_server(any_table(random, false));
    const std::size_t cut = below(random, parts.size() + 1);
    const std::span all(parts);
    const auto at_once = merge(all);
    ASSERT_TRUE(at_once);
    if (cut == 0 || cut == parts.size()) continue;
    const auto left = merge(all.first(cut)), right = merge(all.subspan(cut));
    ASSERT_TRUE(left && right);
    const std::vector<RankTable> two = {*left, *right};
    ASSERT_EQ(*merge(two), *at_once);
  }
}

// Whatever order an input has, ranks are dense, and those of an input stay adjacent and in their
// order.
TEST(Properties, RenumberingIsDenseAndKeepsTheOrderOfEachInput) {
  std::mt19937 random(kSeed);
  for (int round = 0; round < kRounds; ++round) {
    RankTable first = any_table(random, false), second = any_table(random, false);
    second.version = first.version;
    const std::vector<RankTable> both = {first, second};
    auto merged = merge(both);
    ASSERT_TRUE(merged);
    expect_dense(*merged);
    std::vector<std::uint32_t> expected = ranks_of(first);
    for (const std::uint32_t rank : ranks_of(second))
      expected.push_back(rank + static_cast<std::uint32_t>(first.rank_count()));
    ASSERT_EQ(ranks_of(*merged), expected);
    number_ranks(*merged);
    std::vector<std::uint32_t> counted = ranks_of(*merged);
    ASSERT_TRUE(std::ranges::is_sorted(counted));
    expect_dense(*merged);
  }
}

// A group list that is made from a table in the launcher's order converts to that table, whatever
// the order of its pods.
TEST(Properties, ConvertingAGroupListFindsTheLaunchersOrder) {
  std::mt19937 random(kSeed);
  for (int round = 0; round < kRounds; ++round) {
    RankTable table = sample(1 + below(random, 20), 1 + below(random, 8));
    for (Server& server : table.servers) {
      server.host_nic_ip.clear();
      std::ranges::shuffle(server.devices, random);
    }
    number_ranks(table);
    GroupList list{
        .groups = {{.name = "g", .device_count = static_cast<std::uint32_t>(table.rank_count())}}};
    for (std::uint32_t i = 0; const Server& server : table.servers) {
      list.groups[0].instances.push_back({.pod_name = fmt::format("job-worker-{}", i),
                                          .pod_index = i,
                                          .server_id = server.server_id,
                                          .devices = server.devices});
      ++i;
    }
    std::ranges::shuffle(list.groups[0].instances, random);
    const auto converted = as_launcher_reads(list);
    ASSERT_TRUE(converted) << converted.error().message;
    ASSERT_EQ(*converted, table);
    ASSERT_EQ(*load_table(table_text(*converted, Layout::Launcher)), table);
    const RankTable by_hccl = as_hccl_reads(list);
    expect_dense(by_hccl);
    ASSERT_TRUE(std::ranges::is_sorted(by_hccl.servers, {}, &Server::server_id));
  }
}

TEST(Properties, TheHashIsOfTheBytes) {
  std::mt19937 random(kSeed);
  std::set<std::string> hashes, texts;
  for (int round = 0; round < kRounds; ++round) {
    const auto file = make_table_file(any_table(random, true));
    ASSERT_TRUE(file);
    EXPECT_EQ(file->hash.size(), 64u);
    EXPECT_EQ(file->hash, sha256_hex(file->bytes));
    hashes.insert(file->hash);
    texts.insert(file->bytes);
  }
  EXPECT_EQ(hashes.size(), texts.size());
  EXPECT_GT(texts.size(), 100u);
  EXPECT_EQ(sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

// Whatever a file contains, there is an answer: no crash, no endless list, and an acceptable table
// can be written again.
TEST(Properties, MutatedFilesAreAnswered) {
  const std::string seeds[] = {
      file_bytes(golden_path("hccl_2p_01_10.20.0.11.json")),
      table_text(sample(2, 2, Version::SuperPods)), table_text(sample(2, 1), Layout::Launcher),
      R"({"status":"completed","group_count":"1","group_list":[{"group_name":"g","device_count":"2","instance_count":"2","instance_list":[{"pod_name":"p-1","server_id":"a","devices":[{"device_id":"0","device_ip":"1.1.1.1"}]},{"pod_name":"p-0","server_id":"b","devices":[{"device_id":"0","device_ip":"1.1.1.2"}]}]}]})"};
  const std::string pieces[] = {"{",
                                "}",
                                "[",
                                "]",
                                ",",
                                ":",
                                "\"",
                                "null",
                                "NaN",
                                "1e999",
                                "-1",
                                "99999999999999999999",
                                "\"\"",
                                "\xff",
                                "\\u0000",
                                "\\ud800",
                                std::string(1, '\0'),
                                "\"rank_id\": \"0\",",
                                "4294967295",
                                " "};
  std::mt19937 random(kSeed);
  int acceptable = 0, rejected = 0;
  for (int round = 0; round < 3'000; ++round) {
    std::string text = seeds[below(random, std::size(seeds))];
    for (std::size_t i = 1 + below(random, 2); i > 0 && !text.empty(); --i) {
      const std::size_t at = below(random, text.size());
      switch (below(random, 4)) {
        case 0: text.insert(at, pieces[below(random, std::size(pieces))]); break;
        case 1: text.erase(at, 1 + below(random, 6)); break;
        case 2: text[at] = static_cast<char>(random()); break;
        default: text[at] = static_cast<char>('0' + below(random, 10)); break;
      }
    }
    const Judgement judgement = judge(text, std::nullopt);
    for (const Finding& finding : judgement.findings.problems)
      ASSERT_FALSE(finding.message.empty());
    ASSERT_LE(judgement.findings.problems.size(), kFindingsMax);
    ASSERT_EQ(judgement.verdict == Verdict::Rejected, !judgement.findings.problems.empty());
    if (judgement.verdict == Verdict::Acceptable) ++acceptable;
    if (judgement.verdict == Verdict::Rejected) ++rejected;
    const auto table = load_table(text);
    if (!table) continue;
    ASSERT_EQ(judgement.verdict, Verdict::Acceptable) << text;
    const auto again = load_table(table_text(*table));
    ASSERT_TRUE(again) << again.error().message;
    ASSERT_EQ(*again, *table) << text;
  }
  EXPECT_GT(acceptable, 100);
  EXPECT_GT(rejected, 1'000);
}

}  // namespace
}  // namespace muster::ranktable
