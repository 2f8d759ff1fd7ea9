// A job with outputs.logs_to: each node uploads the logs of its part, and the part stays open until
// that has ended. The job waits for nothing.
#include "controller/core/recovery/log_uploads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "controller/core/core.h"
#include "controller/core/nodes/drain.h"
#include "small_world.h"

namespace muster::core {
namespace {

using testing::HasSubstr;

class LogUploadsTest : public testing::Test {
 protected:
  LogUploadsTest() {
    for (const char* name : {"n0", "n1"}) connect(name, "i1", "b1");
    v1::StoreProfile profile;
    profile.set_url("webdav://out");
    profile.set_endpoint("http://out.example.org");
    EXPECT_FALSE(world_
                     .put(SetStore{.key = {.owner = {}, .shared = true, .name = "all"},
                                   .profile = profile,
                                   .actor = {}})
                     .refusal);
  }
  void connect(const char* name, const char* instance, const char* boot, bool knows = true) {
    v1::Inventory inventory = SmallWorld::inventory(1, name);
    inventory.set_rclone("1.60.1");
    inventory.set_uploads(true);
    inventory.set_uploads_logs(knows);
    world_.put(RegisterNode{.node = NodeName(name),
                            .instance = InstanceId(instance),
                            .boot_id = BootId(boot),
                            .inventory = inventory,
                            .version = "test"});
    world_.see(Connected{.node = NodeName(name),
                         .connection = ConnectionId(++world_.connections),
                         .instance = InstanceId(instance),
                         .present = {},
                         .boot_id = BootId(boot)});
  }
  static v1::JobSpec spec() {
    v1::JobSpec spec = SmallWorld::spec("writes", 2, 1);
    spec.mutable_outputs()->set_logs_to("webdav://out/logs");
    return spec;
  }
  void submit(const v1::JobSpec& spec) {
    const Decision submitted = world_.submit("j", spec);
    ASSERT_FALSE(submitted.refusal) << submitted.refusal->message;
  }
  void sweep(const char* node, bool logs_follow = true) {
    v1::Fact what = world_.fact("j", 1);
    what.mutable_swept()->set_why(v1::SWEPT_WHY_ENDED);
    what.mutable_swept()->set_logs_follow(logs_follow);
    world_.report(node, std::move(what));
  }
  void run_well(bool logs_follow = true) {
    std::uint32_t rank = 0;
    for (const char* node : {"n0", "n1"}) {
      world_.started("j", 1, node);
      world_.exited("j", 1, node, rank++, 0);
      sweep(node, logs_follow);
    }
  }
  void collect() {
    for (const char* node : {"n0", "n1"})
      world_.put(
          ReportLogsCollected{.job = JobId("j"), .attempt = AttemptNo(1), .node = NodeName(node)});
  }
  Decision uploaded(const std::string& node, const std::string& problem = "") {
    v1::Fact what = world_.fact("j", 1);
    what.mutable_outputs_uploaded()->set_files(2);
    what.mutable_outputs_uploaded()->set_problem(problem);
    what.mutable_outputs_uploaded()->set_logs(true);
    return world_.report(node, std::move(what));
  }
  // "logs", "everything", "run", ... as the node is ordered
  std::string wanted(const char* node) {
    std::string text;
    for (const Assignment& one : desired(world_.ledger, NodeName(node))) {
      if (one.want == Want::Upload) text += one.upload.logs ? "logs " : "everything ";
      if (one.want == Want::Run) text += "run ";
      if (one.want == Want::Forget) text += "forget ";
    }
    return text;
  }
  const JobRecord& job() { return world_.job("j"); }
  const NodePart& part(const char* node) { return *job().attempts.front().part(NodeName(node)); }

  SmallWorld world_;
};

TEST_F(LogUploadsTest, EachNodeUploadsItsOwnWhenItIsSwept) {
  submit(spec());
  for (const char* node : {"n0", "n1"}) world_.started("j", 1, node);
  EXPECT_EQ(wanted("n0"), "run ") << "while the ranks run it needs no order";
  EXPECT_TRUE(uploaded("n0").events.empty()) << "there is more to come";
  world_.exited("j", 1, "n0", 0, 0);
  sweep("n0");
  EXPECT_EQ(wanted("n0"), "logs ");
  EXPECT_EQ(wanted("n1"), "run ");
  world_.exited("j", 1, "n1", 1, 0);
  sweep("n1");
  EXPECT_EQ(job().phase, JobPhase::Succeeded) << "it waits for no logs";
  collect();
  EXPECT_FALSE(part("n0").closed());
  EXPECT_EQ(uploaded("n0").events.size(), 1U);
  EXPECT_EQ(wanted("n0"), "forget ");
  EXPECT_TRUE(uploaded("n0").events.empty()) << "once";
  EXPECT_EQ(wanted("n1"), "logs ");
  uploaded("n1", "no space");
  EXPECT_EQ(wanted("n1"), "forget ");
  EXPECT_EQ(part("n1").logs_end->problem, "no space");
}

TEST_F(LogUploadsTest, WhySaysWhoUploadsAndWhatIsMissing) {
  submit(spec());
  for (const char* node : {"n0", "n1"}) world_.started("j", 1, node);
  EXPECT_TRUE(explain_logs(job()).empty()) << "it runs";
  for (std::uint32_t rank : {0U, 1U}) world_.exited("j", 1, rank == 0 ? "n0" : "n1", rank, 0);
  for (const char* node : {"n0", "n1"}) sweep(node);
  EXPECT_THAT(explain_logs(job()),
              testing::ElementsAre("logs of ended attempts are uploaded by 'n0', 'n1'"));
  uploaded("n0", "no space");
  uploaded("n1");
  EXPECT_THAT(
      explain_logs(job()),
      testing::ElementsAre("not all logs of attempt 1 on node 'n0' are in the store: no space"));
}

TEST_F(LogUploadsTest, TheControllersOwnLogsAreNeededToo) {
  submit(spec());
  run_well();
  uploaded("n0");
  EXPECT_FALSE(part("n0").closed());
  collect();
  EXPECT_TRUE(part("n0").closed());
}

TEST_F(LogUploadsTest, OutputsAndLogsEndOneByOne) {
  v1::JobSpec both = spec();
  both.mutable_outputs()->set_to("webdav://out/runs");
  submit(both);
  run_well();
  collect();
  EXPECT_EQ(wanted("n0"), "everything logs ");
  uploaded("n0");
  EXPECT_EQ(wanted("n0"), "everything ");
  EXPECT_EQ(job().phase, JobPhase::Completing);
  v1::Fact what = world_.fact("j", 1);
  what.mutable_outputs_uploaded();
  world_.report("n0", std::move(what));
  EXPECT_EQ(wanted("n0"), "forget ");
  EXPECT_EQ(job().phase, JobPhase::Succeeded);
}

TEST_F(LogUploadsTest, AStepInTheReportMeansNothing) {
  submit(spec());
  run_well();
  v1::Fact what = world_.fact("j", 1);
  what.mutable_outputs_uploaded()->set_logs(true);
  what.mutable_outputs_uploaded()->set_step(5);
  what.mutable_outputs_uploaded()->set_seal(true);
  world_.report("n0", std::move(what));
  EXPECT_FALSE(part("n0").uploads_logs);
  EXPECT_EQ(job().current()->sealed_step, -1);
}

// It has run, and another instance of its agent knows nothing of that.
TEST_F(LogUploadsTest, ANodeThatIsSweptWithoutItsDirectoryHasLostThem) {
  submit(spec());
  run_well(false);
  ASSERT_TRUE(part("n0").logs_end);
  EXPECT_THAT(part("n0").logs_end->problem, HasSubstr("lost the run's directory"));
}

TEST_F(LogUploadsTest, ANodeThatHasRunNothingHasNone) {
  submit(spec());
  sweep("n0", false);
  ASSERT_TRUE(part("n0").logs_end);
  EXPECT_EQ(part("n0").logs_end->problem, "");
  EXPECT_TRUE(part("n0").closed());
}

TEST_F(LogUploadsTest, AnAgentWithAnotherStateDirectoryEndsTheWait) {
  submit(spec());
  run_well();
  collect();
  world_.see(Disconnected{.node = NodeName("n0"), .connection = ConnectionId(1)});
  connect("n0", "i2", "b1");
  world_.pass(std::chrono::seconds(1));
  ASSERT_TRUE(part("n0").logs_end);
  EXPECT_THAT(part("n0").logs_end->problem, HasSubstr("lost the run's directory"));
  EXPECT_TRUE(part("n0").closed());
  EXPECT_FALSE(part("n1").closed());
}

TEST_F(LogUploadsTest, ANodeThatUploadsIsNotDrainedYetAndARemovedOneEndsTheWait) {
  submit(spec());
  run_well();
  collect();
  world_.put(DrainNode{.node = NodeName("n0"), .actor = "root", .why = "disk"});
  EXPECT_FALSE(runs_nothing(world_.ledger, NodeName("n0")));
  world_.see(Disconnected{.node = NodeName("n0"), .connection = ConnectionId(1)});
  const Decision removed = world_.put(RemoveNode{.node = NodeName("n0"), .actor = "root"});
  ASSERT_TRUE(removed.refusal);
  EXPECT_THAT(removed.refusal->message, HasSubstr("may still be there"));
  world_.pass(std::chrono::hours(1));
  EXPECT_FALSE(world_.put(DeclareNodeDead{.node = NodeName("n0"), .reason = "gone"}).refusal);
  EXPECT_FALSE(world_.put(RemoveNode{.node = NodeName("n0"), .actor = "root"}).refusal);
  ASSERT_TRUE(part("n0").logs_end);
  EXPECT_EQ(part("n0").logs_end->problem, "the node was removed");
  EXPECT_TRUE(part("n0").closed());
}

TEST_F(LogUploadsTest, AStoreThatIsMissingIsRefused) {
  v1::JobSpec other = spec();
  other.mutable_outputs()->set_logs_to("s3://bucket/x");
  const Decision submitted = world_.submit("j", other);
  ASSERT_TRUE(submitted.refusal);
  EXPECT_THAT(submitted.refusal->message,
              HasSubstr("outputs.logs_to ('s3://bucket/x'): there is no store"));
}

TEST_F(LogUploadsTest, AnAgentThatDoesNotKnowThemGetsNoSuchJob) {
  connect("n1", "i1", "b1", false);
  const Decision submitted = world_.submit("j", spec());
  ASSERT_TRUE(submitted.refusal);
  EXPECT_THAT(submitted.refusal->message, HasSubstr("'n1' has an agent of release test, which "
                                                    "uploads no logs"));
}

}  // namespace
}  // namespace muster::core
