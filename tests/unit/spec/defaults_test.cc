// The meaning of `auto` for keys that depend on the engine and on other keys of the spec.
#include <gtest/gtest.h>

#include "common/spec/parse.h"

namespace muster::spec {
namespace {

v1::JobSpec spec_from(std::string_view text) {
  const Parsed parsed = parse_yaml(text, {.base_dir = "/home/ada/exp"});
  EXPECT_EQ(format(parsed.problems, "job.yaml"), "") << text;
  return parsed.spec;
}

// The fence's shortcut for gangs in lockstep is only for jobs that save where muster directs them.
TEST(Defaults, LockstepIsForTrainingsThatSaveApart) {
  const auto lockstep = [](std::string_view rest) {
    return spec_from("name: x\n" + std::string(rest)).launch().lockstep();
  };
  EXPECT_TRUE(lockstep("engine: torch\nlaunch: {script: a.py, args: '--save ${save.dir}'}"));
  EXPECT_FALSE(lockstep("engine: torch\nlaunch: {script: a.py, args: '--save ${out}/ckpt'}"));
  EXPECT_FALSE(lockstep("engine: torch\nlaunch: {script: a.py, args: '--save $${save.dir}'}"))
      << "a dollar that is none of ours";
  EXPECT_TRUE(
      lockstep("engine: torch\nlaunch: {run: [bash, -c, 'python a.py --save $MUSTER_SAVE_DIR']}"));
  EXPECT_TRUE(
      lockstep("engine: torch\nlaunch: {script: a.py}\nruntime: {env: {CKPT: '${save.dir}/x'}}"));
  EXPECT_TRUE(lockstep("engine: torch\nlaunch: {script: a.py, cwd: '${save.dir}'}"));
  EXPECT_TRUE(lockstep(
      "engine: torch\nlaunch: {script: a.py}\nruntime: {setup: ['export CKPT=$MUSTER_SAVE_DIR']}"));
  EXPECT_FALSE(
      lockstep("engine: torch\nlaunch: {script: a.py}\nresume: {args: '--save ${save.dir}'}"))
      << "not of a first attempt";
  EXPECT_TRUE(
      lockstep("engine: megatron\nlaunch: {script: pretrain_gpt.py, args: '--load /x --save /x'}"))
      << "the engine's row gives it another";
  EXPECT_FALSE(
      lockstep("engine: megatron\nlaunch: {script: pretrain_gpt.py, args: '--yaml-cfg a.yaml'}"));
  EXPECT_FALSE(
      lockstep("engine: megatron\nlaunch: {script: pretrain_gpt.py, args: '--save --bf16'}"));
  EXPECT_FALSE(
      lockstep("engine: megatron\nlaunch: {run: [bash, -c, 'python pretrain_gpt.py --save /x']}"))
      << "no word of the command";
  EXPECT_TRUE(
      lockstep("engine: mindspeed-mm\nlaunch: {run: [python, pretrain_vlm.py, --save, /x]}"));
  EXPECT_TRUE(lockstep(
      "engine: mindformers\nlaunch: {run: [python, run_mindformer.py, --config, a.yaml]}"));
  EXPECT_FALSE(lockstep("engine: mindformers\nlaunch: {run: [python, own.py, --config, a.yaml]}"));
  EXPECT_FALSE(lockstep("engine: mindformers\nlaunch: {config: a.yaml, mode: eval}"));
  EXPECT_FALSE(lockstep("engine: command\nlaunch: {run: 'a ${save.dir}'}"));
  EXPECT_TRUE(lockstep("engine: torch\nlaunch: {script: a.py, lockstep: true}"))
      << "who knows better says so";
}

TEST(Defaults, SuccessOfATrainingIsItsLastStep) {
  const auto means = [](std::string_view rest) {
    return spec_from("name: x\n" + std::string(rest)).success().means_case();
  };
  using enum v1::SuccessSpec::MeansCase;
  for (const char* engine : {"megatron", "mindspeed-mm", "torch", "deepspeed", "command"}) {
    const auto of_training = engine[0] == 'm' ? kLastStep : kExit0;
    const std::string head = std::string("engine: ") + engine + "\nlaunch: {run: [python, a.py]}\n";
    EXPECT_EQ(means(head), of_training) << engine;
    EXPECT_EQ(means(head + "success: auto"), of_training) << engine;
    EXPECT_EQ(means(head + "success: exit0"), kExit0) << engine;
    EXPECT_EQ(means(head + "success: last-step"), kLastStep) << engine;
    EXPECT_EQ(means(head + "observe: {progress: none}"), kExit0) << engine;
    EXPECT_EQ(means(head + "observe: {progress: {step: 'at (\\d+)'}}"), kExit0)
        << engine << ": of how many is not said";
    EXPECT_EQ(means(head + "observe: {progress: {step: 'at (\\d+)', total: 9}}"), of_training)
        << engine;
    EXPECT_EQ(means(head + "success: {regex: done}"), kRegex) << engine;
  }
  EXPECT_EQ(means("engine: megatron\nlaunch: {per: once, run: [bash, train.sh]}"), kLastStep);
  EXPECT_EQ(means("engine: megatron\nlaunch: {script: pretrain_gpt.py, args: --skip-train}"),
            kExit0);
  for (const auto& [mode, expected] :
       {std::pair{"train", kLastStep}, std::pair{"finetune", kLastStep}, std::pair{"eval", kExit0},
        std::pair{"predict", kExit0}})
    EXPECT_EQ(
        means(std::string("engine: mindformers\nlaunch: {config: a.yaml, mode: ") + mode + "}"),
        expected)
        << mode;
}

// Regression: a prediction by a model's own script prints no steps, and was declared failed
// although it had finished.
TEST(Defaults, ARunModeThatIsNoTrainingHasNoLastStep) {
  const auto means = [](std::string_view launch) {
    return spec_from("name: x\nengine: mindformers\nlaunch: " + std::string(launch))
        .success()
        .means_case();
  };
  using enum v1::SuccessSpec::MeansCase;
  for (const auto& [launch, expected] : {
           std::pair{"{run: python3 run_qwen.py --config c.yaml --run_mode predict}", kExit0},
           std::pair{"{run: python3 run_qwen.py --config c.yaml --run_mode=predict}", kExit0},
           std::pair{"{script: run_qwen.py, args: --config c.yaml --run_mode eval}", kExit0},
           std::pair{"{run: [bash, -c, 'cd a && python3 run_qwen.py --run_mode predict']}", kExit0},
           std::pair{"{run: [bash, -c, 'cd a && python3 run_qwen.py --run_mode finetune; echo']}",
                     kLastStep},
           std::pair{"{run: python3 run_qwen.py --config c.yaml --run_mode train}", kLastStep},
           std::pair{"{script: run_qwen.py, args: --run_mode=finetune}", kLastStep},
           std::pair{"{run: python3 run_qwen.py --config c.yaml}", kExit0},
           std::pair{"{run: [python3, run_qwen.py, --run_mode, '${job.name}']}", kExit0},
           std::pair{"{run: python3 run_mindformer.py --config c.yaml}", kLastStep},
       })
    EXPECT_EQ(means(launch), expected) << launch;
}

}  // namespace
}  // namespace muster::spec
