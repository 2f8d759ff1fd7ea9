#include "common/rundir/records.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "common/io/file.h"
#include "common/rundir/event_log.h"

namespace muster::rundir {
namespace {

namespace fs = std::filesystem;

class RunDir : public testing::Test {
 protected:
  RunDir() {
    std::string pattern = (fs::temp_directory_path() / "rundir.XXXXXX").string();
    dir_ = ::mkdtemp(pattern.data());
    EXPECT_TRUE(make_run(run()));
  }
  ~RunDir() override { fs::remove_all(dir_); }
  [[nodiscard]] RunLayout run() const {
    return RunLayout(AgentLayout(dir_).run(JobId("0123456789abc"), AttemptNo(2)));
  }
  fs::path dir_;
};

TEST(RunName, IsJobAndAttempt) {
  const auto name = AgentLayout::parse_run_name("0123456789abc.12");
  ASSERT_TRUE(name);
  EXPECT_EQ(name->first, JobId("0123456789abc"));
  EXPECT_EQ(name->second, AttemptNo(12));
  for (const char* wrong : {"", ".", "job", "job.", ".1", "job.0", "job.01", "job.x", "job.1x",
                            "job.-1", "job.4294967296", "a/b.1", "job.1.tmp", ".hidden.1"}) {
    EXPECT_FALSE(AgentLayout::parse_run_name(wrong)) << wrong;
  }
}

TEST(AuxiliaryName, IsAPartOfAPath) {
  for (const std::string& name :
       {std::string("scheduler"), std::string("a"), std::string("A_9-z"), std::string(64, 'x')})
    EXPECT_TRUE(is_auxiliary_name(name));
  for (const std::string& name :
       {std::string(), std::string("."), std::string(".."), std::string("a/b"), std::string("a b"),
        std::string("a\n"), std::string(65, 'x'), std::string("\xc3\xa4"),
        std::string("a\0b", 3)}) {
    EXPECT_FALSE(is_auxiliary_name(name)) << name;
  }
}

TEST(RankLog, TellsItsRank) {
  const RunLayout run("/r");
  for (const std::uint32_t rank : {0U, 7U, 4294967295U})
    EXPECT_EQ(rank_of_log(run.rank_log(rank).filename().string()), rank);
  for (const char* name : {"", "rank-.log", "rank-1.cursor", "rank-01.log", "rank-4294967296.log",
                           "rank-1.log.damaged", "rank--1.log", "worker.log"}) {
    EXPECT_FALSE(rank_of_log(name)) << name;
  }
}

TEST(NodeLog, TellsItsName) {
  const RunLayout run("/r");
  EXPECT_EQ(run.node_log("setup"), run.setup_log());
  EXPECT_EQ(run.node_log("scheduler"), run.auxiliary_log("scheduler"));
  EXPECT_EQ(run.node_log_cursor("setup"), "/r/logs/setup.cursor");
  EXPECT_EQ(run.node_log_cursor("scheduler"), "/r/logs/auxiliary-scheduler.cursor");
  for (const char* name : {"setup", "scheduler", "A_9-z"})
    EXPECT_EQ(name_of_node_log(run.node_log(name).filename().string()), name);
  for (const char* name : {"", "auxiliary-.log", "auxiliary-a b.log", "auxiliary-x.cursor",
                           "setup.cursor", "rank-0.log", "worker.log"}) {
    EXPECT_FALSE(name_of_node_log(name)) << name;
  }
}

TEST(ProcessTag, IsAFunctionOfNames) {
  EXPECT_EQ(process_tag(ClusterId("c"), JobId("j"), AttemptNo(3), NodeName("n")), "c/j.3@n");
}

TEST_F(RunDir, LaunchComesBack) {
  EXPECT_EQ(*read_launch(run()), std::nullopt);
  v1::Launch launch;
  launch.set_version(kVersion);
  launch.set_process_tag("c/j.1@n");
  launch.add_ranks()->add_argv("/bin/true");
  launch.set_order(std::string("\0\xff", 2));
  ASSERT_TRUE(write_launch(run(), launch));
  const auto read = read_launch(run());
  ASSERT_TRUE(read && *read);
  EXPECT_EQ((*read)->SerializeAsString(), launch.SerializeAsString());
  EXPECT_EQ(fs::status(run().root()).permissions(), fs::perms::owner_all);
}

TEST_F(RunDir, LaunchOfALaterVersionIsRefusedByName) {
  v1::Launch launch;
  launch.set_version(3);
  ASSERT_TRUE(write_launch(run(), launch));
  EXPECT_EQ(read_launch(run()).error().code, ErrorCode::Unsupported);
}

TEST_F(RunDir, DamagedRecordIsNotTaken) {
  v1::Launch launch;
  launch.set_version(kVersion);
  launch.set_process_tag("c/j.1@n");
  ASSERT_TRUE(write_launch(run(), launch));
  const std::string sound = *io::read_file(run().launch(), 10000);
  for (std::size_t at = 0; at < sound.size(); ++at) {
    std::string bytes = sound;
    bytes[at] = static_cast<char>(bytes[at] ^ 4);
    ASSERT_TRUE(io::replace_file(run().launch(), bytes, io::Durable::No));
    EXPECT_EQ(read_launch(run()).error().code, ErrorCode::DataLoss) << at;
  }
  ASSERT_TRUE(io::replace_file(run().launch(), "", io::Durable::No));
  EXPECT_EQ(read_launch(run()).error().code, ErrorCode::DataLoss);
}

TEST_F(RunDir, TheFirstClaimStays) {
  v1::Claim mine;
  mine.set_pid(7);
  v1::Claim never;
  never.set_boot_id("b");
  EXPECT_EQ(*read_claim(run()), std::nullopt);
  EXPECT_TRUE(*write_claim(run(), mine));
  EXPECT_FALSE(*write_claim(run(), never));
  EXPECT_EQ((**read_claim(run())).pid(), 7U);
}

TEST_F(RunDir, ANeverClaimStillIsARecord) {
  // proto3 writes nothing for defaults, and a frame must not be empty: pid 0 is written with a boot
  // id.
  v1::Claim never;
  EXPECT_EQ(write_claim(run(), never).error().code, ErrorCode::InvalidArgument);
  never.set_boot_id("b");
  EXPECT_TRUE(*write_claim(run(), never));
  EXPECT_EQ((**read_claim(run())).pid(), 0U);
}

TEST_F(RunDir, LeaseIsOfItsBoot) {
  EXPECT_EQ(*read_lease(run()), std::nullopt);
  const BootTime until(std::chrono::seconds(1234));
  ASSERT_TRUE(write_lease(run(), until, BootId("b")));
  const auto lease = read_lease(run());
  ASSERT_TRUE(lease && *lease);
  EXPECT_EQ(lease_end(**lease, BootId("b")), until);
  EXPECT_EQ(lease_end(**lease, BootId("c")), std::nullopt);
}

TEST_F(RunDir, ReaderGetsOnlyWhatIsNew) {
  EventReader reader(run().events());
  EXPECT_TRUE(reader.read()->empty());
  auto writer = EventWriter::open(run().events());
  ASSERT_TRUE(writer);
  auto event = stamped_event(
      {.now = {.wall = WallTime(Duration(5)), .boot = BootTime(Duration(6))}, .boot = BootId("b")});
  event.mutable_exited()->set_rank(3);
  ASSERT_TRUE(writer->append(event));
  auto read = reader.read();
  ASSERT_TRUE(read);
  ASSERT_EQ(read->size(), 1U);
  EXPECT_EQ(read->front().SerializeAsString(), event.SerializeAsString());
  EXPECT_EQ(wall_time(read->front()), WallTime(Duration(5)));
  EXPECT_TRUE(reader.read()->empty());
  event.mutable_swept();
  ASSERT_TRUE(writer->append(std::vector{event, event}));
  EXPECT_EQ(reader.read()->size(), 2U);
  EXPECT_FALSE(reader.damaged());
}

TEST_F(RunDir, ATornEventIsMetAgainAndDamageStays) {
  auto writer = EventWriter::open(run().events());
  ASSERT_TRUE(writer);
  auto event = stamped_event({.now = {}, .boot = BootId("b")});
  event.mutable_started();
  ASSERT_TRUE(writer->append(event));
  const auto whole = io::encode_frame(event.SerializeAsString());
  EventReader reader(run().events());
  std::ofstream(run().events(), std::ios::app | std::ios::binary) << whole.substr(0, 7);
  EXPECT_EQ(reader.read()->size(), 1U);
  EXPECT_FALSE(reader.damaged());
  std::ofstream(run().events(), std::ios::app | std::ios::binary) << whole.substr(7);
  EXPECT_EQ(reader.read()->size(), 1U);
  std::ofstream(run().events(), std::ios::app | std::ios::binary) << std::string(20, '\xee');
  EXPECT_TRUE(reader.read()->empty());
  EXPECT_TRUE(reader.damaged());
}

TEST_F(RunDir, MarksAreKept) {
  auto writer = MarkWriter::open(run().mark());
  ASSERT_TRUE(writer);
  auto mark =
      stamped_mark({.now = {.wall = WallTime(Duration(5)), .boot = {}}, .boot = BootId("b")});
  mark.mutable_refused()->set_text("port 29500 is taken");
  ASSERT_TRUE(writer->append(mark));
  writer = MarkWriter::open(run().mark());  // the agent's next incarnation
  ASSERT_TRUE(writer);
  mark.mutable_swept()->set_why(4);
  ASSERT_TRUE(writer->append(mark));
  const auto marks = MarkReader(run().mark()).read();
  ASSERT_TRUE(marks);
  ASSERT_EQ(marks->size(), 2U);
  EXPECT_EQ(marks->at(0).refused().text(), "port 29500 is taken");
  EXPECT_EQ(marks->at(1).swept().why(), 4U);
}

TEST_F(RunDir, ListIsSortedAndLeavesStrangersOut) {
  const AgentLayout agent(dir_);
  ASSERT_TRUE(make_run(RunLayout(agent.run(JobId("0123456789abc"), AttemptNo(10)))));
  ASSERT_TRUE(make_run(RunLayout(agent.run(JobId("0000000000000"), AttemptNo(1)))));
  ASSERT_TRUE(make_run(RunLayout(agent.runs() / "strange")));
  const auto runs = list_runs(agent);
  ASSERT_TRUE(runs);
  ASSERT_EQ(runs->size(), 3U);
  EXPECT_EQ(runs->at(0).job, JobId("0000000000000"));
  EXPECT_EQ(runs->at(1).attempt, AttemptNo(2));
  EXPECT_EQ(runs->at(2).attempt, AttemptNo(10));
  EXPECT_TRUE(list_runs(AgentLayout(dir_ / "none"))->empty());
}

}  // namespace
}  // namespace muster::rundir
