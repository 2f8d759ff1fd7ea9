// The ranks that a node's script starts itself: each is reported once, with the file that receives
// its output.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <map>

#include "common/process/identity.h"
#include "tests/unit/worker/run_under_test.h"

namespace muster::worker {
namespace {

using rundir::v1::Event;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;
namespace fs = std::filesystem;

class ScriptRanksSeen : public testing::Test {
 protected:
  ScriptRanksSeen() { test_.launch.set_scripts(true); }
  void start(const std::string& line) {
    test_.shell(line);
    test_.start();
  }
  [[nodiscard]] bool reported(std::size_t count) const {
    return test_.wait_for(Event::kScriptRankSeen, count);
  }
  // Rank and log of each, in order.
  [[nodiscard]] std::vector<std::pair<std::uint32_t, std::string>> ranks() const {
    std::vector<std::pair<std::uint32_t, std::string>> found;
    for (const Event& event : test_.events())
      if (event.has_script_rank_seen())
        found.emplace_back(event.script_rank_seen().rank(), event.script_rank_seen().log());
    return found;
  }
  [[nodiscard]] std::string path(const std::string& name) const {
    return (fs::canonical(test_.dir) / name).string();
  }
  // Makes a FIFO in the script's directory: its writer waits for its reader. A rank reads, because
  // a shell that writes has the file as its output in the meantime.
  void make_fifo(const char* name) const {
    EXPECT_EQ(::mkfifo((test_.dir / name).c_str(), 0600), 0);
  }
  void end() {
    test_.signal(SIGTERM);
    EXPECT_EQ(test_.wait_worker(), 0);
  }
  RunUnderTest test_;
};

TEST_F(ScriptRanksSeen, WhileTheScriptWaitsForThem) {
  start("for i in 4 5; do RANK_ID=$i sleep 1000 > log_$i.txt 2>&1 & done; wait");
  ASSERT_TRUE(reported(2));
  auto found = ranks();
  std::ranges::sort(found);
  EXPECT_THAT(found, ElementsAre(Pair(4, path("log_4.txt")), Pair(5, path("log_5.txt"))));
  for (const Event& event : test_.events()) {
    if (!event.has_script_rank_seen()) continue;
    const auto& seen = event.script_rank_seen();
    EXPECT_TRUE(
        process::alive({.pid = static_cast<pid_t>(seen.pid()), .start_time = seen.start_time()}));
  }
  end();
}

TEST_F(ScriptRanksSeen, WhenTheScriptHasEnded) {
  start(
      "for i in 3 1 2; do (export RANK=$i; mkdir -p rank_$i; cd rank_$i; env > env.log; exec sleep "
      "1000 > train.log 2>&1) & done; exit 0");
  ASSERT_TRUE(reported(3));
  auto found = ranks();
  std::ranges::sort(found);
  EXPECT_THAT(found,
              ElementsAre(Pair(1, path("rank_1/train.log")), Pair(2, path("rank_2/train.log")),
                          Pair(3, path("rank_3/train.log"))));
  end();
}

// A script may do its own preparation first, and that may take long.
TEST_F(ScriptRanksSeen, LongAfterTheScriptsStart) {
  make_fifo("gate");
  start("RANK=1 sleep 1000 > first & read x < gate; RANK=2 sleep 1000 > second & wait");
  ASSERT_TRUE(reported(1));
  std::ofstream(test_.dir / "gate") << "go\n";
  ASSERT_TRUE(reported(2));
  EXPECT_THAT(ranks(), ElementsAre(Pair(1, path("first")), Pair(2, path("second"))));
  end();
}

// Its output is the rank's; what it starts has the rank's environment, and may write anywhere.
TEST_F(ScriptRanksSeen, TheOutermostProcessIsTheRank) {
  make_fifo("up");
  start(
      "RANK=3 sh -c '{ read x < up; exec sleep 1000; } > cache & sleep 1000' > rank3.log & echo > "
      "up; RANK=4 sleep 1000 > rank4.log & wait");
  ASSERT_TRUE(reported(2));
  EXPECT_THAT(ranks(), ElementsAre(Pair(3, path("rank3.log")), Pair(4, path("rank4.log"))));
  end();
}

TEST_F(ScriptRanksSeen, WithoutAFileOfItsOwnThereIsNone) {
  start(
      "RANK=4 sleep 1000 & RANK=1 sleep 1000 > /dev/null & RANK=2 sleep 1000 | cat > piped & "
      "RANK=3 sleep 1000 > gone & rm -f gone; wait");
  ASSERT_TRUE(reported(4));
  for (const auto& [rank, log] : ranks())
    EXPECT_EQ(log, rank == 3 && !log.empty() ? path("gone") : "") << "rank " << rank;
  end();
}

// All processes that it starts have its environment, but this does not make them ranks.
TEST_F(ScriptRanksSeen, TheScriptsOwnRankIsNobodyElses) {
  test_.launch.add_env("RANK=0");
  start("sleep 1000 > helper & RANK=1 sleep 1000 > rank1.log & wait");
  ASSERT_TRUE(reported(1));
  EXPECT_THAT(ranks(), ElementsAre(Pair(1, path("rank1.log"))));
  end();
}

// The script waits for them and gives up: their files show why.
TEST_F(ScriptRanksSeen, ThoseThatEndWithTheScriptAreReportedBeforeItsEnd) {
  make_fifo("up");
  // No exec after "up", because a process in the middle of an exec has no readable environment.
  make_fifo("never");
  start("RANK=5 sh -c 'read x < up; read x < never' > log5 & echo > up; exit 3");
  EXPECT_EQ(test_.wait_worker(), 0);
  EXPECT_THAT(ranks(), ElementsAre(Pair(5, path("log5"))));
  EXPECT_THAT(kinds(test_.events()), HasSubstr("NE"));
  ASSERT_NE(exit_of(test_.events(), 0), nullptr);
  EXPECT_EQ(exit_of(test_.events(), 0)->code(), 3);
}

TEST_F(ScriptRanksSeen, OrdinaryRanksAreNotScanned) {
  test_.launch.set_scripts(false);
  make_fifo("up");
  start("RANK=5 sh -c 'read x < up; exec sleep 1000' > log5 & echo > up; exit 0");
  EXPECT_EQ(test_.wait_worker(), 0);
  EXPECT_EQ(kinds(test_.events()), "RSEW");
}

}  // namespace
}  // namespace muster::worker
