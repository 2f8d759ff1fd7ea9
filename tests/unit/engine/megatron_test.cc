// The launches of Megatron-LM and MindSpeed-MM: each row is a known pitfall.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/engine/engine_specs.h"

namespace muster::engine {
namespace {

using testing::ElementsAreArray;
using testing::HasSubstr;
using Words = std::vector<std::string>;

// The arguments after `python3 -u SCRIPT`.
Words arguments(const char* engine, const Words& given, bool resumes,
                const Words& resume_args = {}) {
  auto spec = spec_of(engine, given);
  for (const std::string& word : resume_args) spec.mutable_resume()->add_args(word);
  auto request = request_of(spec);
  if (resumes) resume_at(request, 40);
  const auto plan = plan_launch(request);
  EXPECT_TRUE(plan) << plan.error().message;
  if (!plan) return {};
  EXPECT_EQ(plan->argv_sources.size(), plan->ranks[0].argv.size());
  return {plan->ranks[0].argv.begin() + 3, plan->ranks[0].argv.end()};
}

// Regression: nothing specified how many directories a checkpoint has. A directory that was missing
// in all steps was not noticed.
TEST(Megatron, TellsHowManyShardsACheckpointHas) {
  const auto shards = [](const Words& given) {
    auto spec = spec_of("megatron", given);
    auto request = request_of(spec);
    const auto plan = plan_launch(request);
    EXPECT_TRUE(plan) << plan.error().message;
    return plan ? plan->watching.shards() : 0;
  };
  EXPECT_EQ(shards({"--tensor-model-parallel-size", "2", "--pipeline-model-parallel-size=2"}), 4U);
  EXPECT_EQ(shards({"--tensor-model-parallel-size", "2", "--expert-model-parallel-size", "2",
                    "--num-experts", "4"}),
            4U);
  EXPECT_EQ(shards({"--lr", "1"}), 0U) << "a script may set them by itself";
  EXPECT_EQ(shards({"--tensor-model-parallel-size", "2", "--yaml-cfg", "x.yaml"}), 0U);
  EXPECT_EQ(shards({"--tensor-model-parallel-size", "${world_size}"}), 0U);
}

TEST(Megatron, SavesIntoTheAttemptsDirectoryAndLoadsWhatItIsTo) {
  const std::string save1 = "/out/j/checkpoints/attempt-1", save2 = "/out/j/checkpoints/attempt-2",
                    links = "/out/j/resume/attempt-2";
  struct Row {
    const char* what;
    Words given, first, resumed;
  };
  const std::vector<Row> rows = {
      {"--load X --save X, X empty, is an ordinary first start",
       {"--load", "/x", "--save", "/x"},
       {"--load", "/x", "--save", save1},
       {"--load", links, "--save", save2}},
      {"the other spelling",
       {"--load=/x", "--save=/x"},
       {"--load=/x", "--save=" + save1},
       {"--load=" + links, "--save=" + save2}},
      {"no --load", {"--save", "/x"}, {"--save", save1}, {"--save", save2, "--load", links}},
      {"no --save: nothing to save, nothing to go on from",
       {"--lr", "1"},
       {"--lr", "1"},
       {"--lr", "1"}},
      {"an empty directory name is the working directory, with whose tracker?",
       {"--load", "${resume.dir}", "--save", "${save.dir}"},
       {"--save", save1},
       {"--load", links, "--save", save2}},
      {"below the attempt's directory stays",
       {"--save", "${save.dir}/gpt"},
       {"--save", save1 + "/gpt"},
       {"--save", save2 + "/gpt", "--load", links}},
      {"--finetune would start at iteration 0 again",
       {"--finetune", "--load", "/x", "--save", "/y"},
       {"--finetune", "--load", "/x", "--save", save1},
       {"--load", links, "--save", save2}},
      {"--ckpt-step names another step",
       {"--ckpt-step", "3", "--load", "/x", "--save", "/y"},
       {"--ckpt-step", "3", "--load", "/x", "--save", save1},
       {"--load", links, "--save", save2}},
      {"--no-load-* were for the weights of the start",
       {"--no-load-optim", "--no-load-rng", "--load", "/x", "--save", "/y"},
       {"--no-load-optim", "--no-load-rng", "--load", "/x", "--save", save1},
       {"--load", links, "--save", save2}},
      {"what was not saved cannot be loaded",
       {"--finetune", "--no-save-rng", "--load", "/x", "--save", "/y"},
       {"--finetune", "--no-save-rng", "--load", "/x", "--save", save1},
       {"--no-save-rng", "--load", links, "--save", save2, "--no-load-rng"}},
      {"options that only begin alike",
       {"--save-interval", "10", "--load-x=1", "--save", "/y"},
       {"--save-interval", "10", "--load-x=1", "--save", save1},
       {"--save-interval", "10", "--load-x=1", "--save", save2, "--load", links}},
      {"a broken command line is the engine's to refuse",
       {"--load", "--save"},
       {"--load", "--save"},
       {"--load", "--save"}},
  };
  for (const char* engine : {"megatron", "mindspeed-mm"}) {
    for (const Row& row : rows) {
      EXPECT_THAT(arguments(engine, row.given, false), ElementsAreArray(row.first))
          << engine << ": " << row.what;
      EXPECT_THAT(arguments(engine, row.given, true), ElementsAreArray(row.resumed))
          << engine << ", resumed: " << row.what;
    }
  }
}

TEST(Megatron, ResumeArgsOverruleTheEngine) {
  EXPECT_THAT(arguments("megatron", {"--load", "/x", "--save", "/y", "--finetune"}, true,
                        {"--load", "/mine", "--ckpt-step", "7", "--finetune"}),
              ElementsAreArray({"--load", "/out/j/resume/attempt-2", "--save",
                                "/out/j/checkpoints/attempt-2", "--load", "/mine", "--ckpt-step",
                                "7", "--finetune"}));
}

TEST(Megatron, TheWholeCommandIsTreatedAlike) {
  auto spec = spec_of("megatron", {});
  spec.mutable_launch()->clear_script();
  for (const char* word : {"python3", "pretrain_gpt.py", "--save=/x", "--load", "/x"})
    spec.mutable_launch()->add_run(word);
  auto request = request_of(spec);
  resume_at(request, 40);
  const auto plan = plan_launch(request);
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_THAT(plan->ranks[3].argv,
              ElementsAreArray({"python3", "pretrain_gpt.py", "--save=/out/j/checkpoints/attempt-2",
                                "--load", "/out/j/resume/attempt-2"}));
}

TEST(Megatron, OneConnectionWhereItAsksForOne) {
  const auto connections = [](const Words& given, const char* set = nullptr) {
    auto spec = spec_of("megatron", given);
    if (set != nullptr)
      (*spec.mutable_runtime()->mutable_env())["CUDA_DEVICE_MAX_CONNECTIONS"] = set;
    const auto plan = plan_launch(request_of(spec));
    return plan ? env(plan->ranks[0], "CUDA_DEVICE_MAX_CONNECTIONS") : plan.error().message;
  };
  EXPECT_EQ(connections({"--tensor-model-parallel-size", "2"}), "1");
  EXPECT_EQ(connections({"--context-parallel-size=2"}), "1");
  EXPECT_EQ(connections({"--tensor-model-parallel-size", "1"}), "(unset)");
  EXPECT_EQ(connections({"--pipeline-model-parallel-size", "2"}), "(unset)");
  EXPECT_EQ(connections({"--tensor-model-parallel-size", "2", "--use-torch-fsdp2"}), "(unset)")
      << "asserted not to be 1";
  EXPECT_EQ(connections({"--tensor-model-parallel-size", "2"}, "32"), "32")
      << "Blackwell may have more";
}

TEST(Megatron, NothingIsSetThatTheSpecSaysOrThatNobodyAskedFor) {
  auto spec = spec_of("megatron", {});
  auto& user = *spec.mutable_runtime()->mutable_env();
  for (const char* name :
       {"TASK_QUEUE_ENABLE", "CPU_AFFINITY_CONF", "HCCL_CONNECT_TIMEOUT", "HCCL_EXEC_TIMEOUT"})
    user[name] = "600";
  const auto with = plan_launch(request_of(spec));
  user.clear();
  const auto without = plan_launch(request_of(spec));
  ASSERT_TRUE(with && without);
  for (const char* name :
       {"TASK_QUEUE_ENABLE", "CPU_AFFINITY_CONF", "HCCL_CONNECT_TIMEOUT", "HCCL_EXEC_TIMEOUT"}) {
    EXPECT_EQ(env(with->ranks[0], name), "600");
    EXPECT_EQ(env(without->ranks[0], name), "(unset)");
  }
  for (const char* name : {"RANK_TABLE_FILE", "RANK_ID", "DEVICE_ID", "MA_JOB_DIR"})
    EXPECT_EQ(env(without->ranks[0], name), "(unset)") << name;
  EXPECT_TRUE(without->files.empty());
}

TEST(Network, TheTrainingAddressAndItsInterface) {
  struct Row {
    const char* what;
    std::string type, address, interface;
    std::map<std::string, std::string> set;
    std::string ip, family, gloo;
  };
  const std::vector<Row> rows = {
      {"an Ascend node", "ascend", "10.0.0.2", "eth2", {}, "10.0.0.2", "(unset)", "eth2"},
      {"IPv6", "ascend", "fd00::2", "eth2", {}, "fd00::2", "AF_INET6", "eth2"},
      {"interface not known", "ascend", "10.0.0.2", "", {}, "10.0.0.2", "(unset)", "(unset)"},
      {"loopback is nobody else's", "ascend", "127.0.0.1", "lo", {}, "(unset)", "(unset)", "lo"},
      {"a name", "ascend", "node-2", "eth2", {}, "(unset)", "(unset)", "eth2"},
      {"GPUs have no HCCL", "nvidia", "10.0.0.2", "eth2", {}, "(unset)", "(unset)", "eth2"},
      {"the spec's choice",
       "ascend",
       "10.0.0.2",
       "eth2",
       {{"HCCL_IF_IP", "10.9.9.9"}, {"GLOO_SOCKET_IFNAME", "ib0"}},
       "10.9.9.9",
       "(unset)",
       "ib0"},
      {"HCCL_IF_IP would hide HCCL_SOCKET_IFNAME",
       "ascend",
       "10.0.0.2",
       "eth2",
       {{"HCCL_SOCKET_IFNAME", "=ib0"}},
       "(unset)",
       "(unset)",
       "eth2"},
  };
  for (const char* engine : {"torch", "megatron", "mindspeed-mm"}) {
    for (const Row& row : rows) {
      auto spec = spec_of(engine, {});
      spec.mutable_resources()->set_type(row.type);
      for (const auto& [name, value] : row.set)
        (*spec.mutable_runtime()->mutable_env())[name] = value;
      auto request = request_of(spec);
      request.nodes[1].address = row.address;
      request.nodes[1].interface = row.interface;
      const auto plan = plan_launch(request);
      ASSERT_TRUE(plan) << plan.error().message;
      EXPECT_EQ(env(plan->ranks[2], "HCCL_IF_IP"), row.ip) << row.what;
      EXPECT_EQ(env(plan->ranks[2], "HCCL_SOCKET_FAMILY"), row.family) << row.what;
      EXPECT_EQ(env(plan->ranks[2], "GLOO_SOCKET_IFNAME"), row.gloo) << row.what;
      EXPECT_EQ(env(plan->ranks[0], "GLOO_SOCKET_IFNAME"),
                row.set.contains("GLOO_SOCKET_IFNAME") ? "ib0" : "eth2")
          << "each node has its own";
    }
  }
}

TEST(Megatron, DevicesThatDoNotAscendWouldBeMixedUp) {
  const auto spec = spec_of("megatron", {});
  const auto plan = plan_launch(request_of(spec, 1, {2, 0}));
  ASSERT_FALSE(plan);
  EXPECT_THAT(plan.error().message, HasSubstr("resources.devices: [2, 0] does not ascend"));
  auto nvidia = spec;
  nvidia.mutable_resources()->set_type("nvidia");
  EXPECT_TRUE(plan_launch(request_of(nvidia, 1, {2, 0}))) << "CUDA keeps the order";
}

TEST(Megatron, SizesAreRefusedWhereItWouldRefuseThem) {
  struct Row {
    Words given;
    std::uint32_t nodes, devices;
    const char* problem_text;  // a part of the text; empty = no problem
  };
  const std::vector<Row> rows = {
      {{"--tensor-model-parallel-size", "8", "--pipeline-model-parallel-size", "2"}, 2, 8, ""},
      {{"--tensor-model-parallel-size", "8", "--pipeline-model-parallel-size=3"},
       2,
       8,
       "16 ranks cannot be split into tensor 8 x pipeline 3 x context 1"},
      {{"--context-parallel-size", "3"},
       1,
       8,
       "8 ranks cannot be split into tensor 1 x pipeline 1 x context 3"},
      {{"--tensor-model-parallel-size", "16"}, 1, 8, "a whole multiple of 16"},
      {{"--tensor-model-parallel-size", "2", "--expert-model-parallel-size", "8"},
       1,
       8,
       "experts cannot be spread over 8 of 8 ranks"},
      // core_r0.9 and later accept it
      {{"--context-parallel-size", "2", "--expert-model-parallel-size", "8"}, 1, 8, ""},
      {{"--tensor-model-parallel-size", "0"}, 1, 8, "must be at least 1"},
      {{"--tensor-model-parallel-size", "${devices}"}, 1, 8, ""},
      {{"--tensor-model-parallel-size", "3", "--yaml-cfg", "a.yaml"}, 1, 8, ""},
      {{"--tensor-model-parallel-size", "3", "--use-checkpoint-args"}, 1, 8, ""},
      {{"--tensor-model-parallel-size", "18446744073709551615", "--pipeline-model-parallel-size",
        "18446744073709551615"},
       1,
       8,
       "cannot be split"},
  };
  for (const Row& row : rows) {
    const std::string text = problem_text(spec_of("megatron", row.given, row.nodes, row.devices));
    if (*row.problem_text == '\0')
      EXPECT_EQ(text, "") << row.given[0] << " " << row.given[1];
    else
      EXPECT_THAT(text, HasSubstr(row.problem_text));
  }
}

TEST(Megatron, WeightsAloneAreNothingToGoOnFrom) {
  auto spec = spec_of("mindspeed-mm", {"--save", "/x", "--no-save-optim"});
  EXPECT_THAT(problem_text(spec),
              HasSubstr("launch.args[2]: with --no-save-optim checkpoints hold weights alone"));
  auto script = spec;
  script.mutable_launch()->set_per(v1::LAUNCH_PER_NODE);
  script.mutable_launch()->set_intercept(true);
  EXPECT_THAT(problem_text(script), Not(HasSubstr("--no-save-optim")))
      << "a node's script runs as it is; its launcher tells that nothing goes on from what it "
         "saves";
  spec.mutable_resume()->set_enabled(false);
  EXPECT_EQ(problem_text(spec), "");
}

TEST(Megatron, ALauncherInsideWouldStartAJobADevice) {
  for (const Words& run :
       {Words{"torchrun", "--nnodes", "2", "a.py"}, Words{"/usr/bin/torchrun", "a.py"},
        Words{"python3", "-u", "-m", "torch.distributed.run", "a.py"}, Words{"msrun", "a.py"}}) {
    auto spec = spec_of("torch", {});
    spec.mutable_launch()->clear_script();
    for (const std::string& word : run) spec.mutable_launch()->add_run(word);
    EXPECT_THAT(problem_text(spec), HasSubstr("starts ranks itself")) << run[0];
    spec.mutable_launch()->set_per(v1::LAUNCH_PER_ONCE);
    EXPECT_EQ(problem_text(spec), "") << run[0];
  }
  auto spec = spec_of("torch", {});
  spec.mutable_launch()->clear_script();
  for (const char* word : {"python3", "train.py", "-m", "torch.distributed.run"})
    spec.mutable_launch()->add_run(word);
  EXPECT_EQ(problem_text(spec), "") << "an argument of the script";
}

TEST(Hccl, VariablesThatItWouldRefuse) {
  struct Row {
    const char *name, *value, *problem_text;
  };
  for (const Row& row :
       {Row{"HCCL_CONNECT_TIMEOUT", "60", "'60' is refused by HCCL (120..7200, seconds)"},
        Row{"HCCL_CONNECT_TIMEOUT", "7200", ""},
        Row{"HCCL_CONNECT_TIMEOUT", "10m", "'10m' is refused"},
        Row{"HCCL_CONNECT_TIMEOUT", "${attempt}", ""}, Row{"HCCL_EXEC_TIMEOUT", "0", ""},
        Row{"HCCL_EXEC_TIMEOUT", "-1", "is refused"}, Row{"HCCL_EXEC_TIMEOUT", "1800", ""},
        Row{"HCCL_EXEC_TIMEOUT", "7200", "7200 needs HCCL_EVENT_TIMEOUT in addition to it"},
        Row{"HCCL_IF_BASE_PORT", "80", "is refused"},
        Row{"HCCL_EVENT_TIMEOUT", "10", "10 is not more than HCCL's own HCCL_EXEC_TIMEOUT, 1836"},
        Row{"HCCL_EVENT_TIMEOUT", "1837", ""}}) {
    for (const char* engine : {"torch", "megatron", "mindspeed-mm"}) {
      auto spec = spec_of(engine, {});
      (*spec.mutable_runtime()->mutable_env())[row.name] = row.value;
      if (*row.problem_text == '\0')
        EXPECT_EQ(problem_text(spec), "") << row.name << " " << row.value;
      else
        EXPECT_THAT(problem_text(spec), HasSubstr(row.problem_text));
    }
  }
  auto spec = spec_of("torch", {});
  auto& env = *spec.mutable_resume()->mutable_env();
  env["HCCL_EXEC_TIMEOUT"] = "1836";
  env["HCCL_EVENT_TIMEOUT"] = "1836";
  EXPECT_THAT(
      problem_text(spec),
      HasSubstr("resume.env.HCCL_EVENT_TIMEOUT: 1836 is not more than HCCL_EXEC_TIMEOUT, 1836"));
  env["HCCL_EVENT_TIMEOUT"] = "0";
  EXPECT_EQ(problem_text(spec), "") << "0: for ever";
  env.erase("HCCL_EVENT_TIMEOUT");
  env["HCCL_EXEC_TIMEOUT"] = "7200";
  (*spec.mutable_runtime()->mutable_env())["HCCL_EVENT_TIMEOUT"] = "7300";
  EXPECT_EQ(problem_text(spec), "") << "the one of runtime.env stands on a resume";
}

}  // namespace
}  // namespace muster::engine
