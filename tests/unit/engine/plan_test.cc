#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "common/engine/model/engine.h"

namespace muster::engine {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

v1::JobSpec torch_spec() {
  v1::JobSpec spec;
  spec.set_name("tiny");
  spec.set_engine("torch");
  spec.mutable_code()->set_at("/home/ada/exp");
  spec.mutable_launch()->set_per(v1::LAUNCH_PER_RANK);
  spec.mutable_launch()->set_script("train.py");
  spec.mutable_recovery()->set_max_restarts(7);
  return spec;
}

LaunchRequest two_nodes(const v1::JobSpec& spec) {
  LaunchRequest request{
      .spec = &spec, .job_id = "01j8x4a0b7c2d", .attempt = 1, .master_port = 29500};
  request.nodes = {{.node = NodeName("n1"),
                    .address = "10.0.0.1",
                    .devices = {4, 5},
                    .first_rank = RankNo(0),
                    .rank_count = 2},
                   {.node = NodeName("n2"),
                    .address = "10.0.0.2",
                    .devices = {0, 3},
                    .first_rank = RankNo(2),
                    .rank_count = 2}};
  request.out_dir = out_dir(spec, request.job_id, "/out");
  request.save_dir = save_dir(spec, request.out_dir, request.attempt);
  return request;
}

void resume_from_20(LaunchRequest& request) {
  request.attempt = 2;
  request.save_dir = save_dir(*request.spec, request.out_dir, 2);
  request.resume_dir = resume_dir(*request.spec, request.out_dir, 2);
  request.resume_step = 20;
  request.resume_source = save_dir(*request.spec, request.out_dir, 1);
}

std::string env(const RankPlan& rank, const std::string& name) {
  const auto found = rank.env.find(name);
  return found == rank.env.end() ? "(unset)" : found->second.text;
}

TEST(Plan, TorchGivesEveryRankTorchrunsVariables) {
  const auto spec = torch_spec();
  const auto plan = plan_launch(two_nodes(spec));
  ASSERT_TRUE(plan) << plan.error().message;
  ASSERT_EQ(plan->ranks.size(), 4u);
  const RankPlan& rank = plan->ranks[3];
  const std::map<std::string, std::string> want = {{"RANK", "3"},
                                                   {"LOCAL_RANK", "1"},
                                                   {"WORLD_SIZE", "4"},
                                                   {"LOCAL_WORLD_SIZE", "2"},
                                                   {"GROUP_RANK", "1"},
                                                   {"GROUP_WORLD_SIZE", "2"},
                                                   {"ROLE_NAME", "default"},
                                                   {"ROLE_RANK", "3"},
                                                   {"ROLE_WORLD_SIZE", "4"},
                                                   {"MASTER_ADDR", "10.0.0.1"},
                                                   {"MASTER_PORT", "29500"},
                                                   {"TORCHELASTIC_RESTART_COUNT", "0"},
                                                   {"TORCHELASTIC_MAX_RESTARTS", "7"},
                                                   {"TORCHELASTIC_RUN_ID", "01j8x4a0b7c2d"},
                                                   {"TORCHELASTIC_USE_AGENT_STORE", "False"},
                                                   {"TORCH_NCCL_ASYNC_ERROR_HANDLING", "1"},
                                                   {"NCCL_ASYNC_ERROR_HANDLING", "1"},
                                                   {"OMP_NUM_THREADS", "1"},
                                                   {"PYTHONUNBUFFERED", "1"}};
  for (const auto& [name, value] : want) EXPECT_EQ(env(rank, name), value) << name;
  EXPECT_EQ(rank.env.at("RANK").source, "engine torch");
  EXPECT_EQ(rank.env.at("MUSTER_RANK").source, "muster");
  EXPECT_THAT(rank.argv, ElementsAre("python3", "-u", "/home/ada/exp/train.py"));
  EXPECT_EQ(rank.cwd, "/home/ada/exp");
  EXPECT_THAT(rank.devices, ElementsAre(3u));
}

// With "True", rank 0 starts no store, and every rank waits as a client for ever.
TEST(Plan, AgentStoreIsNeverClaimed) {
  auto spec = torch_spec();
  (*spec.mutable_runtime()->mutable_env())["TORCHELASTIC_USE_AGENT_STORE"] = "True";
  const auto plan = plan_launch(two_nodes(spec));
  ASSERT_TRUE(plan);
  for (const RankPlan& rank : plan->ranks)
    EXPECT_EQ(env(rank, "TORCHELASTIC_USE_AGENT_STORE"), "False");
  EXPECT_TRUE(is_identity(*find_engine("torch"), "TORCHELASTIC_USE_AGENT_STORE"));
}

TEST(Plan, TheSpecsEnvironmentWinsOverDefaultsButNotOverIdentity) {
  auto spec = torch_spec();
  auto& user = *spec.mutable_runtime()->mutable_env();
  user["OMP_NUM_THREADS"] = "8";
  user["NCCL_ASYNC_ERROR_HANDLING"] = "0";
  user["PYTHONUNBUFFERED"] = "";
  user["RANK"] = "99";
  user["WHO"] = "${job.name}.${rank}";
  const auto plan = plan_launch(two_nodes(spec));
  ASSERT_TRUE(plan);
  EXPECT_EQ(env(plan->ranks[1], "OMP_NUM_THREADS"), "8");
  EXPECT_EQ(plan->ranks[1].env.at("OMP_NUM_THREADS").source, "runtime.env");
  EXPECT_EQ(env(plan->ranks[1], "NCCL_ASYNC_ERROR_HANDLING"), "0");
  EXPECT_EQ(env(plan->ranks[1], "TORCH_NCCL_ASYNC_ERROR_HANDLING"), "(unset)")
      << "new torch would take ours over the spec's";
  EXPECT_EQ(env(plan->ranks[1], "PYTHONUNBUFFERED"), "");
  EXPECT_EQ(env(plan->ranks[1], "RANK"), "1");
  EXPECT_EQ(env(plan->ranks[1], "WHO"), "tiny.1");
}

TEST(Plan, OneProcessANodeKeepsItsThreads) {
  const auto spec = torch_spec();
  auto request = two_nodes(spec);
  for (PlacedNode& node : request.nodes) node.devices.resize(1), node.rank_count = 1;
  request.nodes[1].first_rank = RankNo(1);
  const auto plan = plan_launch(request);
  ASSERT_TRUE(plan);
  EXPECT_EQ(env(plan->ranks[0], "OMP_NUM_THREADS"), "(unset)");
}

TEST(Plan, CommandGetsOnlyNeutralVariables) {
  auto spec = torch_spec();
  spec.set_engine("command");
  spec.mutable_launch()->clear_script();
  for (const char* word : {"stub", "--rank", "${rank}/${world_size}"})
    spec.mutable_launch()->add_run(word);
  const auto plan = plan_launch(two_nodes(spec));
  ASSERT_TRUE(plan) << plan.error().message;
  for (const auto& [name, value] : plan->ranks[2].env)
    EXPECT_TRUE(name.starts_with("MUSTER_") || name == "PYTHONUNBUFFERED") << name;
  EXPECT_EQ(env(plan->ranks[2], "MUSTER_RANK"), "2");
  EXPECT_EQ(env(plan->ranks[2], "MUSTER_LOCAL_RANK"), "0");
  EXPECT_EQ(env(plan->ranks[2], "MUSTER_WORLD_SIZE"), "4");
  EXPECT_EQ(env(plan->ranks[2], "MUSTER_SAVE_DIR"), "/out/01j8x4a0b7c2d/checkpoints/attempt-1");
  EXPECT_THAT(plan->ranks[2].argv, ElementsAre("stub", "--rank", "2/4"));
}

TEST(Plan, AFirstStartPassesAnEmptyResumeDirectory) {
  auto spec = torch_spec();
  for (const char* word : {"--load", "${resume.dir}", "--step=${resume.step}"})
    spec.mutable_launch()->add_args(word);
  spec.mutable_resume()->add_args("--again");
  (*spec.mutable_resume()->mutable_env())["AGAIN"] = "1";
  auto request = two_nodes(spec);
  const auto first = plan_launch(request);
  ASSERT_TRUE(first);
  EXPECT_THAT(first->ranks[0].argv,
              ElementsAre("python3", "-u", "/home/ada/exp/train.py", "--load", "", "--step="));
  EXPECT_EQ(env(first->ranks[0], "AGAIN"), "(unset)");
  EXPECT_EQ(env(first->ranks[0], "MUSTER_RESUME_DIR"), "");
  resume_from_20(request);
  const auto second = plan_launch(request);
  ASSERT_TRUE(second);
  EXPECT_THAT(second->ranks[0].argv,
              ElementsAre("python3", "-u", "/home/ada/exp/train.py", "--load",
                          "/out/01j8x4a0b7c2d/resume/attempt-2", "--step=20", "--again"));
  EXPECT_EQ(env(second->ranks[0], "AGAIN"), "1");
  EXPECT_EQ(second->ranks[0].env.at("AGAIN").source, "resume.env");
  EXPECT_EQ(env(second->ranks[0], "TORCHELASTIC_RESTART_COUNT"), "1");
}

TEST(Plan, DevicesAreShownToRanksOnlyWhereThereIsAKind) {
  auto spec = torch_spec();
  spec.mutable_resources()->set_type("nvidia");
  auto plan = plan_launch(two_nodes(spec));
  EXPECT_EQ(env(plan->ranks[3], "CUDA_VISIBLE_DEVICES"), "0,3");
  EXPECT_EQ(env(plan->ranks[3], "LOCAL_RANK"), "1");
  spec.mutable_resources()->set_type("ascend");
  plan = plan_launch(two_nodes(spec));
  EXPECT_EQ(env(plan->ranks[0], "ASCEND_RT_VISIBLE_DEVICES"), "4,5");
  EXPECT_EQ(env(plan->ranks[0], "CUDA_VISIBLE_DEVICES"), "(unset)");
  spec.mutable_resources()->set_type("auto");
  auto request = two_nodes(spec);
  EXPECT_EQ(env(plan_launch(request)->ranks[0], "CUDA_VISIBLE_DEVICES"), "(unset)");
  request.nodes[0].device_type = "nvidia";
  EXPECT_EQ(env(plan_launch(request)->ranks[0], "CUDA_VISIBLE_DEVICES"), "4,5");
}

TEST(Plan, EveryTemplateHasAValue) {
  auto spec = torch_spec();
  const std::vector<std::pair<std::string, std::string>> want = {
      {"${job.name}", "tiny"},
      {"${out}", "/out/01j8x4a0b7c2d"},
      {"${save.dir}", "/out/01j8x4a0b7c2d/checkpoints/attempt-1"},
      {"${attempt}", "1"},
      {"${rank}", "2"},
      {"${local_rank}", "0"},
      {"${device_id}", "0"},
      {"${device_range}", "0,3"},
      {"${node.rank}", "1"},
      {"${node.ip}", "10.0.0.2"},
      {"${nodes}", "2"},
      {"${devices}", "2"},
      {"${world_size}", "4"},
      {"${master.addr}", "10.0.0.1"},
      {"${master.port}", "29500"},
      {"${resume.dir}", ""},
      {"${resume.step}", ""},
      {"${env:WORLD_SIZE}", "4"},
      {"$${rank} $$ $HOME $", "${rank} $ $HOME $"},
      {"a${rank}b${rank}", "a2b2"},
  };
  std::set<std::string> named;
  for (const auto& [text, value] : want) {
    spec.mutable_launch()->add_args(text);
    const auto names = template_names(text);
    ASSERT_TRUE(names) << text;
    named.insert(names->begin(), names->end());
  }
  const auto plan = plan_launch(two_nodes(spec));
  ASSERT_TRUE(plan) << plan.error().message;
  for (std::size_t i = 0; i < want.size(); ++i)
    EXPECT_EQ(plan->ranks[2].argv[i + 3], want[i].second) << want[i].first;
  // start_test.cc tests the last three; secret_test.cc secrets, which no word has
  const std::set<std::string_view> elsewhere = {"rank_table", "env:X",        "secret:X",
                                                "start.dir",  "stages.S.out", "inputs.X"};
  for (const std::string_view name : known_templates())
    EXPECT_TRUE(elsewhere.contains(name) || named.contains(std::string(name)))
        << name << " has no line in this test";
  EXPECT_EQ(plan_launch(two_nodes(spec))->ranks[0].argv[3 + 7], "[4,6)");
}

TEST(Plan, UnknownTemplatesAreErrorsThatNameTheKey) {
  auto spec = torch_spec();
  spec.mutable_launch()->add_args("ok");
  spec.mutable_launch()->add_args("${worldsize}");
  const auto plan = plan_launch(two_nodes(spec));
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().code, ErrorCode::InvalidArgument);
  EXPECT_THAT(plan.error().message,
              HasSubstr("job 'tiny' attempt 1: launch.args[1]: '${worldsize}' is not known; did "
                        "you mean '${world_size}'?"));
  EXPECT_TRUE(template_names("${rank_table}")) << "whether there is one, the launch decides";
  EXPECT_TRUE(template_names("${inputs.data} ${stages.a-b.out} ${start.dir}"))
      << "whether they are there, the spec decides";
  EXPECT_THAT(template_names("${inputs.da-ta}").error().message,
              HasSubstr("does not name an input"));
  EXPECT_THAT(template_names("${stages.prepare.dir}").error().message,
              HasSubstr("as in ${stages.prepare.out}"));
  EXPECT_THAT(template_names("${start.dri}").error().message,
              HasSubstr("did you mean '${start.dir}'?"));
}

// A spec of a few bytes must not become gigabytes.
TEST(Plan, ExpansionIsBounded) {
  auto spec = torch_spec();
  std::string bomb;
  for (int i = 0; i < 20'000; ++i) bomb += "${out}";
  spec.mutable_launch()->add_args(bomb);
  auto problems = check_launch(spec);
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0].key, "launch.args[0]");
  spec.mutable_launch()->clear_args();
  for (int i = 0; i < 60'000; ++i) spec.mutable_launch()->add_args("${out}");
  problems = check_launch(spec);
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0].key, "launch.args");
  EXPECT_FALSE(plan_launch(two_nodes(spec)).has_value() &&
               plan_launch(two_nodes(spec))->ranks[0].argv.size() * 20 > kProcessBytesMax);
}

TEST(Plan, PathsAreBelowTheCodeUnlessAbsolute) {
  auto spec = torch_spec();
  spec.mutable_code()->set_at("/data/a$b");  // a dollar in a path is no template
  spec.mutable_runtime()->set_python("venv/bin/python");
  spec.mutable_launch()->set_cwd("sub");
  auto plan = plan_launch(two_nodes(spec));
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_THAT(plan->ranks[0].argv,
              ElementsAre("/data/a$b/venv/bin/python", "-u", "/data/a$b/train.py"));
  EXPECT_EQ(plan->ranks[0].cwd, "/data/a$b/sub");
  spec.mutable_runtime()->set_python("python3.11");
  spec.mutable_launch()->set_script("${out}/made");
  spec.mutable_launch()->set_cwd("/tmp");
  plan = plan_launch(two_nodes(spec));
  EXPECT_THAT(plan->ranks[0].argv, ElementsAre("python3.11", "-u", "/out/01j8x4a0b7c2d/made"));
  EXPECT_EQ(plan->ranks[0].cwd, "/tmp");
  spec.mutable_runtime()->set_python("auto");
  spec.mutable_launch()->set_script("run.sh");
  EXPECT_THAT(plan_launch(two_nodes(spec))->ranks[0].argv, ElementsAre("/data/a$b/run.sh"));
}

TEST(Plan, OnceIsOneProcessWithAllDevices) {
  auto spec = torch_spec();
  spec.set_engine("command");
  spec.mutable_launch()->set_per(v1::LAUNCH_PER_ONCE);
  auto request = two_nodes(spec);
  request.nodes[0].rank_count = 1;
  request.nodes[1].rank_count = 0;
  const auto plan = plan_launch(request);
  ASSERT_TRUE(plan);
  ASSERT_EQ(plan->ranks.size(), 1u);
  EXPECT_THAT(plan->ranks[0].devices, ElementsAre(4u, 5u));
  EXPECT_EQ(env(plan->ranks[0], "MUSTER_WORLD_SIZE"), "1");
  EXPECT_EQ(node_launch(request, *plan, 1).ranks_size(), 0);
}

TEST(NodeLaunch, HasItsNodesRanksAndSaysCommonThingsOnce) {
  auto spec = torch_spec();
  spec.mutable_success()->set_file("done");
  auto request = two_nodes(spec);
  resume_from_20(request);
  const auto plan = plan_launch(request);
  ASSERT_TRUE(plan);
  const v1::NodeLaunch launch = node_launch(request, *plan, 1);
  ASSERT_EQ(launch.ranks_size(), 2);
  EXPECT_EQ(launch.ranks(0).rank(), 2u);
  EXPECT_EQ(launch.ranks(1).env().at("LOCAL_RANK"), "1");
  EXPECT_TRUE(launch.env().contains("WORLD_SIZE"));
  EXPECT_FALSE(launch.env().contains("RANK"));
  for (int i = 0; i < 2; ++i) {
    std::map<std::string, std::string> both(launch.env().begin(), launch.env().end());
    for (const auto& [name, value] : launch.ranks(i).env())
      EXPECT_TRUE(both.emplace(name, value).second) << name << " is there twice";
    EXPECT_EQ(both.size(), plan->ranks[2 + i].env.size());
    for (const auto& [name, value] : plan->ranks[2 + i].env)
      EXPECT_EQ(both[name], value.text) << name;
  }
  EXPECT_EQ(launch.resume().dir(), "/out/01j8x4a0b7c2d/resume/attempt-2");
  EXPECT_EQ(launch.resume().source(), "/out/01j8x4a0b7c2d/checkpoints/attempt-1");
  EXPECT_EQ(launch.resume().step(), 20);
  EXPECT_EQ(launch.resume().layout(), "torch");
  EXPECT_THAT(launch.make_dirs(),
              ElementsAre("/out/01j8x4a0b7c2d", "/out/01j8x4a0b7c2d/checkpoints/attempt-2"));
  EXPECT_EQ(launch.watching().success_file(), "/out/01j8x4a0b7c2d/done");
  EXPECT_EQ(launch.watching().grammar(), "auto");
  EXPECT_EQ(launch.watching().world_size(), 4u);
}

TEST(Plan, TheSameRequestGivesTheSameBytes) {
  auto spec = torch_spec();
  for (int i = 0; i < 40; ++i)
    (*spec.mutable_runtime()->mutable_env())["V" + std::to_string(i)] = "${rank}";
  const auto request = two_nodes(spec);
  const auto a = plan_launch(request), b = plan_launch(request);
  for (std::size_t i = 0; i < a->ranks.size(); ++i) {
    EXPECT_EQ(a->ranks[i].argv, b->ranks[i].argv);
    EXPECT_TRUE(
        std::ranges::equal(a->ranks[i].env, b->ranks[i].env, [](const auto& x, const auto& y) {
          return x.first == y.first && x.second.text == y.second.text;
        }));
  }
}

TEST(Dirs, FollowTheSpec) {
  auto spec = torch_spec();
  EXPECT_EQ(out_dir(spec, "j", "/c"), "/c/j");
  spec.set_output_dir("/mine");
  EXPECT_EQ(out_dir(spec, "j", "/c"), "/mine");
  EXPECT_EQ(save_dir(spec, "/o", 3), "/o/checkpoints/attempt-3");
  spec.mutable_checkpoint()->set_dir("${out}/ck/${job.name}");
  EXPECT_EQ(save_dir(spec, "/o", 3), "/o/ck/tiny/attempt-3");
  spec.mutable_checkpoint()->set_dir("/fast/ck");
  EXPECT_EQ(save_dir(spec, "/o", 3), "/fast/ck/attempt-3");
  EXPECT_EQ(resume_dir(spec, "/o", 3), "/o/resume/attempt-3");
}

}  // namespace
}  // namespace muster::engine
