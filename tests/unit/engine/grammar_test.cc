#include <gtest/gtest.h>

#include <random>

#include "common/engine/model/grammar.h"

namespace muster::engine {
namespace {

std::unique_ptr<Grammar> row(const char* name) {
  v1::Watching watching;
  watching.set_grammar(name);
  return std::move(make_grammar(watching).value());
}

TEST(Megatron, ReadsEveryReleasesLine) {
  const auto grammar = row("megatron");
  struct {
    const char* line;
    std::int64_t step, total;
    double loss, seconds;
  } cases[] = {
      // core_r0.6 to r0.15
      {" [2025-06-18 14:02:11] iteration      100/    2000 | consumed samples:        25600 | "
       "elapsed time per iteration (ms): 8123.4 | throughput per GPU (TFLOP/s/GPU): 187.2 | "
       "learning rate: 1.250000E-06 | global batch size:   256 | lm loss: 8.134521E+00 | loss "
       "scale: 1.0 | grad norm: 2.417 | number of skipped iterations:   0 | number of nan "
       "iterations:   0 |",
       100, 2000, 8.134521, 8.1234},
      // up to core_r0.5: no time stamp
      {" iteration       10/    2000 | consumed samples:         1280 | elapsed time per iteration "
       "(ms): 1204.7 | lm loss: 9.5E+00 | loss scale: 1.0 |",
       10, 2000, 9.5, 1.2047},
      // core_r0.16: microseconds
      {" [2026-02-20 08:11:09.123456] iteration     1000/    2000 | elapsed time per iteration "
       "(ms): 2.0 | lm loss: 1.0E+00 |",
       1000, 2000, 1.0, 0.002},
      // the sample's own line
      {" [2026-01-02 03:04:05] iteration        5/     300 | consumed samples:           80 | "
       "elapsed time per iteration (ms): 11.2 | learning rate: 7.500000E-04 | global batch "
       "size:    16 | lm loss: 5.414131E+00 | loss scale: 1.0 | grad norm: 1.234 |",
       5, 300, 5.414131, 0.0112},
      // another key order, a loss of another name, seconds
      {"iteration 7/9 | loss: 2.5 | elapsed time per iteration (s): 3.5 |", 7, 9, 2.5, 3.5},
      {"iteration 7/9 | load_balancing_loss: 7.0 | lm loss: 2.5 | mtp_1 loss: 8 |", 7, 9, 2.5, 0},
      {"[rank3]:  iteration 7/9 | lm loss: 2.5 |\r", 7, 9, 2.5, 0},
  };
  for (const auto& one : cases) {
    const auto found = grammar->step(one.line);
    ASSERT_TRUE(found) << one.line;
    EXPECT_EQ(found->step, one.step);
    EXPECT_EQ(found->total, one.total);
    EXPECT_TRUE(found->has_loss);
    EXPECT_DOUBLE_EQ(found->loss, one.loss);
    EXPECT_DOUBLE_EQ(found->seconds, one.seconds);
  }
}

TEST(Megatron, ALossThatIsMissingOrNoNumberIsNone) {
  const auto grammar = row("megatron");
  for (const char* line :
       {" iteration       10/    2000 | consumed samples: 1280 | loss scale: 4294967296.0 | number "
        "of skipped iterations:  10 |",
        " iteration 10/ 2000 | lm loss: nan | mtp_1 loss: 4 |",
        " iteration 10/ 2000 | lm loss: inf |", " iteration 10/ 2000 | lm loss: |"}) {
    const auto found = grammar->step(line);
    ASSERT_TRUE(found) << line;
    EXPECT_FALSE(found->has_loss) << line;
  }
}

TEST(Megatron, TheEndOfATrainingHasAWord) {
  for (const char* engine : {"megatron", "mindspeed-mm", "auto"}) {
    const auto grammar = row(engine);
    EXPECT_EQ(grammar->read("[after training is done] datetime: 2024-03-01 11:00:03 ").kind,
              LineKind::TrainingDone);
    EXPECT_EQ(
        grammar->read("[rank0]: [after training is done] datetime: 2026-02-20 09:00:00.654321 ")
            .kind,
        LineKind::TrainingDone);
    EXPECT_EQ(grammar->read("skipping training (--skip-train is on) ...").kind,
              LineKind::TrainingSkipped);
    EXPECT_EQ(grammar->read("not skipping training").kind, LineKind::Nothing);
    const LogLine exiting =
        grammar->read("[exiting program at iteration 1500] datetime: 2024-03-01 11:00:00 ");
    EXPECT_EQ(exiting.kind, LineKind::Exiting);
    EXPECT_EQ(exiting.step.step, 1500);
    EXPECT_EQ(
        grammar->read("[exiting program after receiving SIGTERM.] datetime: 2024-03-01 11:00:00 ")
            .step.step,
        -1);
  }
}

TEST(MindFormers, TheEndOfATrainingHasAWord) {
  const auto grammar = row("mindformers");
  for (const char* line :
       {"2023-06-02 10:52:31,118 - mindformers - INFO - .........Training Over!.............",
        "2023-12-04 10:22:31,118 - mindformers[base_trainer.py:701] - INFO - .........Training "
        "Over!.............",
        "[INFO] 2023-07-11 10:49:26,307 [/w/mindformers/trainer/base_trainer.py:616] "
        "training_process: .........Training Over!............."})
    EXPECT_EQ(grammar->read(line).kind, LineKind::TrainingDone) << line;
  EXPECT_EQ(grammar
                ->read("2024-03-19 21:40:07,302 - mindformers[mindformers/run_check.py:80] - INFO "
                       "- Only_save_strategy is True, model.compile() finished, system exit! ")
                .kind,
            LineKind::StrategySaved);
}

TEST(Megatron, OtherLinesAreNoSteps) {
  const auto grammar = row("megatron");
  for (const char* line :
       {"", " ", "iteration", "iteration 1", "iteration 1/", "iteration 1/2",
        "iteration 99999999999999999999/ 5 |",
        " validation loss at iteration 100 | lm loss value: 2.3E+00 |",
        "saving checkpoint at iteration    1000 to /ckpt/run7 in torch format",
        "  successfully saved checkpoint from iteration    1000 to /ckpt/run7 [ t 1/2, p 1/4 ]",
        " loading checkpoint from /x at iteration 1000", "myiteration 1/2 | a: b |",
        "iterations 1/2 | a: b |",
        "[exiting program at iteration 5] datetime: 2026-01-01 00:00:00 "})
    EXPECT_FALSE(grammar->step(line)) << line;
}

TEST(Auto, ReadsCommonShapesToo) {
  const auto grammar = row("auto");
  struct {
    const char* line;
    std::int64_t step, total;
    bool has_loss;
    double loss;
  } cases[] = {
      {" iteration 5/ 10 | lm loss: 2.0E+00 |", 5, 10, true, 2.0},
      {"step 10/300 loss 2.31", 10, 300, true, 2.31},
      {"Step: 10, loss: 2.31", 10, 0, true, 2.31},
      {"[step=10] train_loss=2.5", 10, 0, true, 2.5},
      {"iter 250: loss 1.8741, time 21.52ms, mfu 3.2%", 250, 0, true, 1.8741},
      {"step 250: train loss 1.9, val loss 2.1", 250, 0, true, 1.9},
      {"2026-01-01 INFO global_step 7 / 9", 7, 9, false, 0},
      {"Iteration 12, Loss = 0.5", 12, 0, true, 0.5},
      {"{'step': 30, 'loss': 0.25}", 30, 0, true, 0.25},
  };
  for (const auto& one : cases) {
    const auto found = grammar->step(one.line);
    ASSERT_TRUE(found) << one.line;
    EXPECT_EQ(found->step, one.step) << one.line;
    EXPECT_EQ(found->total, one.total) << one.line;
    EXPECT_EQ(found->has_loss, one.has_loss) << one.line;
    if (one.has_loss) {
      EXPECT_DOUBLE_EQ(found->loss, one.loss) << one.line;
    }
  }
  for (const char* line :
       {"stepping 10/20", "next step 10", "step 1.5/3", "step 10ms/20", "misstep 5/9 loss 3",
        "steps per second: 10 loss unknown", "loss 2.5", "step 9/5", "step", "loss step 3 of"})
    EXPECT_FALSE(grammar->step(line)) << line;
}

TEST(Custom, UsesTheSpecsPatterns) {
  v1::Watching watching;
  watching.set_grammar("custom");
  watching.set_step_regex(R"(epoch \d+ batch (\d+))");
  watching.set_loss_regex(R"(L=(\S+))");
  watching.set_total("500");
  auto grammar = std::move(make_grammar(watching).value());
  auto found = grammar->step("epoch 1 batch 42 L=0.5");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->step, 42);
  EXPECT_EQ(found->total, 500);
  EXPECT_DOUBLE_EQ(found->loss, 0.5);
  EXPECT_FALSE(grammar->step("epoch 1 batch x"));
  watching.set_total(R"(of (\d+))");
  grammar = std::move(make_grammar(watching).value());
  EXPECT_EQ(grammar->step("epoch 1 batch 42 of 77")->total, 77);
  watching.set_step_regex("no group");
  EXPECT_FALSE(make_grammar(watching));
  watching.set_step_regex("(");
  EXPECT_FALSE(make_grammar(watching));
  watching.set_grammar("unheard-of");
  EXPECT_FALSE(make_grammar(watching));
}

// A pattern for which a backtracking matcher would take very long.
TEST(Custom, NoPatternTakesLongOnAnyLine) {
  v1::Watching watching;
  watching.set_grammar("custom");
  watching.set_step_regex("(a+)+$");
  const auto grammar = std::move(make_grammar(watching).value());
  EXPECT_FALSE(grammar->step(std::string(1 << 20, 'a') + "b"));
}

TEST(Grammar, AnyBytesAreRead) {
  std::mt19937 random(7);
  const std::string seed =
      " [2025-06-18 14:02:11] iteration      100/    2000 | elapsed time per iteration (ms): "
      "8123.4 | lm loss: 8.1E+00 | step 3/4 loss 5 Error: EI0006: Epoch:[  1/  2], step:[ 40/ "
      "3200], loss: 9.8 | 8.54 samples/s/p  3:18:43 }";
  const auto megatron = row("megatron"), automatic = row("auto");
  for (int round = 0; round < 20'000; ++round) {
    std::string line = seed.substr(random() % 40, random() % seed.size());
    for (std::uint32_t i = random() % 6; i > 0 && !line.empty(); --i)
      line[random() % line.size()] = static_cast<char>(random());
    const auto found = automatic->step(line);
    if (found) {
      EXPECT_GE(found->step, 0);
      EXPECT_GE(found->total, 0);
    }
    (void)megatron->read(line);
    EXPECT_GE(evidence_rank(line), 0);
  }
}

TEST(Evidence, CausesStandAboveConsequences) {
  const char* best_first[] = {
      "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 448.00 MiB. GPU 2 has a total "
      "capacity of 79.11 GiB of which 197.56 MiB is free.",
      "OSError: [Errno 28] No space left on device",
      "train.py: error: unrecognized arguments: --nope",
      "ValueError: shapes do not match",
      "RuntimeError: [Errno 98] Address already in use",
      "Segmentation fault (core dumped)",
      "bash: torchrun: command not found",
      "Killed",
      "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:598] Connection closed by "
      "peer [127.0.0.1]:4242",
      "[ERROR] 2025-03-02-09:15:40 (PID:40112, Device:3, RankID:11) ERR01100 OPS call acl api "
      "failed.",
      "[ERROR] something went wrong",
      "Traceback (most recent call last):",
  };
  for (std::size_t i = 0; i + 1 < std::size(best_first); ++i) {
    if (i == 3) continue;  // an exception and a taken port have the same rank
    EXPECT_GT(evidence_rank(best_first[i]), evidence_rank(best_first[i + 1]))
        << best_first[i] << "\n"
        << best_first[i + 1];
  }
  EXPECT_GT(evidence_rank(std::string("[rank6]: KeyError: 'x'\n")), 80);
  EXPECT_EQ(evidence_rank("[rank6]:[E515 13:40:02.517330114 ProcessGroupNCCL.cpp:607] [Rank 6] "
                          "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=20411)"),
            40);
  EXPECT_EQ(
      evidence_rank("EI0006: [PID: 40112] 2025-03-02-09:15:40.120.331 Getting socket times out."),
      40);
  EXPECT_EQ(evidence_rank("[PID: 40112] 2026-01-07-22:41:03.518.640 "
                          "Resource_Error_Insufficient_Device_Memory(EI0011): Failed to allocate 5 "
                          "bytes of NPU memory."),
            100);
}

TEST(Evidence, OrdinaryLinesAreNone) {
  for (const char* line :
       {"", " iteration 5/ 10 | lm loss: 2.0E+00 |", "WARNING: could not find the metadata file /x",
        "loading Error correction module", "0 errors", "  File \"train.py\", line 3, in <module>",
        "the error is small: 0.1", "exit"})
    EXPECT_EQ(evidence_rank(line), 0) << line;
}

// Every printed form of MindFormers, as table rows.
TEST(MindFormers, ReadsEveryReleasesLine) {
  const auto grammar = row("mindformers");
  struct {
    const char* line;
    std::int64_t step, total, epoch, step_in_epoch;
    double loss, seconds, span, rate, scale, norm, tflops;
  } cases[] = {
      {"2023-08-21 09:14:02,317 - mindformers - INFO - Epoch:[  1/  3], step:[   20/ 1875], "
       "loss:[10.621/10.638], time:412.318 ms, lr:2.6e-07, overflow cond: "
       "False, loss_scale: 65536.0",
       20, 5625, 1, 20, 10.621, 0, 0.412318, 2.6e-07, 65536, 0, 0},
      {"Epoch:[  3/  3], step:[ 1875/ 1875], loss:[10.621/10.638], time:412.318 ms, overflow cond: "
       "False, loss_scale: unavailable",
       5625, 5625, 3, 1875, 10.621, 0, 0.412318, 0, 0, 0, 0},
      {"[INFO] 2023-07-11 10:47:44,861 [mindformers/core/callback/callback.py:269] "
       "print_output_info: Epoch:[  1/  1], step:[    8/  125], loss:[2.499/2.499], time:7480.938 "
       "ms, lr:[0.], overflow cond: True, loss_scale: 16777216.0",
       8, 125, 1, 8, 2.499, 0, 7.480938, 0, 16777216, 0, 0},
      {"2023-12-04 10:22:31,118 - mindformers[callback.py:314] - INFO - { Epoch:[  1/  2], step:[  "
       " 40/ 3200], loss: 9.844, per_step_time: 1873ms, lr: 9.375e-07, overflow cond: False, "
       "loss_scale: 65536.0",
       40, 6400, 1, 40, 9.844, 1.873, 0, 9.375e-07, 65536, 0, 0},
      {"{ Epoch:[  2/  2], step:[   40/ 3200], loss:[9.844/9.9], per_step_time: 1873ms, overflow "
       "cond: False, loss_scale: 65536.0",
       3240, 6400, 2, 40, 9.844, 1.873, 0, 0, 65536, 0, 0},
      {"{ Epoch:[  1/  2], step:[ 1600/ 3200], loss: 2.313, per_step_time: 5230ms, lr: 1.0e-05, "
       "overflow cond: False, loss_scale: 65536.0, global_norm: [0.7341]",
       1600, 6400, 1, 1600, 2.313, 5.23, 0, 1e-05, 65536, 0.7341, 0},
      {"{ Epoch:[  1/  2], step:[ 1600/ 3200], loss: 2.313, per_step_time: 5230ms, lr: 1.0e-05, "
       "overflow cond: False, loss_scale: 65536.0, global_norm: [0.7341], "
       "train_throughput_per_npu: 171.176T",
       1600, 6400, 1, 1600, 2.313, 5.23, 0, 1e-05, 65536, 0.7341, 171.176},
      {"{ Epoch:[  1/  2], step:[ 1600/ 3200], loss: 2.313456, lm_loss: 2.300000, "
       "load_balancing_loss: 0.01, mtp_loss: 7.0, per_step_time: 5230ms, lr: 1.0e-05, overflow "
       "cond: False, loss_scale: 1.0, global_norm: 0.51, train_throughput_per_npu: 171.176T",
       1600, 6400, 1, 1600, 2.313456, 5.23, 0, 1e-05, 1, 0.51, 171.176},
      {"Epoch:[1/100000], step:[10000000/10000000], loss: 1.5, per_step_time: 1ms", 10'000'000,
       1'000'000'000'000, 1, 10'000'000, 1.5, 0.001, 0, 0, 0, 0, 0},
  };
  for (const auto& one : cases) {
    const auto found = grammar->step(one.line);
    ASSERT_TRUE(found) << one.line;
    EXPECT_EQ(found->step, one.step) << one.line;
    EXPECT_EQ(found->total, one.total) << one.line;
    EXPECT_EQ(found->epoch, one.epoch) << one.line;
    EXPECT_EQ(found->step_in_epoch, one.step_in_epoch) << one.line;
    EXPECT_DOUBLE_EQ(found->loss, one.loss) << one.line;
    EXPECT_DOUBLE_EQ(found->seconds, one.seconds) << one.line;
    EXPECT_DOUBLE_EQ(found->span_seconds, one.span) << one.line;
    EXPECT_DOUBLE_EQ(found->learning_rate, one.rate) << one.line;
    EXPECT_DOUBLE_EQ(found->loss_scale, one.scale) << one.line;
    EXPECT_DOUBLE_EQ(found->gradient_norm, one.norm) << one.line;
    EXPECT_DOUBLE_EQ(found->device_tflops, one.tflops) << one.line;
  }
}

TEST(MindFormers, ResemblesAStepAndIsNone) {
  const auto grammar = row("mindformers");
  for (const char* line :
       {"Epoch:[", "Epoch:[1/", "Epoch:[1/2", "Epoch:[1/2]", "Epoch:[1/2], step:[",
        "Epoch:[1/2], step:[3/", "Epoch:[1/2], step:[3/4", "Epoch:[1/2] batch:[3/4]",
        "myEpoch:[1/2], step:[3/4], loss: 1", "Epoch:[x/2], step:[3/4]", "Epoch:[1/2], step:[-3/4]",
        "Epoch:[1/2], step:[99999999999999999999/4]",
        "Epoch:[9223372036854775807/1], step:[1/9223372036854775807]",
        "Epoch: 1, step: 20, loss: 2.1", "epoch:[1/2], step:[3/4], loss: 1",
        "epoch: 1 step: 937, loss is 0.53", "| swin | 182.43 samples/s/p      | 233.43 (fps) |"})
    EXPECT_EQ(grammar->read(line).kind, LineKind::Nothing) << line;
}

TEST(MindFormers, RatesTellWhatRemains) {
  const auto grammar = row("mindformers");
  struct {
    const char* line;
    double rate, remaining;
  } cases[] = {
      {"   0.6% |█                                                 | 8.54 samples/s/p  3:18:43 }",
       8.54, 11923},
      {"  25.0% || 0.19120 samples/s/p  1 day, 6:58:24 }", 0.1912, 111504},
      {"   0.0% || 0.00600 samples/s/p  25 days, 2:07:47 }", 0.006, 2167667},
      {" 100.0% || 12 samples/s/p  0:00:00 }", 12, 0},
  };
  for (const auto& one : cases) {
    const LogLine found = grammar->read(one.line);
    ASSERT_EQ(found.kind, LineKind::Rate) << one.line;
    EXPECT_DOUBLE_EQ(found.step.device_samples_per_second, one.rate);
    EXPECT_DOUBLE_EQ(found.step.remaining_seconds, one.remaining);
    EXPECT_FALSE(grammar->step(one.line));
  }
  for (const char* line : {"samples/s/p", "samples/s/p  3:18:43", "x samples/s/p  3:18:43 }",
                           "| 8.54 samples/s/p  3:99:43 }", "| 8.54 samples/s/p  3 days }",
                           "| 8.54 samples/s/p  99999999999999999999:00:00 }"})
    EXPECT_EQ(grammar->read(line).kind, LineKind::Nothing) << line;
}

// In sink mode the callback runs once for each sink: the end of the sink shows how many steps a
// line covers.
TEST(MindFormers, ASinksEndTellsHowManyStepsItCovers) {
  const auto grammar = row("mindformers");
  const LogLine sink = grammar->read(
      "epoch_end: Per sink_size step time: 7518.224 ms, per step time: 1879.556 ms, avg loss: "
      "2.499");
  ASSERT_EQ(sink.kind, LineKind::EpochEnd);
  EXPECT_EQ(sink.step.covers, 4);
  EXPECT_DOUBLE_EQ(sink.step.seconds, 1.879556);
  EXPECT_DOUBLE_EQ(sink.step.loss, 2.499);
  EXPECT_EQ(grammar->read("Epoch time: 896140.140 ms, per step time: 477.941 ms, avg loss: 8.112")
                .step.covers,
            1875);
  EXPECT_EQ(grammar->read("per step time: 477.941 ms").kind, LineKind::Nothing);
  EXPECT_EQ(grammar->read("Epoch time: 5 ms, per step time: 0 ms").kind, LineKind::Nothing);
  EXPECT_EQ(grammar->read("Epoch time: 1e300 ms, per step time: 1e-300 ms").kind,
            LineKind::Nothing);
}

TEST(Losses, ThatAreNoNumberDifferFromNone) {
  struct {
    const char* grammar;
    const char* line;
    bool sign;
  } cases[] = {
      {"megatron", " iteration 10/ 2000 | lm loss: nan |", true},
      {"megatron", " iteration 10/ 2000 | lm loss: -inf |", true},
      // a nan is left out
      {"megatron", " iteration 10/ 2000 | loss scale: 1.0 | number of nan iterations:   3 |", true},
      {"megatron",
       " iteration 10/ 2000 | loss scale: 1.0 | number of skipped iterations: 10 | number of nan "
       "iterations:   0 |",
       false},
      {"megatron", " iteration 10/ 2000 | lm loss: 1.0 | number of nan iterations:   3 |", false},
      {"megatron", " iteration 10/ 2000 | lm loss: 1e999 |", false},
      {"mindformers", "Epoch:[1/1], step:[1/2], loss:[nan/2.4], time:1 ms", true},
      {"mindformers", "Epoch:[1/1], step:[1/2], loss: inf, per_step_time: 1ms", true},
      {"auto", "step 5 loss nan", true},
      {"auto", "step 5/9: loss info follows", false},
  };
  for (const auto& one : cases) {
    const auto found = row(one.grammar)->step(one.line);
    ASSERT_TRUE(found) << one.line;
    EXPECT_EQ(nan_sign(*found), one.sign) << one.line;
  }
}

TEST(Megatron, WorksOutWhatItsFieldsTellTogether) {
  const auto found = row("mindspeed-mm")
                         ->step(
                             " iteration 5/ 10 | elapsed time per iteration (ms): 2000.0 | global "
                             "batch size: 16 | tokens per sample: 1024 | loss: 1.0 |");
  ASSERT_TRUE(found);
  EXPECT_DOUBLE_EQ(found->samples_per_second, 8);
  EXPECT_DOUBLE_EQ(found->tokens_per_second, 8192);
  EXPECT_DOUBLE_EQ(row("megatron")
                       ->step(" iteration 5/ 10 | samples per second: 3.5 | global batch size: 16 "
                              "| elapsed time per iteration (s): 2 |")
                       ->samples_per_second,
                   3.5);
}

TEST(Auto, AnEnginesOwnWordsComeBeforeCommonOnes) {
  const auto grammar = row("auto");
  EXPECT_EQ(grammar->step("step 3/4 loss 1 |  iteration 5/ 10 | lm loss: 2.0E+00 |")->step, 5);
  EXPECT_EQ(
      grammar->step("{ Epoch:[  2/  2], step:[   40/ 3200], loss: 9.8, per_step_time: 1ms")->step,
      3240);
  EXPECT_EQ(grammar->step("step 3/4 loss 1, then step 4/4 loss 2")->step, 3);
  EXPECT_EQ(grammar->step(std::string(200, '.') + " step 3/4")->step, 3);
  EXPECT_FALSE(grammar->step(std::string(300, '.') + " step 3/4"));
  EXPECT_FALSE(grammar->step(std::string(500, '.') + " iteration 5/ 10 | lm loss: 2.0E+00 |"));
}

// A megabyte of anything costs only time proportional to its length, and is no step.
TEST(Grammar, HostileLinesAreRead) {
  for (const char* name : {"auto", "megatron", "mindspeed-mm", "mindformers", "deepspeed"}) {
    const auto grammar = row(name);
    for (const char c : {'7', '\0', '\xff', ' ', '[', '|', 'i'})
      EXPECT_EQ(grammar->read(std::string(1 << 20, c)).kind, LineKind::Nothing) << name << c;
    const std::string digits(1 << 20, '9');
    for (const std::string head : {" iteration ", " iteration 5/", "Epoch:[", "Epoch:[1/",
                                   "Epoch:[1/1], step:[", "step ", "per step time: "})
      EXPECT_FALSE(grammar->step(head + digits)) << name << head;
    const auto long_loss = row("auto")->step(" iteration 5/ 10 | lm loss: " + digits + " |");
    ASSERT_TRUE(long_loss);
    EXPECT_FALSE(long_loss->has_loss);
    std::string again;
    while (again.size() < (1 << 20))
      again += "step 1 Epoch:[1/1], step:[1 iteration 1/1 [after training is done] ";
    (void)grammar->read(again);
    (void)grammar->read(std::string("Epoch:[1/1], step:[1/2], lr: [") + std::string(1 << 20, ','));
  }
  const auto cut =
      row("megatron")->step(" iteration 5/ 10 | lm loss: 2.5 |" + std::string(1 << 20, 'x'));
  ASSERT_TRUE(cut);
  EXPECT_DOUBLE_EQ(cut->loss, 2.5);
}

TEST(Grammar, UnknownRowsAreNamedWithTheKnownOnes) {
  v1::Watching watching;
  watching.set_grammar("x");
  const auto found = make_grammar(watching);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().message,
            "reading progress: grammar 'x' is not known (auto | mindformers | megatron | "
            "mindspeed-mm | deepspeed | custom | none)");
}

}  // namespace
}  // namespace muster::engine
