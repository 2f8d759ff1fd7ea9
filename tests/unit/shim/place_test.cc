// Which processes an adopted launch has, and what each is given.
#include "worker/shim/place.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "worker/shim/edits.h"

namespace muster::shim {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// The second of two nodes with two devices each.
Environment second_node() {
  return {{"MUSTER_SHIM_WORLD_SIZE", "4"},
          {"MUSTER_SHIM_FIRST_RANK", "2"},
          {"MUSTER_SHIM_LOGS", "/out/logs/attempt-3"},
          {"MUSTER_SHIM_GRACE_MS", "2000"},
          {"MUSTER_SHIM_RESTARTS", "2"},
          {"MUSTER_SHIM_MAX_RESTARTS", "20"},
          {"MUSTER_SHIM_EDITS", R"({"edits":[{"onlyWith":{"options":["--save"]}},)"
                                R"({"set":{"option":"--save","value":"/out/ckpt"}}]})"},
          {"MUSTER_SHIM_DIR", "/run/shim"},
          {"MUSTER_NODES", "2"},
          {"MUSTER_NODE_RANK", "1"},
          {"MUSTER_DEVICES", "4,5"},
          {"MUSTER_MASTER_ADDR", "10.0.0.1"},
          {"MUSTER_MASTER_PORT", "29510"},
          {"MUSTER_JOB_ID", "job1"},
          {"MUSTER_RANK", "1"},
          {"BASH_FUNC_torchrun%%", "() {  \"$MUSTER_SHIM_DIR/torchrun\" \"$@\"\n}"},
          {"BASH_FUNC_mine%%", "() {  true\n}"},
          {"PATH", "/venv/bin:/run/shim:/usr/bin"},
          {"MASTER_ADDR", "localhost"},
          {"WANDB_MODE", "offline"}};
}

Call call_of(Launcher launcher, const std::vector<std::string>& words) {
  auto call = parse_call(launcher, words);
  EXPECT_TRUE(call) << call.error().message;
  return call ? *call : Call();
}

std::vector<Process> planned(const Call& call, const Environment& environment = second_node(),
                             bool dashed = false) {
  const auto place = read_place(environment);
  EXPECT_TRUE(place);
  const auto edits = parse_edits(value_of(environment, "MUSTER_SHIM_EDITS"));
  EXPECT_TRUE(edits) << edits.error().message;
  if (!place || !edits) return {};
  return plan_processes(call, *place, environment, *edits,
                        {.path = "/venv/bin/python3", .dashed_local_rank = dashed});
}

TEST(Torchrun, GivesTheRanksTheJobsPlacement) {
  const auto ranks = planned(call_of(Launcher::Torchrun, {"--nnodes", "1", "--nproc_per_node", "8",
                                                          "train.py", "--save", "/old"}));
  ASSERT_EQ(ranks.size(), 2U);
  EXPECT_THAT(ranks[1].argv,
              ElementsAre("/venv/bin/python3", "-u", "train.py", "--save", "/out/ckpt"));
  EXPECT_EQ(ranks[1].log, "/out/logs/attempt-3/rank_3.log");
  const Environment& env = ranks[1].environment;
  for (const auto& [name, value] :
       std::map<std::string, std::string>{{"RANK", "3"},
                                          {"LOCAL_RANK", "1"},
                                          {"WORLD_SIZE", "4"},
                                          {"LOCAL_WORLD_SIZE", "2"},
                                          {"GROUP_RANK", "1"},
                                          {"GROUP_WORLD_SIZE", "2"},
                                          {"ROLE_RANK", "3"},
                                          {"ROLE_WORLD_SIZE", "4"},
                                          {"ROLE_NAME", "default"},
                                          {"MASTER_ADDR", "10.0.0.1"},
                                          {"MASTER_PORT", "29510"},
                                          {"TORCHELASTIC_RUN_ID", "job1"},
                                          {"TORCHELASTIC_RESTART_COUNT", "2"},
                                          {"TORCHELASTIC_MAX_RESTARTS", "20"},
                                          {"TORCHELASTIC_USE_AGENT_STORE", "False"},
                                          {"OMP_NUM_THREADS", "1"},
                                          {"MUSTER_RANK", "3"},
                                          {"WANDB_MODE", "offline"},
                                          {"BASH_FUNC_mine%%", "() {  true\n}"},
                                          {"PATH", "/venv/bin:/usr/bin"}}) {
    ASSERT_TRUE(env.contains(name)) << name;
    EXPECT_EQ(env.find(name)->second, value) << name;
  }
  for (const auto& [name, value] : env) {
    EXPECT_FALSE(name.starts_with("MUSTER_SHIM_"))
        << "a launcher that a rank calls would be adopted again: " << name;
    EXPECT_NE(name, "BASH_FUNC_torchrun%%");
  }
}

TEST(Torchrun, ModulesAndProgramsThatAreNoPython) {
  EXPECT_THAT(planned(call_of(Launcher::Torchrun, {"-m", "pkg.train", "a"}))[0].argv,
              ElementsAre("/venv/bin/python3", "-u", "-m", "pkg.train", "a"));
  EXPECT_THAT(planned(call_of(Launcher::Torchrun, {"--no-python", "./one.sh", "a"}))[0].argv,
              ElementsAre("./one.sh", "a"));
}

// --local_rank is before the program's own arguments; since PyTorch 2.0 it is --local-rank.
TEST(TorchLaunch, GivesTheLocalRankAsAnArgument) {
  EXPECT_THAT(planned(call_of(Launcher::TorchLaunch, {"t.py", "x"}))[1].argv,
              ElementsAre("/venv/bin/python3", "-u", "t.py", "--local_rank=1", "x"));
  EXPECT_THAT(planned(call_of(Launcher::TorchLaunch, {"t.py", "x"}), second_node(), true)[1].argv,
              ElementsAre("/venv/bin/python3", "-u", "t.py", "--local-rank=1", "x"));
  EXPECT_THAT(planned(call_of(Launcher::TorchLaunch, {"--use_env", "t.py", "x"}))[1].argv,
              ElementsAre("/venv/bin/python3", "-u", "t.py", "x"));
}

// One node of several that works alone: for example, it tokenizes.
TEST(Torchrun, StandaloneIsThisNodeAlone) {
  const auto ranks = planned(call_of(Launcher::Torchrun, {"--standalone", "t.py"}));
  ASSERT_EQ(ranks.size(), 2U);
  EXPECT_EQ(ranks[0].environment.find("RANK")->second, "0");
  EXPECT_EQ(ranks[0].environment.find("WORLD_SIZE")->second, "2");
  EXPECT_EQ(ranks[0].environment.find("MASTER_ADDR")->second, "127.0.0.1");
}

TEST(Msrun, HasAWorkerADeviceAndOnTheFirstNodeAScheduler) {
  const auto call = call_of(
      Launcher::Msrun,
      {"--worker_num=8", "--log_dir=ms", "--cluster_time_out=7200", "run.py", "--config", "x"});
  const auto second = planned(call);
  ASSERT_EQ(second.size(), 2U);
  const Environment& env = second[1].environment;
  EXPECT_EQ(env.find("MS_ROLE")->second, "MS_WORKER");
  EXPECT_EQ(env.find("MS_NODE_ID")->second, "3");
  EXPECT_EQ(env.find("RANK_ID")->second, "3");
  EXPECT_EQ(env.find("DEVICE_ID")->second, "5");
  EXPECT_EQ(env.find("MS_WORKER_NUM")->second, "4");
  EXPECT_EQ(env.find("MS_CLUSTER_TIMEOUT")->second, "7200");
  EXPECT_EQ(second[1].link, "ms/worker_3.log");
  EXPECT_THAT(second[1].argv, ElementsAre("/venv/bin/python3", "run.py", "--config", "x"));

  Environment first = second_node();
  first["MUSTER_NODE_RANK"] = "0";
  first["MUSTER_SHIM_FIRST_RANK"] = "0";
  const auto processes = planned(call, first);
  ASSERT_EQ(processes.size(), 3U);
  EXPECT_FALSE(processes[0].rank);
  EXPECT_EQ(processes[0].environment.find("MS_ROLE")->second, "MS_SCHED");
  EXPECT_FALSE(processes[0].environment.contains("RANK_ID"));
  EXPECT_THAT(planned(call_of(Launcher::Msrun, {"python3", "-u", "run.py"}))[0].argv,
              ElementsAre("/venv/bin/python3", "-u", "run.py"));
}

TEST(Notice, SaysWhatWasReplacedAndNothingElse) {
  const auto place = read_place(second_node());
  ASSERT_TRUE(place);
  const std::string text = notice(
      call_of(Launcher::Torchrun,
              {"--nnodes", "2", "--nproc_per_node", "8", "--master_addr", "localhost", "t.py"}),
      *place);
  EXPECT_THAT(text, HasSubstr("ranks 2..3 of 4, master 10.0.0.1:29510"));
  EXPECT_THAT(text, HasSubstr("--nproc_per_node 8 -> 2, --master_addr localhost -> 10.0.0.1"));
  EXPECT_THAT(text, Not(HasSubstr("--nnodes")));
  EXPECT_THAT(notice(call_of(Launcher::Torchrun, {"--nproc_per_node", "gpu", "t.py"}), *place),
              Not(HasSubstr("replaced")));
}

// A script may change its environment arbitrarily: nonsense is no placement, and then the real
// launcher is called.
TEST(Place, NonsenseIsNoPlace) {
  for (const auto& [name, value] :
       std::vector<std::pair<std::string, std::string>>{{"MUSTER_SHIM_WORLD_SIZE", ""},
                                                        {"MUSTER_SHIM_WORLD_SIZE", "1"},
                                                        {"MUSTER_SHIM_WORLD_SIZE", "99999999999"},
                                                        {"MUSTER_SHIM_FIRST_RANK", "3"},
                                                        {"MUSTER_NODES", "two"}}) {
    Environment environment = second_node();
    environment[name] = value;
    EXPECT_FALSE(read_place(environment)) << name << "=" << value;
  }
  EXPECT_FALSE(read_place({}));
}

}  // namespace
}  // namespace muster::shim
