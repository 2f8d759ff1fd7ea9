// What was captured from a script, and the spec that is made from it.
#include "client/import/imported.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/utf8.h"
#include "tests/support/checkout.h"

namespace muster::import {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

bool nowhere(const std::string&) { return false; }

Observed observed(std::vector<std::string> command, std::string script,
                  std::vector<Captured> calls) {
  Observed seen{.command = std::move(command), .directory = "/data/code"};
  if (!script.empty()) seen.script = {.name = "run.sh", .text = std::move(script)};
  seen.calls = std::move(calls);
  seen.programs = "/tmp/i/bin";
  return seen;
}

Captured call(std::vector<std::string> words, Variables env = {},
              std::string directory = "/data/code") {
  return {.directory = std::move(directory), .words = std::move(words), .env = std::move(env)};
}

std::string yaml(const Result<Imported>& imported) {
  return imported ? launcher::to_yaml(imported->draft) : "refused: " + imported.error().message;
}

TEST(Imported, ALaunchersOwnCommandLine) {
  const std::vector<std::string> words = {"torchrun", "--nproc_per_node", "2", "train.py",
                                          "--out",    "${HOME}"};
  const auto imported = import_observed(observed(words, "", {call(words)}), nowhere);
  EXPECT_EQ(yaml(imported),
            R"yaml(# Made by 'muster import -- torchrun --nproc_per_node 2 train.py --out ${HOME}'.
name: train
engine: torch
code:
  at: /data/code
# launched: torchrun --nproc_per_node 2 train.py --out ${HOME}
launch:
  script: train.py
  args: |
    --out $${HOME}
resources:
  # torchrun has no --nnodes
  nodes: 1
  # torchrun --nproc_per_node 2
  devices: 2
)yaml");
}

TEST(Imported, ACommandLineIsCutBehindACharacter) {
  for (const char* front : {"", "x", "xx"}) {
    std::string path = front;
    while (path.size() < 300) path += "\xe8\xaf\xad";
    const std::vector<std::string> words = {"torchrun", "--nproc_per_node", "2", "train.py", path};
    const auto imported = import_observed(observed(words, "", {call(words)}), nowhere);
    ASSERT_TRUE(imported);
    EXPECT_TRUE(is_utf8(imported->draft.remarks.at("launch").front()))
        << imported->draft.remarks.at("launch").front();
    EXPECT_TRUE(is_utf8(yaml(imported)));
  }
}

TEST(Imported, AProgramThatIsNoScriptGivesTheJobItsName) {
  const std::vector<std::string> words = {
      "torchrun", "--nproc_per_node", "2", "--no-python", "./a.out", "1", "2"};
  const auto imported = import_observed(observed(words, "", {call(words)}), nowhere);
  ASSERT_TRUE(imported);
  EXPECT_EQ(imported->draft.name, "a.out");
}

TEST(Imported, AScriptThatOnlyLaunches) {
  const std::string script =
      "export A=1 HF_TOKEN=x\nNNODES=2\nGBS=$((NNODES*4))\ntorchrun --nnodes $NNODES "
      "--nproc_per_node 8 train.py --gbs $GBS | tee log\n";
  const auto imported = import_observed(
      observed(
          {"bash", "run.sh"}, script,
          {call({"torchrun", "--nnodes", "2", "--nproc_per_node", "8", "--master_addr", "h",
                 "train.py", "--gbs", "8"},
                {{"A", "1"}, {"HF_TOKEN", "x"}, {"CUDA_VISIBLE_DEVICES", "0,1,2,3,4,5,6,7"}})}),
      nowhere);
  EXPECT_EQ(yaml(imported), R"yaml(# Made by 'muster import -- bash run.sh'.
name: run
engine: torch
code:
  at: /data/code
runtime:
  # what the script had exported when it launched
  # left out, because muster sets them: CUDA_VISIBLE_DEVICES
  # left out, because they look like secrets: HF_TOKEN
  env:
    A: "1"
# launched: torchrun --nnodes 2 --nproc_per_node 8 --master_addr h train.py --gbs 8
# decided by the placement: --master_addr h
launch:
  script: train.py
  # with the values that the script's variables had when it was imported
  # check this: run.sh:3: 'GBS=$((NNODES*4))' was computed from NNODES; the result is in the spec, and does not follow its resources
  args: |
    --gbs 8
resources:
  # torchrun --nnodes 2
  nodes: 2
  # torchrun --nproc_per_node 8
  # which: the script's CUDA_VISIBLE_DEVICES
  devices: "[0,8)"
)yaml");
  ASSERT_TRUE(imported);
  EXPECT_THAT(imported->notes, testing::Contains(HasSubstr("HF_TOKEN")));
  EXPECT_THAT(yaml(imported), Not(HasSubstr("HF_TOKEN: ")));
}

TEST(Imported, AScriptThatDoesMoreStaysAsItIs) {
  const std::string script =
      "NNODES=1\nmkdir -p logs\nsteps=$((NNODES*100))\ntorchrun --nnodes $NNODES --nproc_per_node "
      "2 train.py --data $DATA --steps $steps\n";
  Observed seen = observed(
      {"bash", "run.sh", "a b", "$x"}, script,
      {call({"torchrun", "--nnodes", "1", "--nproc_per_node", "2", "train.py", "--steps", "100"},
            {{"A", "1"}})});
  seen.before = {{"DATA", "/d"}, {"OTHER", "1"}};
  const auto imported = import_observed(seen, nowhere);
  EXPECT_EQ(yaml(imported), R"yaml(# Made by 'muster import -- bash run.sh a b $x'.
name: run
engine: torch
code:
  at: /data/code
runtime:
  # what the script reads from the environment that it was imported in
  env:
    DATA: /d
# launched: torchrun --nnodes 1 --nproc_per_node 2 train.py --steps 100
launch:
  per: node
  # the script as it is, on every node: it does more than launch (line 2: mkdir -p logs);
  # muster answers its launcher with the job's nodes, processes and master
  # check this: run.sh:3: 'steps=$((NNODES*100))' is computed from the script's own NNODES, while the launcher gets the job's: take the script's assignments of such variables out, or replace them by launch.vars
  run: [bash, run.sh, "a b", "$$x"]
resources:
  # torchrun --nnodes 1
  nodes: 1
  # torchrun --nproc_per_node 2
  devices: 2
)yaml");
}

TEST(Imported, MsrunInAScriptWantsItsLauncherNamed) {
  const auto imported =
      import_observed(observed({"bash", "run.sh"},
                               "source env.sh\nmsrun --worker_num 8 run_mindformer.py --config "
                               "x.yaml --run_mode finetune\n",
                               {call({"msrun", "--worker_num", "8", "run_mindformer.py", "--config",
                                      "x.yaml", "--run_mode", "finetune"})}),
                      nowhere);
  for (const char* part : {"engine: mindformers\n", "  per: node\n", "  launcher: msrun\n",
                           "  mode: finetune\n", "  run: [bash, run.sh]\n", "  devices: 8\n"})
    EXPECT_THAT(yaml(imported), HasSubstr(part));
  EXPECT_THAT(yaml(imported), Not(HasSubstr("config:")));
}

Captured rank(int number, int card, const std::string& directory = "/data/code") {
  const std::string id = std::to_string(number);
  return call({"python", "-u", "run_mindformer.py", "--config=x.yaml", "--run_mode", "train",
               "--use_parallel=True", "--id=" + id},
              {{"RANK_ID", id},
               {"DEVICE_ID", std::to_string(card)},
               {"RANK_SIZE", "4"},
               {"RANK_TABLE_FILE", "/t.json"},
               {"A", "1"},
               {"OWN", id}},
              directory);
}

TEST(Imported, RanksInTheBackground) {
  const auto imported = import_observed(
      observed({"bash", "run.sh"}, "for((i=0;i<2;i++)); do python ... & done\n",
               {rank(1, 5, "/data/code/scripts/mf_parallel1"),
                rank(0, 4, "/data/code/scripts/mf_parallel0")}),
      [](const std::string& path) { return path == "/data/code/run_mindformer.py"; });
  EXPECT_EQ(yaml(imported), R"yaml(# Made by 'muster import -- bash run.sh'.
name: run
engine: mindformers
code:
  at: /data/code
runtime:
  # what the script had exported for its ranks
  # left out, because muster sets them: RANK_SIZE, RANK_TABLE_FILE
  env:
    A: "1"
# the script started its ranks itself: python -u run_mindformer.py --config=x.yaml --run_mode train --use_parallel=True --id=1
# muster starts them, without the script
# the rank table is muster's; resources.rank_table takes one of your own
launch:
  mode: train
  script: run_mindformer.py
  config: x.yaml
  args: |
    --use_parallel=True
    --id=${rank}
resources:
  # RANK_SIZE=4, 2 to a node
  nodes: 2
  # DEVICE_ID of the script's ranks
  devices: "[4,6)"
)yaml");
}

TEST(Imported, RanksOfTorchAndOfAScheduler) {
  const auto torch =
      import_observed(observed({"bash", "run.sh"}, "x\n",
                               {call({"python3", "train.py", "--r", "0", "--out=/d0/${x}0.bin"},
                                     {{"RANK", "0"}, {"LOCAL_RANK", "0"}, {"WORLD_SIZE", "2"}}),
                                call({"python3", "train.py", "--r", "1", "--out=/d0/${x}1.bin"},
                                     {{"RANK", "1"}, {"LOCAL_RANK", "1"}, {"WORLD_SIZE", "2"}})}),
                      nowhere);
  for (const char* part : {"engine: torch\n", "    --r ${rank}\n    --out=/d0/$${x}${rank}.bin\n",
                           "  nodes: 1\n", "  devices: 2\n"})
    EXPECT_THAT(yaml(torch), HasSubstr(part));
  const auto cluster = import_observed(
      observed({"bash", "run.sh"}, "x\n",
               {call({"python3", "train.py"}, {{"MS_ROLE", "MS_SCHED"}}),
                call({"python3", "train.py"}, {{"MS_ROLE", "MS_WORKER"}, {"MS_NODE_ID", "0"}}),
                call({"python3", "train.py"}, {{"MS_ROLE", "MS_WORKER"}, {"MS_NODE_ID", "1"}})}),
      nowhere);
  for (const char* part :
       {"engine: mindformers\n", "  launcher: msrun\n", "  script: train.py\n", "  devices: 2\n"})
    EXPECT_THAT(yaml(cluster), HasSubstr(part));
}

// A rank's own variable counts first, then the arguments.
TEST(Imported, RanksOfMegatronUnlessTheyHaveARankTable) {
  const std::vector<std::string> words = {"python3", "train.py",      "--micro-batch-size",
                                          "1",       "--train-iters", "9"};
  const Variables torch = {{"RANK", "0"}, {"WORLD_SIZE", "1"}};
  Variables table = torch;
  table["RANK_ID"] = "0";
  const auto of = [&](const Variables& env) {
    return yaml(import_observed(observed({"bash", "run.sh"}, "x\n", {call(words, env)}), nowhere));
  };
  EXPECT_THAT(of(torch), HasSubstr("engine: megatron\n"));
  EXPECT_THAT(of(torch), Not(HasSubstr("cwd:")));
  EXPECT_THAT(of(torch), Not(HasSubstr("rank table")));
  EXPECT_THAT(of(table), HasSubstr("engine: mindformers\n"));
  EXPECT_THAT(of(table), HasSubstr("  cwd: /data/code\n"));
  EXPECT_THAT(of(table), HasSubstr("# the rank table is muster's"));
}

TEST(Imported, AnEngineByItsArgumentsIsRemarkedOn) {
  const auto of = [](std::vector<std::string> words) {
    return yaml(import_observed(observed(words, "", {call(words)}), nowhere));
  };
  EXPECT_THAT(of({"torchrun", "x.py", "--mm-model", "m.json"}),
              HasSubstr("# by the arguments of what is launched\nengine: mindspeed-mm\n"));
  EXPECT_THAT(of({"torchrun", "x.py"}), Not(HasSubstr("by the arguments")));
  EXPECT_THAT(of({"msrun", "x.py"}), Not(HasSubstr("by the arguments")));
}

TEST(Imported, WhatOneJobCannotBeIsReported) {
  const auto problem_text = [](const Observed& seen) {
    const auto imported = import_observed(seen, nowhere);
    return imported ? std::string() : imported.error().message;
  };
  EXPECT_THAT(problem_text(observed({"bash", "run.sh"}, "true\n", {})),
              HasSubstr("it launched nothing that muster sees"));
  Observed failed = observed({"bash", "run.sh"}, "false\n", {});
  failed.how_ended = "status 1";
  EXPECT_THAT(problem_text(failed),
              HasSubstr("it ended with status 1 before it launched anything"));
  EXPECT_THAT(
      problem_text(observed({"bash", "run.sh"}, "x\n",
                            {call({"torchrun", "a.py"}), call({"torchrun", "b.py"})})),
      HasSubstr("it launches 2 times: 'torchrun a.py', 'torchrun b.py'; a job has one launch"));
  EXPECT_THAT(problem_text(observed({"bash", "run.sh"}, "x\n",
                                    {call({"torchrun", "--nnodes", "1:4", "a.py"})})),
              HasSubstr("--nnodes 1:4 lets the number of nodes change"));
  EXPECT_THAT(problem_text(observed({"bash", "run.sh"}, "x\n", {rank(0, 0), rank(0, 1)})),
              HasSubstr("it started rank 0 twice"));
  Captured other = rank(1, 1);
  other.words[2] = "eval.py";
  EXPECT_THAT(
      problem_text(observed({"bash", "run.sh"}, "x\n", {rank(0, 0), other})),
      HasSubstr("ranks 0 and 1 are started with different words ('run_mindformer.py', 'eval.py')"));
}

TEST(Imported, AFailureBehindTheLaunchIsReported) {
  Observed seen =
      observed({"bash", "run.sh"}, "torchrun --nproc_per_node gpu a.py\ngrep x nothing\n",
               {call({"torchrun", "--nproc_per_node", "gpu", "a.py"})});
  seen.how_ended = "status 2";
  const auto imported = import_observed(seen, nowhere);
  ASSERT_TRUE(imported);
  EXPECT_THAT(imported->notes, ElementsAre(HasSubstr("resources.devices is 8 until you change it"),
                                           HasSubstr("ended with status 2 behind its launch")));
  EXPECT_THAT(yaml(imported),
              HasSubstr("  # a spec has a number: as many as your nodes have\n  devices: 8\n"));
}

TEST(Scripts, AreFoundInACommandLine) {
  EXPECT_THAT(shell_script_of({"bash", "-c", "true"}, "/").name, IsEmpty());
  EXPECT_THAT(shell_script_of({"bash"}, "/").name, IsEmpty());
  EXPECT_THAT(shell_script_of({}, "/").name, IsEmpty());
  EXPECT_THAT(shell_script_of({"bash", "no-such-script.sh"}, "/").name, IsEmpty());
  EXPECT_EQ(shell_script_of({"bash", "-x", "tests/run"}, test::checkout()).name, "tests/run");
  EXPECT_EQ(shell_script_of({test::checkout("tests/run")}, "/").name, test::checkout("tests/run"));
  EXPECT_THAT(shell_script_of({test::checkout("tests/tidy/tidy.py")}, "/").name, IsEmpty())
      << "a program of another kind";
}

TEST(Scripts, VariablesThatTheSpecReplacesAreMusters) {
  const ShellScript script{.name = "run.sh",
                           .text = "NNODES=1\nWORLD_SIZE=$((8*$NNODES))\nX=$((WORLD_SIZE*2))\n"};
  EXPECT_THAT(computed_warnings(script, {}),
              ElementsAre(HasSubstr("run.sh:3: 'X=$((WORLD_SIZE*2))'")));
  EXPECT_THAT(computed_warnings(script, {"NNODES"}), IsEmpty());
}

// Regression: `launch.vars: {GBS: 64}` had replaced the value, and there was still a warning.
TEST(Scripts, AComputedValueThatTheSpecReplacesIsNotWarnedOf) {
  const ShellScript script{
      .name = "run.sh", .text = "NNODES=1\nGBS=$((NNODES * 8))\nexport STEPS=$((NNODES * 100))\n"};
  EXPECT_THAT(computed_warnings(script, {}),
              ElementsAre(HasSubstr("run.sh:2: "), HasSubstr("run.sh:3: ")));
  EXPECT_THAT(computed_warnings(script, {"GBS"}), ElementsAre(HasSubstr("run.sh:3: ")));
  EXPECT_THAT(computed_warnings(script, {"GBS", "STEPS"}), IsEmpty());
}

// The words of the multimodal tutorials, in a string that is built before the launch.
TEST(Scripts, WeightsAloneAreWarnedOf) {
  const ShellScript script{.name = "run.sh",
                           .text =
                               "# --no-save-optim\nOUTPUT_ARGS=\"\n  --save $SAVE \\\n  "
                               "--no-save-optim \\\n  --no-save-rng\"\ntorchrun t.py $OUTPUT_ARGS "
                               "--no-save-optimizer-states\n"};
  EXPECT_THAT(weights_warnings(script, {}),
              ElementsAre(HasSubstr("run.sh:4: --no-save-optim: checkpoints hold weights alone")));
  EXPECT_THAT(weights_warnings(script, {"OUTPUT_ARGS"}), IsEmpty());
}

}  // namespace
}  // namespace muster::import
