#include "agent/logs/evidence.h"

#include <gtest/gtest.h>

namespace muster::agent {
namespace {

TEST(Evidence, the_last_line_of_a_traceback_whatever_its_exception_is_called) {
  EXPECT_EQ(best_evidence("step 1\nTraceback (most recent call last):\n  File \"train.py\", line "
                          "3, in <module>\n    raise Oops('no')\nmy.Oops: no\nbye\n"),
            "my.Oops: no (train.py:3, in <module>)");
  EXPECT_EQ(best_evidence("[rank3]: Traceback (most recent call last):\n[rank3]:   File \"x.py\", "
                          "line 1, in f\n[rank3]: my.Oops: no\n"),
            "[rank3]: my.Oops: no (x.py:1, in f)");
}

// Regression: `why` named the exception, but not where it was raised.
TEST(Evidence, the_last_frame_is_where_it_came_from) {
  const std::string head =
      "Traceback (most recent call last):\n  File \"/a/train.py\", line 9, in <module>\n    "
      "main()\n";
  EXPECT_EQ(best_evidence(head + "  File \"/a/data.py\", line 214, in load\n    raise "
                                 "ValueError(x)\n           ^^^^\nValueError: bad config\nbye\n"),
            "ValueError: bad config (/a/data.py:214, in load)");
  EXPECT_EQ(best_evidence("ValueError: bad config\n"), "ValueError: bad config");
  EXPECT_EQ(
      best_evidence(head +
                    "KeyError: 'x'\nRuntimeError: CUDA out of memory. Tried to allocate 2 GiB\n"),
      "RuntimeError: CUDA out of memory. Tried to allocate 2 GiB")
      << "of another line";
  const std::string cut = best_evidence(head + "ValueError: " + std::string(4000, 'x') + "\n");
  EXPECT_EQ(cut.size(), kEvidenceMost);
  EXPECT_TRUE(cut.ends_with("xxx (/a/train.py:9, in <module>)"));
}

// Regression: a program's error was followed by errors that Python met during its cleanup of the
// same rank, and `why` named the last of these.
TEST(Evidence, what_was_ignored_is_no_cause) {
  const std::string ignored =
      "Exception ignored in: <function Pool.__del__ at 0x7f>\nTraceback (most recent call last):\n "
      " File \"pool.py\", line 3, in __del__\n"
      "TypeError: 'NoneType' object is not callable\n";
  const std::string real =
      "Traceback (most recent call last):\n  File \"train.py\", line 3, in f\nValueError: bad "
      "config\n";
  EXPECT_EQ(best_evidence(real + ignored), "ValueError: bad config (train.py:3, in f)");
  EXPECT_EQ(best_evidence(ignored + real), "ValueError: bad config (train.py:3, in f)");
  EXPECT_EQ(best_evidence("ERROR: the tokenizer is missing\nException ignored in: "
                          "<_io.TextIOWrapper>\nBrokenPipeError: [Errno 32] Broken pipe\nstep 1\n"),
            "ERROR: the tokenizer is missing");
  const FoundEvidence alone = find_evidence("step 1\n" + ignored);
  EXPECT_EQ(alone.line, "TypeError: 'NoneType' object is not callable (pool.py:3, in __del__)")
      << "better than nothing";
  EXPECT_EQ(alone.kind, v1::EVIDENCE_KIND_UNSPECIFIED);
}

// rich and loguru color their output. Regression: a colored line was not recognized as an error,
// and color codes were quoted.
TEST(Evidence, paint_hides_no_error) {
  EXPECT_EQ(best_evidence("\x1b[1;31mRuntimeError: bad\x1b[0m shape\x1b[K\nstep 3\n"),
            "RuntimeError: bad shape");
  EXPECT_EQ(best_evidence("\x1b[31mTraceback (most recent call last):\x1b[0m\n  File \"x.py\", "
                          "line 1, in f\n\x1b[31mmy.Oops: no\x1b[0m\n"),
            "my.Oops: no (x.py:1, in f)");
}

TEST(Evidence, the_last_of_a_chain) {
  EXPECT_EQ(best_evidence("Traceback (most recent call last):\n  a\nKeyError: 'x'\n\nDuring "
                          "handling of the above exception, another exception occurred:\n\n"
                          "Traceback (most recent call last):\n  b\nValueError: bad config\n"),
            "ValueError: bad config");
}

TEST(Evidence, memory_is_a_better_cause_than_what_followed) {
  EXPECT_EQ(
      best_evidence(
          "RuntimeError: CUDA out of memory. Tried to allocate 2 GiB\nConnection reset by peer\n"),
      "RuntimeError: CUDA out of memory. Tried to allocate 2 GiB");
}

TEST(Evidence, arguments_that_nobody_can_see) {
  EXPECT_EQ(best_evidence("usage: train.py [-h]\ntrain.py: error: unrecognized arguments:  \n"),
            "train.py: error: unrecognized arguments:  (a lone blank: in the script a line ends "
            "with a backslash and a blank behind it)");
  EXPECT_EQ(best_evidence("train.py: error: unrecognized arguments: --lr\n"),
            "train.py: error: unrecognized arguments: --lr");
}

TEST(Evidence, a_quiet_log_tells_nothing) { EXPECT_EQ(best_evidence("step 1\nstep 2\n"), ""); }

TEST(Evidence, any_bytes_become_text_of_at_most_a_kibibyte) {
  const std::string line = "ValueError: \xff\xc3\x28 \xe4\xbd\xa0\x1b[0m" + std::string(4000, 'x');
  const std::string text = best_evidence(line);
  EXPECT_LE(text.size(), kEvidenceMost);
  EXPECT_TRUE(
      text.starts_with("ValueError: ?"
                       "?( \xe4\xbd\xa0xxx"))
      << text.substr(0, 40);
}

TEST(Evidence, tells_causes_from_consequences) {
  struct Case {
    const char* line;
    v1::EvidenceKind kind;
  };
  constexpr auto kCause = v1::EVIDENCE_KIND_CAUSE, kConsequence = v1::EVIDENCE_KIND_CONSEQUENCE,
                 kNeither = v1::EVIDENCE_KIND_UNSPECIFIED;
  for (const auto& [line, kind] : std::initializer_list<Case>{
           {"ValueError: bad shape", kCause},
           {"my.Oops", kNeither},  // outside a traceback it is no exception
           {"RuntimeError: CUDA out of memory. Tried to allocate 2 GiB", kCause},
           {"EI0004: Failed to parse the ranktable file", kCause},
           {"EZ1001: the operator does not know this shape", kCause},
           {"E30008: the data of the queue did not come", kCause},
           {"line 3: 4711 Killed    python train.py", kCause},
           {"ERROR the tokenizer is missing", kCause},
           {"EI0009: transport init error", kConsequence},
           {"EI0013: error cqe between two devices", kConsequence},
           {"EI0006: Getting socket times out. Reason: 1. The remote does not initiate a connect "
            "request.",
            kConsequence},
           {"EI0002: The wait execution of the Notify register times out.", kConsequence},
           {"Connection reset by peer", kConsequence},
           {"torch.distributed.DistBackendError: NCCL error: remote process exited or there was a "
            "network error",
            kConsequence},
           {"ConnectionRefusedError: [Errno 111] Connection refused", kConsequence},
           {"Spawned worker process number is not as expected", kConsequence},
           {"EE9999: Inner Error!", kNeither},
           {"RuntimeError: Run task error. Please refer to 'Ascend Error Message'", kNeither},
           {"Traceback (most recent call last):", kNeither},
           {"KeyboardInterrupt", kNeither},
           {"Distributed job exited with exception. Please check logs in directory: /x", kNeither},
           {"all is well", kNeither},
       }) {
    EXPECT_EQ(find_evidence(line).kind, kind) << line;
  }
  EXPECT_EQ(find_evidence("Traceback (most recent call last):\n  a\nmy.Oops: no\n").kind, kCause);
  EXPECT_EQ(find_evidence("Connection reset by peer\nERROR: it went wrong\n").kind, kConsequence)
      << "of the line that was chosen";
}

TEST(Evidence, the_code_is_in_the_line_though_its_place_was_cut_off) {
  const std::string line =
      "[ERROR] " + std::string(3000, 'x') + " Title(EI0006): Getting socket times out";
  const FoundEvidence found = find_evidence(line);
  EXPECT_EQ(found.line.substr(0, 20), "EI0006: [ERROR] xxxx");
  EXPECT_EQ(found.line.size(), kEvidenceMost);
  EXPECT_EQ(find_evidence("EI0006: Getting socket times out").line,
            "EI0006: Getting socket times out")
      << "once is enough";
}

TEST(Evidence, a_loss_that_vanished_and_did_not_come_back) {
  v1::Watching watching;
  watching.set_grammar("megatron");
  const auto grammar = engine::make_grammar(watching);
  ASSERT_TRUE(grammar.has_value());
  const auto step = [](int number, const char* rest) {
    return " iteration " + std::to_string(number) +
           "/ 100 | elapsed time per iteration (ms): 12.5 | " + rest;
  };
  const std::string well = step(1, "lm loss: 2.5E+00 | number of nan iterations: 0 |"),
                    gone = step(2, "number of nan iterations: 1 |"),
                    still = step(3, "number of nan iterations: 2 |");
  const auto best = [&](const std::string& log) { return find_evidence(log, grammar->get()); };
  const FoundEvidence found = best(well + "\n" + gone + "\n" + still + "\n");
  EXPECT_EQ(found.line, gone.substr(0, gone.size())) << "where it began";
  EXPECT_EQ(found.kind, v1::EVIDENCE_KIND_CAUSE);
  EXPECT_EQ(best(gone + "\nConnection reset by peer\n").line, gone) << "what followed is weaker";
  EXPECT_EQ(best(gone + "\nValueError: bad shape\n").line, "ValueError: bad shape")
      << "what ended it is better";
  EXPECT_EQ(best(gone + "\n" + well + "\n").line, "") << "it came back";
  EXPECT_EQ(find_evidence(gone).line, "") << "without a grammar nothing is known of losses";
}

}  // namespace
}  // namespace muster::agent
