// The engine's process log next to a rank's log: what is read from it, what is quoted, how much of
// it is kept, and that no link in it leads elsewhere.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <fstream>

#include "agent/logs/plog_reader.h"
#include "tests/unit/agent_logs/watch_ground.h"

namespace muster::agent {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPlogSocket =
    "[ERROR] HCCL(40112,python3):2026-01-07-22:43:10.004.871 [hccl_socket_manager.cc:797] "
    "[40377][Wait][LinkEstablish]wait socket establish timeout, role[1]\n";
constexpr const char* kPlogTable =
    "[ERROR] HCCL(40112,python3):2026-01-07-22:43:10.104.871 [x.cc:1] [40377]EI0004: Failed to "
    "parse the ranktable file\n";
constexpr const char* kPlogNoise =
    "[INFO] HCCL(40112,python3):2026-01-07-22:43:10.004.870 [y.cc:7] [40377]all is well\n";
constexpr const char* kPlogComplaint =
    "[ERROR] RUNTIME(40112,python3):2026-01-07-22:43:10.004.870 [z.cc:7] [40377]something is odd\n";

class PlogTest : public testing::Test {
 protected:
  void write(const std::string& name, const std::string& text, bool append = false) {
    fs::create_directories((tree_ / name).parent_path());
    std::ofstream(tree_ / name, append ? std::ios::app : std::ios::trunc) << text;
  }
  void age(const std::string& name, std::chrono::seconds back) {
    fs::last_write_time(tree_ / name, fs::last_write_time(tree_ / name) - back);
  }
  FoundEvidence scan(bool ended = true) {
    const Now now = system_clock().now();
    reader_.read(buffer_, now, ended);
    return reader_.evidence(now.boot);
  }
  std::uint64_t size(const std::string& name) {
    return fs::exists(tree_ / name) ? fs::file_size(tree_ / name) : 0;
  }

  test::TempDir dir_;
  const fs::path tree_ = dir_.path() / "plog";
  PlogReader reader_{tree_};
  std::array<char, 64 << 10> buffer_{};
};

TEST_F(PlogTest, TheBestLineIsReportedWithItsFile) {
  EXPECT_EQ(scan().rank, 0) << "there is nothing yet";
  write("debug/plog/plog-40112_20260107224103518.log",
        std::string(kPlogNoise) + kPlogSocket + kPlogTable + kPlogSocket);
  const FoundEvidence found = scan();
  EXPECT_EQ(found.line, "plog-40112_20260107224103518.log: " +
                            std::string(kPlogTable, std::strlen(kPlogTable) - 1));
  EXPECT_EQ(found.kind, v1::EVIDENCE_KIND_CAUSE);
}

TEST_F(PlogTest, BothFoldersCountAndAConsequenceIsOne) {
  write("run/plog/plog-1_2.log", kPlogSocket);
  write("debug/plog/plog-1_2.log", kPlogNoise);
  EXPECT_EQ(scan().kind, v1::EVIDENCE_KIND_CONSEQUENCE);
}

// CANN recovers from much of what it logs as an error.
TEST_F(PlogTest, AnErrorWithoutASignatureIsQuotedButIsNoCause) {
  write("debug/plog/plog-1_2.log", kPlogComplaint);
  const FoundEvidence found = scan();
  EXPECT_NE(found.line.find("something is odd"), std::string::npos);
  EXPECT_EQ(found.kind, v1::EVIDENCE_KIND_UNSPECIFIED);
}

TEST_F(PlogTest, OnlyNewLinesAreRead) {
  const std::string name = "debug/plog/plog-1_2.log", text = kPlogTable;
  write(name, kPlogNoise + text.substr(0, 60));
  EXPECT_EQ(scan(false).rank, 0) << "a line without its end";
  write(name, text.substr(60), true);
  EXPECT_GT(scan(false).rank, 0);
  write(name, kPlogComplaint, true);
  EXPECT_NE(scan(false).line.find("EI0004"), std::string::npos) << "the better one stays";
  write("debug/plog/plog-1_3.log", "EI0014: " + std::string(200, 'x'));
  EXPECT_NE(scan(true).line.find("EI0014"), std::string::npos)
      << "its process is gone: it will not get an end any more";
}

TEST_F(PlogTest, AnotherFileInItsPlaceIsReadFromTheBeginning) {
  const std::string name = "debug/plog/plog-1_2.log";
  write(name, std::string(4000, 'x') + "\n");
  EXPECT_EQ(scan(false).rank, 0);
  fs::remove(tree_ / name);
  write(name, kPlogTable);
  EXPECT_GT(scan(false).rank, 0);
}

// A training logs an error and continues; hours later it is killed for another reason.
TEST_F(PlogTest, WhatIsOldIsNotTheReason) {
  write("debug/plog/plog-1_2.log", kPlogTable);
  const Now now = system_clock().now();
  reader_.read(buffer_, now, false);
  EXPECT_GT(reader_.evidence(now.boot + 9min).rank, 0);
  EXPECT_EQ(reader_.evidence(now.boot + 11min).rank, 0);
  PlogReader later(tree_);  // the reader of a restarted agent
  age("debug/plog/plog-1_2.log", 11min);
  later.read(buffer_, now, true);
  EXPECT_EQ(later.evidence(now.boot).rank, 0);
}

TEST_F(PlogTest, FarBehindTheEndIsPassedOver) {
  const std::string name = "debug/plog/plog-1_2.log";
  std::string text = kPlogTable;
  while (text.size() < PlogReader::kBehindAtEnd + 4096) text += kPlogNoise;
  write(name, text);
  EXPECT_EQ(scan(true).rank, 0);
  write(name, kPlogSocket, true);
  EXPECT_GT(scan(true).rank, 0);
}

// A file that was not written for long, and then one line: the reason of the rank's death.
TEST_F(PlogTest, TheFirstLineAfterALongSilenceCounts) {
  const std::string name = "debug/plog/plog-1_2.log";
  write(name, kPlogNoise);
  age(name, 20min);
  EXPECT_EQ(scan(false).rank, 0);
  write(name, kPlogTable, true);
  EXPECT_GT(scan(true).rank, 0);
}

// After a restart of the agent, it reads not more than a few files' worth, and the newest first.
TEST_F(PlogTest, ManyFilesAtOnceAreNotReadWhole) {
  std::string text;
  while (text.size() < PlogReader::kBehindAtEnd) text += kPlogNoise;
  for (int i = 0; i < 8; ++i) {
    const std::string name = "debug/plog/plog-1_" + std::to_string(i) + ".log";
    write(name, text + (i == 0 ? kPlogTable : i == 7 ? kPlogSocket : kPlogNoise));
    age(name, std::chrono::seconds(10 * (8 - i)));
  }
  EXPECT_NE(scan(true).line.find("wait socket establish timeout"), std::string::npos);
  write("debug/plog/plog-1_0.log", kPlogTable, true);
  EXPECT_NE(scan(true).line.find("EI0004"), std::string::npos) << "and what comes then is read";
}

TEST_F(PlogTest, NothingInItLeadsElsewhere) {
  const fs::path secret = dir_.path() / "secret";
  std::ofstream(secret) << kPlogTable;
  fs::create_directories(tree_ / "debug/plog");
  fs::create_symlink(secret, tree_ / "debug/plog/plog-1_2.log");
  fs::create_hard_link(secret, tree_ / "debug/plog/plog-1_3.log");
  ASSERT_EQ(::mkfifo((tree_ / "debug/plog/plog-1_4.log").c_str(), 0600), 0);
  fs::create_directory(tree_ / "debug/plog/plog-1_5.log");
  write("debug/plog/plog-a_5.log", kPlogTable);
  write("debug/plog/plog-1_5.log.gz", kPlogTable);
  write("debug/plog-1_5.log", kPlogTable);
  const fs::path elsewhere = dir_.path() / "elsewhere/plog";
  fs::create_directories(elsewhere);
  std::ofstream(elsewhere / "plog-1_2.log") << kPlogTable;
  fs::create_directory_symlink(elsewhere.parent_path(), tree_ / "run");
  EXPECT_EQ(scan().line, "");
  PlogReader through_a_link(dir_.path() / "link");
  fs::create_directory_symlink(tree_, dir_.path() / "link");
  write("debug/plog/plog-9_9.log", kPlogTable);
  through_a_link.read(buffer_, system_clock().now(), true);
  EXPECT_EQ(through_a_link.evidence(system_clock().now().boot).rank, 0);

  EXPECT_LE(reader_.trim(0), 4096U);
  EXPECT_EQ(fs::file_size(secret), std::strlen(kPlogTable)) << "neither cut by its second name";
  EXPECT_TRUE(fs::exists(elsewhere / "plog-1_2.log")) << "nor found behind a link";
}

TEST_F(PlogTest, TheOldestFilesGoFirst) {
  const std::string block(64 << 10, 'x');
  for (int i = 0; i < 6; ++i) {
    write("debug/plog/plog-1_" + std::to_string(i) + ".log", block);
    age("debug/plog/plog-1_" + std::to_string(i) + ".log", std::chrono::seconds(100 * (6 - i)));
  }
  write("debug/device-0/device-1_7.log", block);
  age("debug/device-0/device-1_7.log", 1000s);
  EXPECT_GE(reader_.trim(1 << 20), 7 * block.size()) << "all of it is below the bound";
  EXPECT_LE(reader_.trim(3 * block.size()), 3 * block.size());
  EXPECT_EQ(size("debug/device-0/device-1_7.log"), 0U);
  EXPECT_EQ(size("debug/plog/plog-1_2.log"), 0U);
  for (const char* kept : {"3", "4", "5"})
    EXPECT_EQ(size("debug/plog/plog-1_" + std::string(kept) + ".log"), block.size()) << kept;
}

// The file that is being written: if it were removed, it would grow where nobody sees it.
TEST_F(PlogTest, TheNewestFileLosesItsBeginning) {
  const std::string name = "debug/plog/plog-1_2.log";
  write(name, std::string(1 << 20, 'x') + "\n" + kPlogTable);
  const std::uint64_t before = size(name), left = reader_.trim(256 << 10);
  if (left >= before) GTEST_SKIP() << "this file system has no holes";
  EXPECT_LE(left, 256U << 10);
  EXPECT_EQ(size(name), before);
  EXPECT_GT(scan().rank, 0) << "its end is there";
}

TEST_F(PlogTest, TooManyFilesGoTheSameWay) {
  for (std::size_t i = 0; i < kPlogFilesMost + 50; ++i)
    write("debug/plog/plog-1_" + std::to_string(i) + ".log", "");
  reader_.trim(1 << 30);
  EXPECT_EQ(static_cast<std::size_t>(std::distance(fs::directory_iterator(tree_ / "debug/plog"),
                                                   fs::directory_iterator())),
            kPlogFilesMost);
}

// --- with the rank's own log ---------------------------------------------------------------------

class WatchPlogTest : public WatchTest {
 protected:
  void plog(const std::string& text) {
    fs::create_directories(run_dir_ / "plog/rank-0/debug/plog");
    std::ofstream(run_dir_ / "plog/rank-0/debug/plog/plog-40112_20260107224103518.log") << text;
  }
  RankEnd end_of(const std::string& own_log, bool failed = true) {
    std::ofstream(log(0)) << own_log;
    add({0});
    watch_->rank_ended(run_, RankNo(0), failed);
    EXPECT_TRUE(comes(run_, [](const Reports& reports) { return reports.ends.contains(0); }));
    return reports(run_).ends[0];
  }
};

TEST_F(WatchPlogTest, ARankThatSaysNothingIsSpokenForByItsProcessLog) {
  plog(kPlogTable);
  const RankEnd end = end_of("step 1\nstep 2\n");
  EXPECT_EQ(end.evidence.find("plog-40112_20260107224103518.log: [ERROR] HCCL(40112,python3)"), 0U)
      << end.evidence;
  EXPECT_EQ(end.evidence_kind, v1::EVIDENCE_KIND_CAUSE);
}

TEST_F(WatchPlogTest, TheBetterLineOfTheRanksOwnStands) {
  plog(kPlogTable);
  EXPECT_EQ(
      end_of("RuntimeError: NPU out of memory. Tried to allocate 2.00 GiB (NPU 0)\n").evidence,
      "RuntimeError: NPU out of memory. Tried to allocate 2.00 GiB (NPU 0)");
}

TEST_F(WatchPlogTest, ARankThatEndedWellIsNotSpokenFor) {
  plog(kPlogTable);
  EXPECT_EQ(end_of("step 1\n", false).evidence, "");
}

}  // namespace
}  // namespace muster::agent
