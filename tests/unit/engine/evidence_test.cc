#include "common/engine/evidence.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>

#include "common/engine/files/pattern_set.h"

namespace muster::engine {
namespace {

TEST(EvidenceKinds, NameTheTroubleAndTheCode) {
  struct {
    const char* line;
    Trouble trouble;
    const char* code;
  } cases[] = {
      {"EI0006: Getting socket times out. Reason: 1. The remote does not initiate a connect "
       "request.",
       Trouble::ConnectTimeout, "EI0006"},
      {"EI0006: [PID: 40112] 2025-03-02-09:15:40.120.331 Getting socket times out.",
       Trouble::ConnectTimeout, "EI0006"},
      {"[PID: 40112] 2026-01-07-22:41:03.518.640 Communication_Error_Get_Socket(EI0006): Getting "
       "socket times out.",
       Trouble::ConnectTimeout, "EI0006"},
      {"EI0015: [PID: 1] x", Trouble::ConnectTimeout, "EI0015"},
      {"        EI0002: The wait execution of the Notify register times out.",
       Trouble::CollectiveTimeout, "EI0002"},
      {"EI0012: SDMA copy exception", Trouble::CollectiveTimeout, "EI0012"},
      {"EI0009: x", Trouble::Link, "EI0009"},
      {"Execution_Error_ROCE_CQE(EI0013): x", Trouble::Link, "EI0013"},
      {"EI0018: x", Trouble::Link, "EI0018"},
      {"EI0004: The ranktable is invalid", Trouble::RankTable, "EI0004"},
      {"Config_Error_Ranktable(EI0014): x", Trouble::RankTable, "EI0014"},
      {"EI0017: x", Trouble::RankTable, "EI0017"},
      {"EI0001: x", Trouble::Settings, "EI0001"},
      {"EI0003: x", Trouble::Settings, "EI0003"},
      {"EI0005: x", Trouble::Settings, "EI0005"},
      {"EI0008: x", Trouble::Settings, "EI0008"},
      {"EI0016: x", Trouble::Settings, "EI0016"},
      {"EI0007: x", Trouble::Resource, "EI0007"},
      {"EI0010: x", Trouble::Link, "EI0010"},
      {"EI0011: x", Trouble::DeviceMemory, "EI0011"},
      {"EL0004: Failed to allocate memory.", Trouble::DeviceMemory, "EL0004"},
      {"EI0019: x have already been bound", Trouble::Port, "EI0019"},
      {"EI0020: x", Trouble::Port, "EI0020"},
      {"EJ0001: Failed to initialize the HCCP process.", Trouble::DeviceBusy, "EJ0001"},
      {"E30008: AI CPU operator execution time out.", Trouble::DataStall, "E30008"},
      {"EZ1001: x", Trouble::Operator, "EZ1001"},
      {"EE9999: Inner Error!", Trouble::Operator, "EE9999"},
      {"[ERROR] 2025-03-02-09:15:40 (PID:40112, Device:3, RankID:11) ERR01100 OPS call acl api "
       "failed.",
       Trouble::Operator, "ERR01100"},
      {"RuntimeError: NPU out of memory. Tried to allocate 2.00 GiB (NPU 0; 60.97 GiB total "
       "capacity)",
       Trouble::DeviceMemory, ""},
      {"MemoryError", Trouble::HostMemory, ""},
      {"numpy.core._exceptions._ArrayMemoryError: Unable to allocate 1.2 TiB", Trouble::HostMemory,
       ""},
      {"RuntimeError: CUDA error: uncorrectable ECC error encountered", Trouble::DeviceFault, ""},
      {"NVRM: Xid (PCI:0000:41:00): 48, pid=1, An uncorrectable double bit error (DBE) has been "
       "detected",
       Trouble::DeviceFault, ""},
      {"ValueError: The current value of loss is NaN, terminate training.", Trouble::NotANumber,
       ""},
      {"RuntimeError: Unexpected result nan (message='found NaN in local forward loss "
       "calculation')",
       Trouble::NotANumber, ""},
      {"RuntimeError: [Errno 98] Address already in use", Trouble::Port, ""},
      {"FileNotFoundError: [Errno 2] No such file or directory: 'x.json'", Trouble::NotFound, ""},
      {"/usr/bin/python3: No module named megatron.pretrain", Trouble::NotFound, ""},
      {"KeyError: 'x'", Trouble::Exception, ""},
      {"KeyboardInterrupt", Trouble::Interrupted, ""},
      {"run.sh: line 12:  4711 Killed                  python3 x.py", Trouble::Killed, ""},
      {"Traceback (most recent call last):", Trouble::TracebackHead, ""},
      {"错误：找不到数据集 /data/wiki", Trouble::Complaint,
       ""},  // Regression: an error in Chinese was not recognized.
      {"[错误] 显存不足", Trouble::Complaint, ""},
      {"2025-03-02 加载权重失败: 文件已损坏", Trouble::Complaint, ""},
      {"发生异常：维度不一致", Trouble::Complaint, ""},
      {"        TraceBack (most recent call last):", Trouble::TracebackHead, ""},
  };
  for (const auto& one : cases) {
    const Evidence found = evidence_in(one.line);
    EXPECT_GT(found.rank, 0) << one.line;
    EXPECT_EQ(trouble_name(found.trouble), trouble_name(one.trouble)) << one.line;
    EXPECT_EQ(found.code, one.code) << one.line;
  }
}

TEST(EvidenceKinds, WhatResemblesACodeIsNone) {
  for (const char* line :
       {"错误率: 0.5", "成功: 10 失败: 0", "失败: 0", "uuid E1234: is fine in a name like xEI0006:",
        "see EI0006 in the manual", "model EI00061: weights", "EI006: short", "ei0006: lower",
        "0xE30008: an address", "E0515 13:40:02.517330 1 log.cc:1] glog's own prefix",
        "WI0006: a warning", "IERR01100x", "batch ERR0110 done", "PRE-E30008 ok"})
    EXPECT_EQ(evidence_in(line).rank, 0) << line;
}

TEST(EvidenceKinds, WhatResemblesAnExceptionIsNone) {
  for (const char* line :
       {"raise ValueError: no", "  ValueError: indented source", "Errors: 0", "my Error", "x.Error",
        "loading ErrorHandler: done", "class ValueError(Exception):", "ValueError is raised",
        "the Timeout: 30", "a.9Error:", "Error", "max_Exit_code = 3"})
    EXPECT_EQ(evidence_in(line).rank, 0) << line;
}

// A message of MindSpore that points to CANN's messages ranks below every code of CANN, and above
// no evidence.
TEST(EvidenceKinds, APointerStandsBelowWhatItPointsTo) {
  const int pointer = evidence_in(
                          "RuntimeError: Ascend kernel runtime initialization failed. The details "
                          "refer to 'Ascend Error Message'.")
                          .rank;
  EXPECT_GT(pointer, 0);
  for (const char* line : {"EI0004: The ranktable is invalid", "EI0002: times out", "EZ1001: x",
                           "EE9999: Inner Error!", "EJ0001: x"})
    EXPECT_GT(evidence_in(line).rank, pointer) << line;
  EXPECT_GT(pointer, evidence_in("Traceback (most recent call last):").rank);
}

TEST(EvidenceKinds, HostileLinesAreRead) {
  EXPECT_EQ(evidence_in(std::string(1 << 20, '7')).rank, 0);
  EXPECT_EQ(evidence_in(std::string(1 << 20, '\0')).rank, 0);
  EXPECT_EQ(evidence_in(std::string(1 << 20, 'E')).rank, 0);
  EXPECT_EQ(evidence_in(std::string(1 << 20, '\xff')).rank, 0);
  EXPECT_EQ(evidence_in(std::string_view("KeyError\0: x", 12)).rank, 0);
  EXPECT_EQ(evidence_in(std::string(1 << 20, ' ') + "Killed").rank, 0)
      << "beyond what is looked at";
  std::string many;
  while (many.size() < (1 << 20)) many += "EI000EI0006 ERRORError.ErrorTimeout";
  EXPECT_GE(evidence_in(many).rank, 0);
}

TEST(PatternSet, FindsWhatASlowSearchFinds) {
  const std::vector<std::string_view> patterns = {"abcd",
                                                  "abcde",
                                                  "bcda",
                                                  "dddd",
                                                  "E05Z",
                                                  "abcabcabd",
                                                  std::string_view("d\0\xff"
                                                                   "a",
                                                                   4)};
  const PatternSet set(patterns);
  std::mt19937 random(5);
  for (int round = 0; round < 20'000; ++round) {
    std::string text;
    for (std::uint32_t i = random() % 40; i > 0; --i)
      text.push_back(std::string_view("abcdE05Z\0\xff", 10)[random() % 10]);
    if (round % 3 == 0) text += patterns[random() % patterns.size()];
    if (round % 5 == 0) text.insert(0, patterns[random() % patterns.size()]);
    std::vector<std::pair<std::size_t, std::size_t>> found, slow;
    set.scan(text, [&](std::size_t pattern, std::size_t at) {
      found.emplace_back(pattern, at);
      return true;
    });
    for (std::size_t pattern = 0; pattern < patterns.size(); ++pattern) {
      for (std::size_t at = text.find(patterns[pattern]); at != std::string::npos;
           at = text.find(patterns[pattern], at + 1))
        slow.emplace_back(pattern, at);
    }
    std::ranges::sort(found);
    ASSERT_EQ(found, slow) << text;
  }
}

TEST(PatternSet, ManyPatternsShareBuckets) {
  std::vector<std::string> texts;
  for (int i = 0; i < 500; ++i) texts.push_back("pattern" + std::to_string(i) + ";");
  const std::vector<std::string_view> patterns(texts.begin(), texts.end());
  const PatternSet set(patterns);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    int hits = 0;
    set.scan("x" + texts[i], [&](std::size_t pattern, std::size_t at) {
      EXPECT_EQ(pattern, i);
      EXPECT_EQ(at, 1u);
      ++hits;
      return true;
    });
    EXPECT_EQ(hits, 1) << texts[i];
  }
}

TEST(PatternSet, EndsWhenAskedTo) {
  const std::vector<std::string_view> patterns = {"abcd"};
  int hits = 0;
  PatternSet(patterns).scan("abcdabcd", [&](std::size_t, std::size_t) { return ++hits > 1; });
  EXPECT_EQ(hits, 1);
}

}  // namespace
}  // namespace muster::engine
