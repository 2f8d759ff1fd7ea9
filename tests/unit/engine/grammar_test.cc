#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <random>

#include "common/engine/grammar.h"

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
      {" [2025-06-18 14:02:11] iteration      100/    2000 | consumed samples:        25600 | elapsed time per iteration (ms): 8123.4 | throughput per GPU "
       "(TFLOP/s/GPU): "
       "187.2 | learning rate: 1.250000E-06 | global batch size:   256 | lm loss: 8.134521E+00 | loss scale: 1.0 | grad norm: 2.417 | number of skipped "
       "iterations:   0 | "
       "number of nan iterations:   0 |",
       100, 2000, 8.134521, 8.1234},
      // up to core_r0.5: no time stamp
      {" iteration       10/    2000 | consumed samples:         1280 | elapsed time per iteration (ms): 1204.7 | lm loss: 9.5E+00 | loss scale: 1.0 |", 10,
       2000, 9.5, 1.2047},
      // core_r0.16: microseconds
      {" [2026-02-20 08:11:09.123456] iteration     1000/    2000 | elapsed time per iteration (ms): 2.0 | lm loss: 1.0E+00 |", 1000, 2000, 1.0, 0.002},
      // the sample's own
      {" [2026-01-02 03:04:05] iteration        5/     300 | consumed samples:           80 | elapsed time per iteration (ms): 11.2 | learning rate: "
       "7.500000E-04 | global batch "
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
       {" iteration       10/    2000 | consumed samples: 1280 | loss scale: 4294967296.0 | number of skipped iterations:  10 |",
        " iteration 10/ 2000 | lm loss: nan | mtp_1 loss: 4 |", " iteration 10/ 2000 | lm loss: inf |", " iteration 10/ 2000 | lm loss: |"}) {
    const auto found = grammar->step(line);
    ASSERT_TRUE(found) << line;
    EXPECT_FALSE(found->has_loss) << line;
  }
}

TEST(Megatron, OtherLinesAreNoSteps) {
  const auto grammar = row("megatron");
  for (const char* line :
       {"", " ", "iteration", "iteration 1", "iteration 1/", "iteration 1/2", "iteration 99999999999999999999/ 5 |",
        " validation loss at iteration 100 | lm loss value: 2.3E+00 |", "saving checkpoint at iteration    1000 to /ckpt/run7 in torch format",
        "  successfully saved checkpoint from iteration    1000 to /ckpt/run7 [ t 1/2, p 1/4 ]", " loading checkpoint from /x at iteration 1000",
        "myiteration 1/2 | a: b |", "[exiting program at iteration 5] datetime: 2026-01-01 00:00:00 "})
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
  for (const char* line : {"stepping 10/20", "next step 10", "step 1.5/3", "step 10ms/20", "misstep 5/9 loss 3", "steps per second: 10 loss unknown",
                           "loss 2.5", "step 9/5", "step", "loss step 3 of"})
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

// A pattern that takes a backtracking matcher until tomorrow.
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
      " [2025-06-18 14:02:11] iteration      100/    2000 | elapsed time per iteration (ms): 8123.4 | lm loss: 8.1E+00 | step 3/4 loss 5 Error: EI0006:";
  const auto megatron = row("megatron"), automatic = row("auto");
  for (int round = 0; round < 20'000; ++round) {
    std::string line = seed.substr(random() % 40, random() % seed.size());
    for (std::uint32_t i = random() % 6; i > 0 && !line.empty(); --i) line[random() % line.size()] = static_cast<char>(random());
    const auto found = automatic->step(line);
    if (found) {
      EXPECT_GE(found->step, 0);
      EXPECT_GE(found->total, 0);
    }
    megatron->step(line);
    EXPECT_GE(evidence_rank(line), 0);
  }
}

TEST(Evidence, CausesStandAboveConsequences) {
  const char* best_first[] = {
      "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 448.00 MiB. GPU 2 has a total capacity of 79.11 GiB of which 197.56 MiB is free.",
      "OSError: [Errno 28] No space left on device",
      "train.py: error: unrecognized arguments: --nope",
      "ValueError: shapes do not match",
      "RuntimeError: [Errno 98] Address already in use",
      "Segmentation fault (core dumped)",
      "bash: torchrun: command not found",
      "Killed",
      "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:598] Connection closed by peer [127.0.0.1]:4242",
      "[ERROR] 2025-03-02-09:15:40 (PID:40112, Device:3, RankID:11) ERR01100 OPS call acl api failed.",
      "[ERROR] something went wrong",
      "Traceback (most recent call last):",
  };
  for (std::size_t i = 0; i + 1 < std::size(best_first); ++i) {
    if (i == 3) continue;  // an exception and a taken port stand side by side
    EXPECT_GT(evidence_rank(best_first[i]), evidence_rank(best_first[i + 1])) << best_first[i] << "\n" << best_first[i + 1];
  }
  EXPECT_GT(evidence_rank(std::string("[rank6]: KeyError: 'x'\n")), 80);
  EXPECT_EQ(
      evidence_rank("[rank6]:[E515 13:40:02.517330114 ProcessGroupNCCL.cpp:607] [Rank 6] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=20411)"),
      40);
  EXPECT_EQ(evidence_rank("EI0006: [PID: 40112] 2025-03-02-09:15:40.120.331 Getting socket times out."), 40);
  EXPECT_EQ(
      evidence_rank("[PID: 40112] 2026-01-07-22:41:03.518.640 Resource_Error_Insufficient_Device_Memory(EI0011): Failed to allocate 5 bytes of NPU memory."),
      100);
}

TEST(Evidence, OrdinaryLinesAreNone) {
  for (const char* line : {"", " iteration 5/ 10 | lm loss: 2.0E+00 |", "WARNING: could not find the metadata file /x", "loading Error correction module",
                           "0 errors", "  File \"train.py\", line 3, in <module>", "the error is small: 0.1", "exit"})
    EXPECT_EQ(evidence_rank(line), 0) << line;
}

// Printed, not judged: the machine is shared, and this build is not optimised.
TEST(Speed, OfLinesThatAreNoSteps) {
  std::mt19937 random(1);
  std::vector<std::string> lines;
  std::size_t bytes = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string line = "2026-01-01 00:00:00 INFO dataloader worker read shard ";
    for (int k = 0; k < 60; ++k) line.push_back(static_cast<char>(' ' + random() % 90));
    bytes += line.size() + 1;
    lines.push_back(std::move(line));
  }
  const auto automatic = row("auto");
  const auto measure = [&](const char* what, auto&& look) {
    const auto start = std::chrono::steady_clock::now();
    int hits = 0;
    for (const std::string& line : lines) hits += look(line) ? 1 : 0;
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    std::printf("  %-10s %6.0f MB/s (%d hits)\n", what, static_cast<double>(bytes) / seconds / 1e6, hits);
  };
  measure("auto", [&](const std::string& line) { return automatic->step(line).has_value(); });
  measure("evidence", [&](const std::string& line) { return evidence_rank(line) > 0; });
}

}  // namespace
}  // namespace muster::engine
