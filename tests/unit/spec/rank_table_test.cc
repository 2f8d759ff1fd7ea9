// resources.rank_table: a file of the user, read with the spec; and the keys with which it must
// agree.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "common/spec/keys/key_table.h"
#include "common/spec/parse.h"

namespace muster::spec {
namespace {

constexpr const char* kHead = "name: x\nengine: mindformers\nlaunch: {config: a.yaml}\n";

// server_list from "[server_id, [[device, rank], ...]]" triples of fixed shape.
std::string table_of(const std::string& servers, const std::string& count) {
  return R"({"version": "1.0", "server_count": ")" + count + R"(", "server_list": [)" + servers +
         R"(], "status": "completed"})";
}
std::string server_of(const std::string& id, const std::vector<std::pair<int, int>>& devices) {
  std::string list;
  for (const auto& [device, rank] : devices) {
    list += std::string(list.empty() ? "" : ", ") + R"({"device_id": ")" + std::to_string(device) +
            R"(", "device_ip": "192.)" + std::to_string(rank) + R"(.1.1", "rank_id": ")" +
            std::to_string(rank) + R"("})";
  }
  return R"({"server_id": ")" + id + R"(", "device": [)" + list + "]}";
}
std::string two_by_two() {
  return table_of(server_of("b", {{0, 2}, {1, 3}}) + ", " + server_of("a", {{0, 0}, {1, 1}}), "2");
}

struct Disk {
  std::map<std::string, std::string> files;
  [[nodiscard]] ParseOptions options() const {
    ParseOptions options{.base_dir = "/home/ada/exp"};
    options.read_file = [this](const std::string& path, std::size_t most) -> Result<std::string> {
      const auto found = files.find(path);
      if (found == files.end())
        return fail(ErrorCode::InvalidArgument, "there is no such file (" + path + ")");
      if (found->second.size() > most)
        return fail(ErrorCode::InvalidArgument, "it is longer than " + std::to_string(most));
      return found->second;
    };
    return options;
  }
  [[nodiscard]] std::string problem_text(const std::string& text) const {
    return format(parse_yaml(text, options()).problems, "job.yaml");
  }
};

TEST(OwnTable, IsReadNextToTheSpecAndSaysHowManyThereAre) {
  const Disk disk{.files = {{"/home/ada/exp/t/hccl.json", two_by_two()}}};
  const Parsed parsed =
      parse_yaml(std::string(kHead) + "resources: {rank_table: ./t/hccl.json}\n", disk.options());
  EXPECT_EQ(format(parsed.problems, "job.yaml"), "");
  EXPECT_EQ(parsed.spec.resources().rank_table().name(), "./t/hccl.json");
  EXPECT_EQ(parsed.spec.resources().rank_table().content(), two_by_two());
  EXPECT_EQ(parsed.spec.resources().nodes(), 2U);
  EXPECT_EQ(parsed.spec.resources().devices(), 2U);
  v1::JobSpec again = parsed.spec;
  EXPECT_TRUE(complete(again).empty());
  EXPECT_EQ(disk.problem_text(
                std::string(kHead) +
                "resources: {rank_table: t/hccl.json, nodes: 2, devices: 2, type: ascend910}\n"),
            "");
  EXPECT_EQ(disk.problem_text(std::string(kHead) + "resources: {rank_table: null}\n"), "");
}

TEST(OwnTable, EveryProblemHasItsPlace) {
  const std::string long_one(kRankTableBytesMax + 1, ' ');
  const Disk disk{
      .files = {
          {"/t/good.json", two_by_two()},
          {"/t/word.json", "{"},
          {"/t/soon.json", R"({"version": "1.0", "status": "initializing"})"},
          {"/t/number.json",
           R"({"version": "1.0", "server_count": "1", "server_list": [{"server_id": "a", "device": [{"device_id": 0, "rank_id": "0"}]}],
 "status": "completed"})"},
          {"/t/uneven.json",
           table_of(server_of("a", {{0, 0}}) + ", " + server_of("b", {{0, 1}, {1, 2}}), "2")},
          {"/t/mixed.json",
           table_of(server_of("a", {{0, 0}, {1, 2}}) + ", " + server_of("b", {{0, 1}, {1, 3}}),
                    "2")},
          {"/t/twice.json", table_of(server_of("a", {{0, 0}, {0, 1}}), "1")},
          {"/t/three.json", table_of(server_of("a", {{0, 0}, {1, 1}, {2, 2}}), "1")},
          {"/t/down.json", table_of(server_of("a", {{1, 0}, {0, 1}}), "1")},
          {"/t/group.json", R"({"status": "completed", "group_list": []})"},
          {"/t/long.json", long_one},
      }};
  struct Wrong {
    const char* resources;
    const char* problem_text;  // the beginning of the text
    const char* head = kHead;
  };
  for (const Wrong& one : {
           Wrong{"{rank_table: /t/none.json}",
                 "job.yaml:4:25: resources.rank_table: '/t/none.json': there is no such file "
                 "(/t/none.json)\n"},
           Wrong{"{rank_table: /t/long.json}",
                 "job.yaml:4:25: resources.rank_table: '/t/long.json': it is longer than 524288\n"},
           Wrong{"{rank_table: ''}",
                 "job.yaml:4:25: resources.rank_table: is empty (a file, relative to the spec's "
                 "directory | null)\n"},
           Wrong{"{rank_table: [a]}", "job.yaml:4:25: resources.rank_table: must be one"},
           Wrong{"{rank_table: /t/word.json}",
                 "job.yaml:4:25: resources.rank_table: '/t/word.json': this is not JSON: line 1, "
                 "column "},
           Wrong{"{rank_table: /t/soon.json}",
                 "job.yaml:4:25: resources.rank_table: '/t/soon.json': it is not completed yet: "
                 "its status is 'initializing'\n"},
           Wrong{"{rank_table: /t/number.json}",
                 "job.yaml:4:25: resources.rank_table: '/t/number.json': "
                 "server_list[0].device[0].device_id: "},
           Wrong{"{rank_table: /t/group.json}",
                 "job.yaml:4:25: resources.rank_table: '/t/group.json': it has no version, so it "
                 "is a group list; `muster ranktable convert`"},
           Wrong{"{rank_table: /t/uneven.json}",
                 "job.yaml:4:25: resources.rank_table: '/t/uneven.json': server_list[1].device: 2 "
                 "devices, but the first server has 1; a job has as many on every node\n"},
           Wrong{"{rank_table: /t/mixed.json}",
                 "job.yaml:4:25: resources.rank_table: '/t/mixed.json': server_list[0]: ranks of "
                 "'a' are mixed with those of other servers"},
           Wrong{"{rank_table: /t/twice.json}",
                 "job.yaml:4:25: resources.rank_table: '/t/twice.json': server_list[0].device: "
                 "device 0 is there twice"},
           Wrong{"{rank_table: /t/three.json, type: ascend910}",
                 "job.yaml:4:25: resources.rank_table: '/t/three.json': server_list[0].device: 3 "
                 "devices; on 910 a server takes part with 1, 2, 4 or 8\n"},
           Wrong{"{rank_table: /t/good.json, nodes: 3}",
                 "job.yaml:4:46: resources.nodes: 3, but rank table '/t/good.json' has 2 servers; "
                 "leave it out\n"},
           Wrong{"{rank_table: /t/good.json, devices: 8}",
                 "job.yaml:4:48: resources.devices: 8, but rank table '/t/good.json' has 2 a "
                 "server; leave it out\n"},
           Wrong{"{rank_table: /t/good.json, devices: '[0,2)'}",
                 "job.yaml:4:48: resources.devices: names devices, and so does rank table "
                 "'/t/good.json'; leave it out\n"},
           Wrong{"{rank_table: /t/good.json, hosts: [a, b]}",
                 "job.yaml:4:46: resources.hosts: names nodes, and so does rank table "
                 "'/t/good.json'; leave it out\n"},
           Wrong{"{rank_table: /t/good.json}",
                 "job.yaml:3:15: launch.per: once starts one process, and a rank table has a rank "
                 "a device",
                 "name: x\nengine: torch\nlaunch: {per: once, script: a.py}\n"},
           Wrong{"{rank_table: /t/down.json}",
                 "job.yaml:4:25: resources.rank_table: '/t/down.json': server_list[0]: its ranks "
                 "go up in another order than its devices",
                 "name: x\nengine: torch\nlaunch: {script: a.py}\n"},
       }) {
    EXPECT_THAT(disk.problem_text(one.head + std::string("resources: ") + one.resources + "\n"),
                testing::StartsWith(one.problem_text))
        << one.resources;
  }
  EXPECT_EQ(disk.problem_text(std::string(kHead) + "resources: {rank_table: /t/down.json}\n"), "")
      << "by a table each rank is told its device";
}

TEST(OwnTable, OfAnApiClientIsCheckedAsWell) {
  v1::JobSpec spec;
  spec.set_name("x");
  spec.set_engine("mindformers");
  spec.mutable_code()->set_at("/srv");
  spec.mutable_launch()->set_config("a.yaml");
  v1::RankTableFile& file = *spec.mutable_resources()->mutable_rank_table();
  const auto wrong = [&] {
    v1::JobSpec copy = spec;
    return format(complete(copy), "spec");
  };
  EXPECT_THAT(wrong(), testing::HasSubstr("resources.rank_table: '': it is empty"));
  file.set_content(std::string(kRankTableBytesMax + 1, 'x'));
  EXPECT_THAT(wrong(), testing::HasSubstr("has 524289 bytes, at most 524288"));
  file.set_content(two_by_two());
  file.set_name(std::string(5'000, 'n'));
  EXPECT_THAT(wrong(), testing::HasSubstr("its name has 5000 bytes, at most 4096"));
  file.set_name("hccl.json");
  EXPECT_EQ(wrong(), "");
}

TEST(OwnTable, IsNotReadWhereNobodyReadsFiles) {
  EXPECT_EQ(format(parse_yaml(std::string(kHead) + "resources: {rank_table: a.json}\n",
                              {.base_dir = "/x"})
                       .problems,
                   "job.yaml"),
            "job.yaml:4:25: resources.rank_table: 'a.json': no file can be read here\n");
}

}  // namespace
}  // namespace muster::spec
