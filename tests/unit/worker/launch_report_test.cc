// What the launches inside a script have reported.
#include "worker/launch_report.h"

#include <gtest/gtest.h>
#include <signal.h>

namespace muster::worker {
namespace {

TEST(LaunchReport, TheFirstBadEndCountsUnlessTheScriptTriedAgain) {
  EXPECT_FALSE(parse_launch_report("").bad());
  EXPECT_FALSE(parse_launch_report("begin 7\nend 7 0 0 \n").bad());
  const LaunchEnd killed = parse_launch_report("begin 7\nend 7 -1 9 rank 5\n");
  EXPECT_EQ(killed.code, -1);
  EXPECT_EQ(killed.signal, SIGKILL);
  EXPECT_EQ(killed.name, "rank 5");
  EXPECT_EQ(parse_launch_report("begin 7\nbegin 8\nend 7 2 0 rank 1\nend 8 3 0 rank 2\n").code, 2)
      << "side by side";
  EXPECT_FALSE(parse_launch_report("begin 7\nend 7 2 0 rank 1\nbegin 8\nend 8 0 0 \n").bad())
      << "one after the other";
}

TEST(LaunchReport, ALauncherWithoutAnEndWasKilled) {
  const LaunchEnd end = parse_launch_report("begin 7\n");
  EXPECT_EQ(end.signal, SIGKILL);
  EXPECT_EQ(end.name, "");
  EXPECT_TRUE(end.launched);
  EXPECT_FALSE(parse_launch_report("").launched);
}

// A launcher was killed by hand, and the script's own loop has restarted it.
TEST(LaunchReport, AKilledLauncherThatTheNextOneFoundGoneCountsNoMore) {
  EXPECT_FALSE(parse_launch_report("begin 7 100\ngone 7\nbegin 8 200\nend 8 0 0 \n").bad());
  EXPECT_EQ(parse_launch_report("begin 7 100\nbegin 8 200\nend 8 0 0 \n").signal, SIGKILL)
      << "side by side, and one was killed";
  EXPECT_EQ(parse_launch_report("begin 7 100\ngone 7\nbegin 8 200\n").signal, SIGKILL)
      << "as was the second";
}

TEST(LaunchReport, TellsWhereALaunchWouldHaveSavedAndItsRanksLogs) {
  EXPECT_FALSE(parse_launches("").any);
  const Launches launches = parse_launches(
      "begin 7 100\nlog 0 /out/a.log\nend 7 0 0 \nbegin 8 200\nsaves 8 2 alone /data/my ckpt\nlog "
      "8 /out/rank 8.log\nsaves 0 1 whole /other\nlog 9 /torn");
  EXPECT_TRUE(launches.any);
  ASSERT_TRUE(launches.saves);
  EXPECT_EQ(launches.saves->first_rank, 8U);
  EXPECT_EQ(launches.saves->ranks, 2U);
  EXPECT_TRUE(launches.saves->weights_alone);
  EXPECT_EQ(launches.saves->dir, "/data/my ckpt");
  ASSERT_EQ(launches.logs.size(), 2U) << "the last line is still being written";
  EXPECT_EQ(launches.logs[1].rank, 8U);
  EXPECT_EQ(launches.logs[1].path, "/out/rank 8.log");
  for (const char* text :
       {"saves\n", "saves x 1 alone /a\n", "saves 1 1 half /a\n", "saves 1 1 alone a\n",
        "saves -1 1 whole /a\n", "log\n", "log x /a\n", "log 1 a\n", "\xff\n"}) {
    EXPECT_FALSE(parse_launches(text).saves) << text;
    EXPECT_TRUE(parse_launches(text).logs.empty()) << text;
  }
}

TEST(LaunchReport, AnyBytesDoNoHarm) {
  for (const char* text : {"end", "end 1 2", "gone", "gone x\n", "end x y z\n", "begin\n",
                           "end 1 999 0 r\n", "end 1 -1 0 r\n", "end 1 0 12345 r\n", "\n\n\xff"})
    EXPECT_FALSE(parse_launch_report(text).bad()) << text;
  EXPECT_EQ(parse_launch_report("end 1 2 0 a\x1b[31m" + std::string(500, 'x')).name.size(), 64U);
  EXPECT_FALSE(read_launch_report("/nowhere/at/all").bad());
}

}  // namespace
}  // namespace muster::worker
