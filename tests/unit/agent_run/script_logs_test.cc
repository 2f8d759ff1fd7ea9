// What the worker reports about the ranks that a node's script starts: each of their files becomes
// a log next to the ranks' logs.
#include <sys/fsuid.h>

#include "agent/logs/auxiliary_log.h"
#include "agent/run/run_view.h"
#include "common/rundir/event_log.h"
#include "common/rundir/records.h"
#include "tests/unit/agent_run/support.h"

namespace muster::agent {
namespace {

class SeenScriptLogs : public ::testing::Test {
 protected:
  SeenScriptLogs() : run_(rundir::AgentLayout(dir_.path() / "state").run(kRun.first, kRun.second)) {
    EXPECT_TRUE(rundir::make_run(run_));
    launch_.set_version(1);
    launch_.set_attempt(1);
    launch_.add_ranks()->set_rank(0);
  }
  void report_log(std::uint32_t rank, const std::string& log) {
    auto writer = rundir::EventWriter::open(run_.events());
    ASSERT_TRUE(writer);
    rundir::v1::Event event;
    event.mutable_script_rank_seen()->set_rank(rank);
    event.mutable_script_rank_seen()->set_pid(100 + rank);
    event.mutable_script_rank_seen()->set_start_time(7);
    event.mutable_script_rank_seen()->set_log(log);
    ASSERT_TRUE(writer->append(event));
  }
  std::vector<ScriptLogSeen> seen() {
    EXPECT_TRUE(rundir::write_launch(run_, launch_));
    RunView view(run_, BootId("boot"));
    EXPECT_TRUE(view.refresh());
    return view.seen().script_logs;
  }
  TempDir dir_;
  const rundir::RunLayout run_;
  rundir::v1::Launch launch_;
};

TEST_F(SeenScriptLogs, AFileIsOneLogOfTheFirstWhoWroteIt) {
  report_log(5, "/out/a");
  report_log(6, "");
  report_log(6, "/out/all");
  report_log(7, "/out/all");
  report_log(5, "/out/again");
  report_log(5, "/out/a");
  report_log(8, "relative");
  report_log(8, std::string("/out/nul\0l", 10));
  const auto logs = seen();
  ASSERT_EQ(logs.size(), 3U);
  EXPECT_EQ(logs[0].name + logs[0].path, "rank-5/out/a");
  EXPECT_EQ(logs[1].name + logs[1].path, "rank-6/out/all");
  EXPECT_EQ(logs[2].name + logs[2].path, "rank-5-2/out/again");
  EXPECT_EQ(logs[2].rank, 5U);
  EXPECT_EQ(logs[2].pid, 105U);
  EXPECT_FALSE(logs[2].user);
}

TEST_F(SeenScriptLogs, HaveABound) {
  for (int i = 0; i < 100; ++i)
    report_log(static_cast<std::uint32_t>(i), "/out/" + std::to_string(i));
  EXPECT_EQ(seen().size(), 64U);
}

// Paths in a container are names in another tree: a mounted path has a path on the node, and every
// other path is below the root of its worker.
TEST_F(SeenScriptLogs, OfAContainerAreFoundByItsMountsOrItsWorker) {
  launch_.set_boot_id("boot");
  for (const char* word :
       {"podman", "run", "--mount", "type=bind,source=/fast,target=/out,readonly"})
    launch_.mutable_container()->add_argv(word);
  rundir::v1::Claim claim;
  claim.set_boot_id("boot");
  claim.set_pid(42);
  claim.set_start_time(99);
  ASSERT_TRUE(rundir::write_claim(run_, claim));
  report_log(5, "/out/a");
  report_log(6, "/fast/a");
  report_log(7, "/fast/a");
  const auto logs = seen();
  ASSERT_EQ(logs.size(), 2U);
  EXPECT_EQ(logs[0].path, "/fast/a");
  EXPECT_EQ(logs[0].root_pid, 0U);
  EXPECT_EQ(script_log(logs[0]).mount, "/fast");
  EXPECT_EQ(logs[1].path, "/fast/a") << "the container's own";
  EXPECT_EQ(logs[1].root_pid, 42U);
  EXPECT_EQ(script_log(logs[1]).root, (process::ProcessId{.pid = 42, .start_time = 99}));
}

TEST_F(SeenScriptLogs, AreOpenedWithTheRightsOfTheRunsUser) {
  if (::geteuid() != 0)
    GTEST_SKIP() << "only root has rights to give up; this is user " << ::geteuid();
  launch_.set_set_user(true);
  launch_.set_uid(65534);
  launch_.set_gid(65534);
  report_log(5, "/out/a");
  const auto logs = seen();
  ASSERT_EQ(logs.size(), 1U);
  const ScriptLog log = script_log(logs[0]);
  ASSERT_TRUE(log.rights);
  const auto acts_as = [] { return static_cast<uid_t>(::setfsuid(static_cast<uid_t>(-1))); };
  {
    const auto rights = log.rights();
    EXPECT_EQ(acts_as(), 65534U);
  }
  EXPECT_EQ(acts_as(), 0U);
}

}  // namespace
}  // namespace muster::agent
