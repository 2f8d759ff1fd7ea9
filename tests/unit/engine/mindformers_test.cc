// MindFormers' launches: rank table, msrun, one rank, and what is refused.
// tests/unit/spec/plans/mindformers.txt has everything that each rank gets.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "common/digest/sha256.h"
#include "common/engine/ranktable/findings.h"
#include "common/engine/ranktable/json_tree.h"
#include "common/engine/ranktable/rank_table.h"
#include "common/engine/ranktable/read_table.h"
#include "common/engine/ranktable/table_text.h"
#include "tests/unit/engine/engine_specs.h"

namespace muster::engine {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::HasSubstr;
using testing::Not;
using Words = std::vector<std::string>;

v1::JobSpec mindformers(const Words& args = {}, std::uint32_t nodes = 2,
                        std::uint32_t devices = 2) {
  auto spec = spec_of("mindformers", args, nodes, devices);
  spec.mutable_launch()->set_config("a.yaml");
  return spec;
}

v1::JobSpec with_launcher(v1::Launcher launcher) {
  auto spec = mindformers();
  spec.mutable_launch()->set_launcher(launcher);
  return spec;
}

ranktable::RankTable read(const std::string& bytes) {
  auto document = ranktable::read_json(bytes);
  EXPECT_TRUE(document) << bytes;
  ranktable::Findings found;
  if (!document) return {};
  auto table = ranktable::read_table(*document, ranktable::Version::Servers, found);
  EXPECT_TRUE(found.problems.empty()) << to_text(found.problems);
  return table;
}

std::string refusal(const LaunchRequest& request) {
  const auto plan = plan_launch(request);
  return plan ? "planned" : plan.error().message;
}

// This must hold on every node: a rank's environment agrees with what HCCL reads in the table.
TEST(RankTableLaunch, EnvironmentAndTableAgreeOnEveryNode) {
  const auto spec = mindformers({}, 2, 4);
  auto request = request_of(spec, 2, {0, 1, 2, 3});
  request.nodes[1].devices = {7, 5, 4, 6};  // any order: nothing renumbers them
  const auto plan = plan_launch(request);
  ASSERT_TRUE(plan) << plan.error().message;
  ASSERT_NE(plan->table, nullptr);
  const ranktable::RankTable table = read(plan->table->bytes);
  ASSERT_EQ(table.servers.size(), 2u);
  ASSERT_EQ(table.rank_count(), 8u);
  for (std::size_t s = 0; s < 2; ++s) {
    EXPECT_EQ(table.servers[s].server_id, request.nodes[s].address);
    for (std::size_t d = 0; d < 4; ++d) {
      const ranktable::Device& device = table.servers[s].devices[d];
      const RankPlan& rank = plan->ranks[device.rank_id];
      EXPECT_EQ(rank.node, s);
      EXPECT_EQ(env(rank, "RANK_ID"), std::to_string(device.rank_id));
      EXPECT_EQ(env(rank, "DEVICE_ID"), std::to_string(device.device_id));
      EXPECT_EQ(device.device_ip, request.nodes[s].device_ips[d]);
      EXPECT_EQ(env(rank, "RANK_SIZE"), "8");
      EXPECT_EQ(env(rank, "ASCEND_RT_VISIBLE_DEVICES"), "(unset)")
          << "would make DEVICE_ID another card";
    }
  }
}

// In a container with cards 4 and 5, programs number them from 0; HCCL compares the table with the
// numbers of the host.
TEST(RankTableLaunch, ATableHasPhysicalNumbersAndItsRanksLogicalOnes) {
  const auto spec = mindformers();
  auto request = request_of(spec);
  request.nodes[1].physical_ids = {4, 5};
  const auto plan = plan_launch(request);
  ASSERT_TRUE(plan) << plan.error().message;
  const ranktable::RankTable table = read(plan->table->bytes);
  EXPECT_EQ(table.servers[0].devices[1].device_id, 1u);
  EXPECT_EQ(table.servers[1].devices[1].device_id, 5u);
  EXPECT_EQ(env(plan->ranks[3], "DEVICE_ID"), "1");
  EXPECT_EQ(env(plan->ranks[3], "RANK_ID"), "3");
  request.nodes[1].device_ips.clear();
  EXPECT_THAT(refusal(request), HasSubstr("device 0 of node 'n2', device 1 of node 'n2' have none: "
                                          "see that `hccn_tool -i 4 -ip -g` answers"));
}

// It is pinned with the placement, before there is a plan of the whole.
TEST(RankTableLaunch, ATableAloneIsThatOfThePlan) {
  const auto spec = mindformers();
  auto request = request_of(spec);
  const auto plan = plan_launch(request);
  ASSERT_TRUE(plan) << plan.error().message;
  request.out_dir.clear();
  const auto alone = plan_table(request);
  ASSERT_TRUE(alone && *alone != nullptr);
  EXPECT_EQ((*alone)->bytes, plan->table->bytes);
  request.nodes[0].device_ips[0] = request.nodes[1].device_ips[0];
  const auto refused = plan_table(request);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message,
              HasSubstr("planning job 'tiny' attempt 1: launch.launcher: HCCL would refuse the "
                        "rank table of this placement"));
  const auto msrun = with_launcher(v1::LAUNCHER_MSRUN);
  EXPECT_EQ(*plan_table(request_of(msrun)), nullptr);
}

// The table does not exist yet, so positions in it would not help anybody. One line, as a verdict
// must be.
TEST(RankTableLaunch, WhatHcclWouldRefuseIsReportedOfNodesAndDevices) {
  const auto spec = mindformers({}, 2, 4);
  auto request = request_of(spec, 2, {4, 5, 6, 7});
  request.nodes[1].device_ips = request.nodes[0].device_ips;
  const std::string problem_text = refusal(request);
  EXPECT_THAT(problem_text,
              HasSubstr("node 'n2' device 4, device_ip: '192.168.0.14' is there twice, first "
                        "at node 'n1' device 4; every card of the cluster has its own "
                        "address; node 'n2' device 5, device_ip: "));
  EXPECT_THAT(problem_text, testing::EndsWith("; and 1 more"));
  EXPECT_THAT(problem_text, Not(HasSubstr("\n")));
  EXPECT_THAT(problem_text, Not(HasSubstr("server_list")));
}

// If the node does not report its model, the reported type is as good.
TEST(RankTableLaunch, TheRulesOfTheChipAreThoseOfTheDevicesType) {
  const auto spec = mindformers({}, 1, 3);
  auto request = request_of(spec, 1, {0, 1, 2});
  EXPECT_EQ(refusal(request), "planned");
  request.nodes[0].device_type = "ascend910b";
  EXPECT_EQ(refusal(request), "planned");
  request.nodes[0].device_type = "ascend910";
  EXPECT_THAT(refusal(request), HasSubstr("HCCL would refuse"));
  request.nodes[0].device_model = "910B3";
  EXPECT_EQ(refusal(request), "planned") << "the model says more than the type";
}

TEST(RankTableLaunch, EveryNodeGetsTheSameBytesAtItsOwnPlace) {
  const auto spec = mindformers();
  const auto request = request_of(spec);
  const auto plan = plan_launch(request);
  ASSERT_TRUE(plan) << plan.error().message;
  ASSERT_EQ(plan->files.size(), 2u);
  std::set<std::string> paths;
  for (std::size_t node = 0; node < 2; ++node) {
    const v1::NodeLaunch order = node_launch(request, *plan, node);
    ASSERT_EQ(order.files_size(), 1);
    EXPECT_EQ(order.files(0).content(), plan->table->bytes);
    EXPECT_EQ(order.files(0).sha256(), sha256_hex(plan->table->bytes));
    EXPECT_EQ(order.files(0).mode(), 0644u);
    EXPECT_EQ(order.env().at("RANK_TABLE_FILE"), order.files(0).path());
    EXPECT_TRUE(order.files(0).path().ends_with("/hccl_2s_4p.json")) << order.files(0).path();
    const std::string dir = order.files(0).path().substr(0, order.files(0).path().rfind('/'));
    EXPECT_THAT(order.make_dirs(), Contains(dir));
    paths.insert(order.files(0).path());
  }
  EXPECT_EQ(paths.size(), 2u)
      << "on a shared file system one node's rename would pull the file from under another's ranks";
}

TEST(RankTableLaunch, ATableMadeOnceServesEveryPart) {
  const auto spec = mindformers();
  auto request = request_of(spec);
  const auto whole = plan_launch(request);
  ASSERT_TRUE(whole);
  request.table = whole->table;
  request.only = RankRange{.first = 2, .count = 2};
  const auto part = plan_launch(request);
  ASSERT_TRUE(part);
  EXPECT_EQ(part->table, whole->table) << "not made again";
  EXPECT_EQ(node_launch(request, *part, 1).SerializeAsString().size(),
            node_launch(request, *whole, 1).SerializeAsString().size());
}

TEST(RankTableLaunch, AMissingAddressNamesNodeAndDevice) {
  const auto spec = mindformers();
  auto request = request_of(spec, 2, {4, 5});
  request.nodes[1].device_ips[1].clear();
  EXPECT_THAT(refusal(request),
              HasSubstr("launch.launcher: a rank table over 2 nodes needs the address of every "
                        "card's network port, and device 5 of node 'n2' has none: see that "
                        "`hccn_tool -i 5 -ip -g` answers there or that the agent can read "
                        "/etc/hccn.conf, or use launch.launcher: msrun"));
  for (PlacedNode& node : request.nodes) node.device_ips.clear();
  EXPECT_THAT(refusal(request), HasSubstr("device 4 of node 'n1', device 5 of node 'n1', device 4 "
                                          "of node 'n2' and 1 more have none"));
  EXPECT_EQ(refusal(request_of(spec)), "planned");
  auto one_node = mindformers({}, 1, 2);
  auto alone = request_of(one_node, 1);
  alone.nodes[0].device_ips.clear();
  EXPECT_EQ(refusal(alone), "planned") << "one server does without";
}

TEST(RankTableLaunch, WhatHcclWouldRefuseIsRefusedBefore) {
  auto spec = mindformers({}, 2, 3);
  auto request = request_of(spec, 2, {0, 1, 2});
  EXPECT_EQ(refusal(request), "planned") << "no chip known";
  for (PlacedNode& node : request.nodes) node.device_model = "910B3";
  EXPECT_EQ(refusal(request), "planned") << "910B takes three cards";
  for (PlacedNode& node : request.nodes) node.device_model = "910A";
  EXPECT_THAT(refusal(request), HasSubstr("HCCL would refuse the rank table of this placement: "));
  request = request_of(spec, 2, {0, 1, 2});
  request.nodes[1].device_ips = request.nodes[0].device_ips;
  EXPECT_THAT(refusal(request), HasSubstr("is there twice"));
  request = request_of(spec, 2, {0, 1, 2});
  request.nodes[1].address = request.nodes[0].address;
  EXPECT_THAT(refusal(request), HasSubstr("HCCL would refuse"));
  request.nodes[1].server_id = "other";
  EXPECT_EQ(refusal(request), "planned");
}

TEST(RankTableLaunch, ItsPathIsOneThatHcclOpens) {
  const auto spec = mindformers();
  auto request = request_of(spec);
  request.out_dir = "/data/x.json.d";
  EXPECT_THAT(refusal(request),
              HasSubstr("outputs.dir: the rank table would be "
                        "'/data/x.json.d/ranktables/attempt-1/node-0/hccl_2s_4p.json': "));
  request.out_dir = "/" + std::string(4090, 'o');
  EXPECT_THAT(refusal(request), HasSubstr("at most 4095; choose another outputs.dir"));
  auto named = spec;
  named.set_output_dir("/data/x.json.d");
  EXPECT_THAT(problem_text(named), HasSubstr("outputs.dir: the rank table goes below it"));
  named.mutable_launch()->set_launcher(v1::LAUNCHER_MSRUN);
  EXPECT_EQ(problem_text(named), "") << "no table, no rule";
}

TEST(RankTableLaunch, ServersOfASuperPodGetVersion12) {
  const auto spec = mindformers();
  auto request = request_of(spec);
  for (std::size_t i = 0; i < 2; ++i) {
    request.nodes[i].super_pod_id = "0";
    request.nodes[i].super_device_ids = {std::to_string(2 * i), std::to_string(2 * i + 1)};
    request.nodes[i].device_ips.clear();  // one super-pod needs none
  }
  auto plan = plan_launch(request);
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_THAT(plan->table->bytes, HasSubstr(R"("version": "1.2")"));
  EXPECT_THAT(plan->table->bytes, HasSubstr(R"("super_device_id": "3")"));
  for (PlacedNode& node : request.nodes) node.super_pod_id.clear();
  EXPECT_THAT(refusal(request), HasSubstr("needs the address of every card's network port"));
}

// A placement that does not exist (muster plan without nodes, the bounds of an order) has no
// addresses, and is not refused for that.
TEST(RankTableLaunch, AnImaginedPlacementHasATableOfTheRightSize) {
  const auto spec = mindformers({}, 64, 8);
  LaunchRequest request = request_of(spec, 64, {0, 1, 2, 3, 4, 5, 6, 7});
  const auto real = plan_launch(request);
  ASSERT_TRUE(real) << real.error().message;
  for (PlacedNode& node : request.nodes) {
    node.device_ips.clear();
    node.devices.clear();
    node.address.clear();
  }
  EXPECT_THAT(refusal(request), HasSubstr("launch.launcher"));
  request.imagined = true;
  const auto plan = plan_launch(request);
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_GE(plan->table->bytes.size(), real->table->bytes.size());
  EXPECT_LE(plan->table->bytes.size(), real->table->bytes.size() * 3 / 2);
}

TEST(RankTableLaunch, TooManyRanks) {
  const auto spec = mindformers({}, 8193, 8);
  EXPECT_THAT(problem_text(spec),
              HasSubstr("resources.nodes: 65544 ranks, and a rank table has at most "
                        "65536; use launch.launcher: msrun"));
}

TEST(Msrun, WorkersAndTheirScheduler) {
  const auto spec = with_launcher(v1::LAUNCHER_MSRUN);
  auto request = request_of(spec, 2, {4, 5});
  for (PlacedNode& node : request.nodes) node.device_ips.clear();
  const auto plan = plan_launch(request);
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_EQ(plan->table, nullptr);
  EXPECT_TRUE(plan->files.empty());
  const RankPlan& last = plan->ranks[3];
  const std::map<std::string, std::string> want = {{"MS_ROLE", "MS_WORKER"},
                                                   {"MS_WORKER_NUM", "4"},
                                                   {"MS_SCHED_HOST", "10.0.0.1"},
                                                   {"MS_SCHED_PORT", "29500"},
                                                   {"MS_NODE_ID", "3"},
                                                   {"MS_WORKER_IP", "10.0.0.2"},
                                                   {"MS_CLUSTER_TIMEOUT", "600"},
                                                   {"RANK_ID", "3"},
                                                   {"RANK_SIZE", "4"},
                                                   {"ASCEND_RT_VISIBLE_DEVICES", "4,5"},
                                                   {"HCCL_IF_IP", "10.0.0.2"},
                                                   {"RANK_TABLE_FILE", "(unset)"},
                                                   {"DEVICE_ID", "(unset)"}};
  for (const auto& [name, value] : want) EXPECT_EQ(env(last, name), value) << name;

  ASSERT_EQ(plan->auxiliaries.size(), 1u);
  const AuxiliaryPlan& scheduler = plan->auxiliaries[0];
  EXPECT_EQ(scheduler.name, "scheduler");
  EXPECT_EQ(scheduler.node, 0u);
  EXPECT_EQ(scheduler.cwd, "/out/j/work/attempt-1/scheduler");
  EXPECT_EQ(scheduler.env.at("MS_ROLE").text, "MS_SCHED");
  EXPECT_EQ(scheduler.env.at("MS_WORKER_NUM").text, "4");
  EXPECT_EQ(scheduler.env.at("LOCAL_DEFAULT_PATH").text, scheduler.cwd)
      << "it would take itself for rank 0 and write into its tree";
  EXPECT_THAT(scheduler.argv, Contains(scheduler.cwd));
  EXPECT_THAT(scheduler.argv, Not(Contains(request.save_dir)));
  for (const char* name :
       {"RANK_ID", "MS_NODE_ID", "MUSTER_RANK", "MUSTER_LOCAL_RANK", "RANK_TABLE_FILE"})
    EXPECT_FALSE(scheduler.env.contains(name)) << name;

  const v1::NodeLaunch first = node_launch(request, *plan, 0),
                       second = node_launch(request, *plan, 1);
  ASSERT_EQ(first.auxiliaries_size(), 1);
  EXPECT_EQ(first.auxiliaries(0).env().at("MS_ROLE"), "MS_SCHED");
  EXPECT_EQ(static_cast<std::size_t>(first.auxiliaries(0).env_size()), scheduler.env.size())
      << "all of its environment, not over the ranks'";
  EXPECT_THAT(first.make_dirs(), Contains(scheduler.cwd));
  EXPECT_EQ(second.auxiliaries_size(), 0);
}

TEST(Msrun, WantsAddressesAndDevicesThatAscend) {
  const auto spec = with_launcher(v1::LAUNCHER_MSRUN);
  auto request = request_of(spec);
  request.nodes[1].address = "node-2.cluster";
  EXPECT_THAT(refusal(request), HasSubstr("that of node 'n2' is the name 'node-2.cluster'"));
  EXPECT_THAT(refusal(request_of(spec, 2, {1, 0})),
              HasSubstr("resources.devices: [1, 0] does not ascend"))
      << "MindSpore counts devices by local rank";
}

TEST(Mindformers, EveryRankHasADirectoryOfItsOwn) {
  for (const v1::Launcher launcher : {v1::LAUNCHER_RANKTABLE, v1::LAUNCHER_MSRUN}) {
    auto spec = with_launcher(launcher);
    auto request = request_of(spec);
    auto plan = plan_launch(request);
    ASSERT_TRUE(plan) << plan.error().message;
    std::set<std::string> dirs;
    for (const RankPlan& rank : plan->ranks) dirs.insert(rank.cwd);
    for (const AuxiliaryPlan& auxiliary : plan->auxiliaries) dirs.insert(auxiliary.cwd);
    EXPECT_EQ(dirs.size(), 4 + plan->auxiliaries.size());
    EXPECT_THAT(node_launch(request, *plan, 1).make_dirs(), Contains(plan->ranks[3].cwd));
    spec.mutable_launch()->set_cwd("/data/my");
    plan = plan_launch(request);
    EXPECT_EQ(plan->ranks[0].cwd, "/data/my") << "the spec's choice";
  }
}

TEST(Mindformers, OneRankNeedsNobodyElse) {
  for (const v1::Launcher launcher : {v1::LAUNCHER_RANKTABLE, v1::LAUNCHER_MSRUN}) {
    auto spec = mindformers({}, 1, 1);
    spec.mutable_launch()->set_launcher(launcher);
    const auto plan = plan_launch(request_of(spec, 1, {5}));
    ASSERT_TRUE(plan) << plan.error().message;
    const RankPlan& rank = plan->ranks[0];
    EXPECT_THAT(rank.argv,
                ElementsAre("python3", "-u", "/srv/run_mindformer.py", "--config", "/srv/a.yaml",
                            "--run_mode", "train", "--use_parallel", "False", "--device_id", "5",
                            "--output_dir", "/out/j/checkpoints/attempt-1"));
    EXPECT_EQ(env(rank, "DEVICE_ID"), "5");
    for (const char* name : {"RANK_TABLE_FILE", "MS_ROLE", "ASCEND_RT_VISIBLE_DEVICES"})
      EXPECT_EQ(env(rank, name), "(unset)") << name;
    EXPECT_TRUE(plan->files.empty() && plan->auxiliaries.empty());
  }
}

TEST(Mindformers, ModesAndWhatResumingChanges) {
  const std::string links = "/out/j/resume/attempt-2", save2 = "/out/j/checkpoints/attempt-2";
  struct Row {
    const char* what;
    v1::LaunchMode mode;
    Words given, resumed;  // after the script
  };
  const Words head = {"--config", "/srv/a.yaml", "--run_mode"},
              tail = {"--use_parallel", "True", "--output_dir", save2};
  const Words again = {"--load_checkpoint", links,  "--resume_training", "True",
                       "--auto_trans_ckpt", "False"};
  const auto line = [](std::initializer_list<Words> parts) {
    Words words;
    for (const Words& part : parts) words.insert(words.end(), part.begin(), part.end());
    return words;
  };
  const std::vector<Row> rows = {
      {"train", v1::LAUNCH_MODE_TRAIN, {}, line({head, {"train"}, tail, again})},
      {"the default", v1::LAUNCH_MODE_UNSPECIFIED, {}, line({head, {"train"}, tail, again})},
      {"finetune", v1::LAUNCH_MODE_FINETUNE, {}, line({head, {"finetune"}, tail, again})},
      {"eval writes nothing to go on from",
       v1::LAUNCH_MODE_EVAL,
       {"--load_checkpoint", "/x"},
       line({{"--load_checkpoint", "/x"}, head, {"eval"}, tail})},
      {"nor does predict", v1::LAUNCH_MODE_PREDICT, {}, line({head, {"predict"}, tail})},
      {"what was there is replaced",
       v1::LAUNCH_MODE_FINETUNE,
       {"--load_checkpoint=/w", "--auto_trans_ckpt", "True", "--src_strategy_path_or_dir", "/s"},
       line({{"--load_checkpoint=" + links, "--auto_trans_ckpt", "False"},
             head,
             {"finetune"},
             tail,
             {"--resume_training", "True"}})},
      {"the spec's own words are not said again",
       v1::LAUNCH_MODE_TRAIN,
       {"--run_mode=train", "--use_parallel", "true"},
       line({{"--run_mode=train", "--use_parallel", "true", "--config", "/srv/a.yaml",
              "--output_dir", save2},
             again})},
  };
  for (const Row& row : rows) {
    auto spec = mindformers(row.given);
    spec.mutable_launch()->set_mode(row.mode);
    auto request = request_of(spec);
    resume_at(request, 40);
    const auto plan = plan_launch(request);
    ASSERT_TRUE(plan) << plan.error().message;
    EXPECT_THAT(Words(plan->ranks[0].argv.begin() + 3, plan->ranks[0].argv.end()),
                ElementsAreArray(row.resumed))
        << row.what;
  }
}

// An unknown command is run unchanged, in the code tree, because it may contain relative paths.
TEST(Mindformers, AnotherCommandStaysAsItIs) {
  auto spec = mindformers();
  spec.mutable_launch()->clear_script();
  spec.mutable_launch()->clear_config();
  for (const char* word : {"bash", "run.sh", "--load_checkpoint", "/x"})
    spec.mutable_launch()->add_run(word);
  auto request = request_of(spec);
  resume_at(request, 40);
  const auto plan = plan_launch(request);
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_THAT(plan->ranks[1].argv, ElementsAre("bash", "run.sh", "--load_checkpoint", "/x"));
  EXPECT_EQ(plan->ranks[1].cwd, "/srv");
  EXPECT_EQ(env(plan->ranks[1], "RANK_ID"), "1");
  EXPECT_EQ(problem_text(spec), "");
}

TEST(Mindformers, TheOutputRootIsTheAttemptsByBothOfItsNames) {
  const auto spec = mindformers({"--output_dir", "/mine"});
  const auto plan = plan_launch(request_of(spec));
  ASSERT_TRUE(plan);
  EXPECT_EQ(env(plan->ranks[1], "LOCAL_DEFAULT_PATH"), "/out/j/checkpoints/attempt-1");
  EXPECT_THAT(plan->ranks[1].argv, Not(Contains("/mine")));
  auto odd = request_of(spec);
  odd.save_dir = "/out/a=b/attempt-1";
  EXPECT_THAT(refusal(odd), HasSubstr("outputs.dir: '/out/a=b/attempt-1' has a '=' in it"));
}

TEST(Mindformers, ItsIdentityIsNobodyElsesToSet) {
  const Engine& engine = *find_engine("mindformers");
  for (const char* name : {"RANK_TABLE_FILE", "RANK_ID", "DEVICE_ID", "MS_ROLE", "MS_NODE_ID",
                           "LOCAL_DEFAULT_PATH", "MUSTER_RANK"})
    EXPECT_TRUE(is_identity(engine, name));
  for (const char* name : {"MA_JOB_DIR", "MA_LOG_DIR", "BATCH_GROUP_NAME", "S3_ACCESS_KEY_ID",
                           "S3_SECRET_ACCESS_KEY", "MA_LOCAL_LOG_PATH"})
    EXPECT_THAT(engine.cloud, Contains(name)) << "check_in_modelarts() asks for it";
  const auto spec = mindformers();
  const auto plan = plan_launch(request_of(spec));
  for (const auto& [name, value] : plan->ranks[0].env)
    EXPECT_THAT(engine.cloud, Not(Contains(name)));
}

TEST(Mindformers, AsManyDevicesANodeAsItHas) {
  const auto devices = [](const std::vector<std::uint32_t>& ids) {
    const auto spec = mindformers({}, 2, static_cast<std::uint32_t>(ids.size()));
    return env(plan_launch(request_of(spec, 2, ids))->ranks[0], "DEVICE_NUM_PER_NODE");
  };
  EXPECT_EQ(devices({0, 1, 2, 3}), "4");
  EXPECT_EQ(devices({0, 1, 2, 3, 4, 5, 6, 7}), "(unset)") << "its own default";
}

}  // namespace
}  // namespace muster::engine
