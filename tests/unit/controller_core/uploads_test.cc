// A job with outputs.to: it is completing until its nodes have uploaded what they have.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "controller/core/nodes/drain.h"
#include "controller/core/recovery/uploads.h"
#include "small_world.h"

namespace muster::core {
namespace {

using testing::HasSubstr;

class UploadsTest : public testing::Test {
 protected:
  UploadsTest() {
    for (const char* name : {"n0", "n1"}) {
      v1::Inventory inventory = SmallWorld::inventory(1, name);
      inventory.set_rclone("1.60.1");
      inventory.set_uploads(true);
      world_.put(RegisterNode{.node = NodeName(name),
                              .instance = InstanceId("i1"),
                              .boot_id = BootId("b1"),
                              .inventory = inventory,
                              .version = "test"});
      world_.see(Connected{.node = NodeName(name),
                           .connection = ConnectionId(++world_.connections),
                           .instance = InstanceId("i1"),
                           .present = {},
                           .boot_id = BootId("b1")});
    }
    v1::StoreProfile profile;
    profile.set_url("webdav://out");
    profile.set_endpoint("http://out.example.org");
    EXPECT_FALSE(world_
                     .put(SetStore{.key = {.owner = {}, .shared = true, .name = "all"},
                                   .profile = profile,
                                   .actor = {}})
                     .refusal);
  }
  v1::JobSpec spec(bool local = false) {
    v1::JobSpec spec = SmallWorld::spec("writes", 2, 1);
    spec.mutable_outputs()->set_to("webdav://out/runs");
    if (local) spec.mutable_checkpoint()->set_storage(v1::CHECKPOINT_STORAGE_LOCAL);
    return spec;
  }
  void submit(const v1::JobSpec& spec) {
    const Decision submitted = world_.submit("j", spec);
    ASSERT_FALSE(submitted.refusal) << submitted.refusal->message;
  }
  void run_well() {
    std::uint32_t rank = 0;
    for (const char* node : {"n0", "n1"}) {
      world_.started("j", 1, node);
      world_.exited("j", 1, node, rank++, 0);
      v1::Fact what = world_.fact("j", 1);
      what.mutable_swept()->set_why(v1::SWEPT_WHY_ENDED);
      what.mutable_swept()->set_logs_follow(true);
      world_.report(node, std::move(what));
    }
  }
  Decision uploaded(const std::string& node, const std::string& problem = "") {
    v1::Fact what = world_.fact("j", 1);
    what.mutable_outputs_uploaded()->set_files(2);
    what.mutable_outputs_uploaded()->set_problem(problem);
    return world_.report(node, std::move(what));
  }
  void start(std::uint32_t attempt = 1) {
    for (const char* node : {"n0", "n1"}) world_.started("j", attempt, node);
  }
  void checkpoint(std::int64_t step) {
    world_.put(ProposeCheckpoint{.job = JobId("j"),
                                 .attempt = AttemptNo(1),
                                 .step = step,
                                 .path = "/out/checkpoints/attempt-1/x",
                                 .bytes = 1,
                                 .shards = 2});
  }
  Decision sent(const std::string& node, std::int64_t step, bool seal = false,
                const std::string& problem = "", const std::string& sums = "") {
    v1::Fact what = world_.fact("j", 1);
    what.mutable_outputs_uploaded()->set_files(2);
    what.mutable_outputs_uploaded()->set_step(step);
    what.mutable_outputs_uploaded()->set_seal(seal);
    what.mutable_outputs_uploaded()->set_problem(problem);
    what.mutable_outputs_uploaded()->set_sums_sha256(sums);
    return world_.report(node, std::move(what));
  }
  std::vector<NodeSums> sums_due(const char* node) {
    const AttemptRecord& record = *job().current();
    const auto order = upload_due(job(), record, *record.part(NodeName(node)));
    return order ? order->sums : std::vector<NodeSums>();
  }
  // "everything", "step 3", "seal 3", "nothing"
  std::string due(const char* node, std::uint32_t attempt = 1) {
    const AttemptRecord& record = *job().attempt(AttemptNo(attempt));
    const auto order = upload_due(job(), record, *record.part(NodeName(node)));
    if (!order) return "nothing";
    if (!order->step) return "everything";
    return (order->seal ? "seal " : "step ") + std::to_string(*order->step);
  }
  bool is_uploaded(std::int64_t step) {
    for (const CheckpointRecord& one : job().checkpoints)
      if (one.step == step) return one.uploaded;
    return false;
  }
  const JobRecord& job() { return world_.job("j"); }
  const NodePart& part(const char* node) { return *job().attempts.front().part(NodeName(node)); }

  SmallWorld world_;
};

TEST_F(UploadsTest, TheFirstNodeUploadsWhatAllSee) {
  submit(spec());
  run_well();
  EXPECT_EQ(job().phase, JobPhase::Completing);
  EXPECT_EQ(job().current()->state, AttemptState::Completed) << "its devices are free";
  EXPECT_TRUE(part("n0").uploads);
  EXPECT_FALSE(part("n1").uploads);
  uploaded("n0");
  EXPECT_EQ(job().phase, JobPhase::Succeeded);
  EXPECT_EQ(part("n0").outputs->files, 2U);
}

TEST_F(UploadsTest, EachNodeUploadsWhatIsOnItsOwnDisk) {
  submit(spec(true));
  run_well();
  uploaded("n1");
  EXPECT_EQ(job().phase, JobPhase::Completing);
  uploaded("n0", "no space");
  EXPECT_EQ(job().phase, JobPhase::Succeeded) << "the training has succeeded";
  EXPECT_EQ(part("n0").outputs->problem, "no space");
}

TEST_F(UploadsTest, TheSealHasTheListsOfAllNodes) {
  const std::string a(64, 'a'), b(64, 'b'), c(64, 'c');
  submit(spec(true));
  start();
  checkpoint(100);
  sent("n1", 100, false, "", b);
  EXPECT_THAT(sums_due("n0"), testing::IsEmpty());
  sent("n0", 100, false, "", a);
  EXPECT_EQ(due("n0"), "seal 100");
  EXPECT_THAT(sums_due("n0"),
              testing::ElementsAre(NodeSums{NodeName("n0"), a}, NodeSums{NodeName("n1"), b}));
  sent("n0", 100, true);
  checkpoint(200);
  sent("n1", 200, false, "", c);
  sent("n0", 200, false, "", "../../etc");
  EXPECT_EQ(due("n0"), "seal 200");
  EXPECT_THAT(sums_due("n0"), testing::IsEmpty()) << "n0 has none of this step";
}

TEST_F(UploadsTest, OldOnesAreRemovedWhenANewOneIsThere) {
  v1::JobSpec two = spec();
  two.mutable_outputs()->set_keep(2);
  submit(two);
  start();
  const auto seal_of = [&](std::int64_t step) {
    checkpoint(step);
    sent("n0", step);
    const AttemptRecord& attempt = *job().current();
    const auto order = upload_due(job(), attempt, *attempt.part(NodeName("n0")));
    EXPECT_TRUE(order && order->seal);
    return order ? order->remove : std::vector<RemoteCheckpoint>();
  };
  const auto sealed = [&](std::int64_t step, const std::vector<std::int64_t>& removed) {
    v1::Fact what = world_.fact("j", 1);
    v1::OutputsUploaded& end = *what.mutable_outputs_uploaded();
    end.set_step(step);
    end.set_seal(true);
    for (const std::int64_t one : removed) {
      end.add_removed()->set_attempt(1);
      end.mutable_removed()->rbegin()->set_step(one);
    }
    world_.report("n0", std::move(what));
  };
  const auto steps = [](const std::vector<RemoteCheckpoint>& all) {
    std::vector<std::int64_t> found;
    for (const RemoteCheckpoint& one : all) found.push_back(one.step);
    return found;
  };
  EXPECT_THAT(seal_of(100), testing::IsEmpty());
  sealed(100, {});
  EXPECT_THAT(seal_of(200), testing::IsEmpty());
  sealed(200, {});
  EXPECT_THAT(steps(seal_of(300)), testing::ElementsAre(100));
  sealed(300, {});
  EXPECT_TRUE(is_uploaded(100)) << "the node could not remove it";
  EXPECT_THAT(steps(seal_of(400)), testing::ElementsAre(200, 100));
  sealed(400, {100, 200});
  EXPECT_FALSE(is_uploaded(100));
  EXPECT_FALSE(is_uploaded(200));
  EXPECT_TRUE(is_uploaded(300));
  checkpoint(500);
  sent("n0", 500, false, "the store has no space");
  run_well();
  EXPECT_EQ(due("n0"), "everything");
  const AttemptRecord& attempt = *job().current();
  EXPECT_THAT(steps(upload_due(job(), attempt, *attempt.part(NodeName("n0")))->kept),
              testing::ElementsAre(300, 400, 500))
      << "the newest one, which is not there";
  EXPECT_THAT(steps(upload_due(job(), attempt, *attempt.part(NodeName("n0")))->remove),
              testing::IsEmpty());
}

TEST_F(UploadsTest, InTheEndTheNewestAreUploadedAsLongAsThereIsAPlace) {
  v1::JobSpec many = spec();
  many.mutable_outputs()->set_keep(3);
  submit(many);
  start();
  for (const std::int64_t step : {100, 200, 300, 400}) checkpoint(step);
  sent("n0", 400);
  sent("n0", 400, true);
  run_well();
  EXPECT_EQ(due("n0"), "everything");
  const AttemptRecord& attempt = *job().current();
  const auto order = upload_due(job(), attempt, *attempt.part(NodeName("n0")));
  std::vector<std::int64_t> kept;
  for (const RemoteCheckpoint& one : order->kept) kept.push_back(one.step);
  EXPECT_THAT(kept, testing::ElementsAre(400, 300, 200));
}

// Regression: two seals were under way at once, and what the first had brought stayed.
TEST_F(UploadsTest, InTheEndThoseThatAreTooManyAreRemoved) {
  v1::JobSpec one = spec();
  one.mutable_outputs()->set_keep(1);
  submit(one);
  start();
  for (const std::int64_t step : {100, 200}) {
    checkpoint(step);
    sent("n0", step);
    sent("n0", step, true);
  }
  run_well();
  EXPECT_EQ(due("n0"), "everything");
  const AttemptRecord& attempt = *job().current();
  const auto order = upload_due(job(), attempt, *attempt.part(NodeName("n0")));
  ASSERT_EQ(order->remove.size(), 1U);
  EXPECT_EQ(order->remove.front().step, 100);
  EXPECT_FALSE(order->remove.front().mark);
  ASSERT_EQ(order->kept.size(), 1U);
  EXPECT_EQ(order->kept.front().step, 200);
  v1::Fact what = world_.fact("j", 1);
  v1::RemoteCheckpoint& removed = *what.mutable_outputs_uploaded()->add_removed();
  removed.set_attempt(1);
  removed.set_step(100);
  world_.report("n0", std::move(what));
  EXPECT_FALSE(is_uploaded(100));
  EXPECT_EQ(job().phase, JobPhase::Succeeded);
}

// Regression: a node that came back uploaded a checkpoint of an earlier attempt, and the newest one
// was removed for it.
TEST_F(UploadsTest, AnOldOneThatComesLateTakesNoPlace) {
  v1::JobSpec one = spec(true);
  one.mutable_outputs()->set_keep(1);
  submit(one);
  start();
  checkpoint(100);
  checkpoint(200);
  sent("n0", 200);
  sent("n1", 200);
  sent("n0", 200, true);
  EXPECT_TRUE(is_uploaded(200));
  JobRecord late = job();
  CheckpointRecord newest = late.checkpoints.front();
  newest.attempt = AttemptNo(2);
  newest.step = 300;
  newest.uploaded = true;
  late.checkpoints.push_back(newest);
  AttemptRecord& attempt = late.attempts.front();
  attempt.sealed_step = -1;
  attempt.sending = {.step = 100, .nodes = 2};
  const auto order = upload_due(late, attempt, *attempt.part(NodeName("n0")));
  ASSERT_TRUE(order && order->seal);
  ASSERT_EQ(order->remove.size(), 1U);
  EXPECT_EQ(order->remove.front(),
            (RemoteCheckpoint{.attempt = AttemptNo(1), .step = 200, .mark = false}));
}

TEST_F(UploadsTest, ItIsReportedOnce) {
  submit(spec());
  run_well();
  EXPECT_TRUE(uploaded("n1").events.empty()) << "this one uploads nothing";
  uploaded("n0");
  EXPECT_TRUE(uploaded("n0", "another").events.empty());
  EXPECT_EQ(part("n0").outputs->problem, "");
}

TEST_F(UploadsTest, ANodeThatIsLostIsNotWaitedFor) {
  submit(spec());
  run_well();
  world_.see(Disconnected{.node = NodeName("n0"), .connection = ConnectionId(1)});
  world_.pass(std::chrono::hours(1));
  EXPECT_FALSE(world_.put(DeclareNodeDead{.node = NodeName("n0"), .reason = "gone"}).refusal);
  EXPECT_EQ(job().phase, JobPhase::Succeeded);
  const auto note = job().current()->notes.find(Note::OutputsIncomplete);
  ASSERT_NE(note, job().current()->notes.end());
  EXPECT_EQ(note->second.text, "'n0'");
}

TEST_F(UploadsTest, ACancelEndsTheWait) {
  submit(spec());
  run_well();
  world_.put(CancelJob{.job = JobId("j"), .reason = "enough"});
  EXPECT_EQ(job().phase, JobPhase::Cancelled);
  ASSERT_TRUE(job().verdict);
  EXPECT_THAT(job().verdict->reason, HasSubstr("enough"));
}

TEST_F(UploadsTest, ARunDirectoryStaysUntilThen) {
  submit(spec());
  run_well();
  for (const char* node : {"n0", "n1"}) world_.logs("j", 1, node);
  EXPECT_FALSE(part("n0").closed());
  EXPECT_TRUE(part("n1").closed());
  uploaded("n0");
  EXPECT_TRUE(part("n0").closed());
}

TEST_F(UploadsTest, AWholeCheckpointIsUploadedWhileTheAttemptGoesOn) {
  submit(spec());
  EXPECT_EQ(due("n0"), "nothing");
  start();
  EXPECT_EQ(due("n0"), "nothing") << "it has saved nothing";
  checkpoint(100);
  EXPECT_EQ(due("n0"), "step 100");
  EXPECT_EQ(due("n1"), "nothing") << "the first node sees all files";
  checkpoint(200);
  EXPECT_EQ(due("n0"), "step 200") << "the newest one";
  sent("n0", 100);
  EXPECT_EQ(due("n0"), "seal 100") << "it had begun with that";
  EXPECT_FALSE(is_uploaded(100));
  sent("n0", 100, true);
  EXPECT_TRUE(is_uploaded(100));
  EXPECT_EQ(due("n0"), "step 200");
  sent("n0", 200);
  sent("n0", 200, true);
  EXPECT_EQ(due("n0"), "nothing");
  EXPECT_TRUE(sent("n0", 200).events.empty());
  EXPECT_TRUE(sent("n0", 200, true).events.empty());
}

TEST_F(UploadsTest, TheMarkIsUploadedWhenAllNodesHaveTheirFilesThere) {
  submit(spec(true));
  start();
  checkpoint(100);
  EXPECT_EQ(due("n0"), "step 100");
  EXPECT_EQ(due("n1"), "step 100");
  sent("n0", 100);
  EXPECT_EQ(due("n0"), "nothing");
  checkpoint(200);
  EXPECT_EQ(due("n0"), "nothing") << "all upload the same step";
  EXPECT_EQ(due("n1"), "step 100");
  sent("n1", 100);
  EXPECT_EQ(due("n0"), "seal 100");
  EXPECT_EQ(due("n1"), "nothing");
  sent("n0", 100, true);
  EXPECT_EQ(due("n0"), "step 200");
  EXPECT_EQ(due("n1"), "step 200");
}

TEST_F(UploadsTest, ACheckpointThatANodeCannotUploadGetsNoMark) {
  submit(spec(true));
  start();
  checkpoint(100);
  sent("n1", 100, false, "it is gone");
  EXPECT_EQ(due("n0"), "step 100");
  sent("n0", 100);
  EXPECT_EQ(due("n0"), "nothing");
  EXPECT_FALSE(is_uploaded(100));
  checkpoint(200);
  EXPECT_EQ(due("n0"), "step 200");
  EXPECT_EQ(due("n1"), "step 200");
}

TEST_F(UploadsTest, ANodeThatIsAheadIsFollowed) {
  submit(spec(true));
  start();
  checkpoint(100);
  checkpoint(200);
  sent("n1", 100);  // ordered before the second one was known
  EXPECT_EQ(due("n0"), "step 100");
  sent("n0", 200);
  EXPECT_EQ(due("n1"), "step 200") << "n0 has none of step 100";
  sent("n1", 200);
  EXPECT_EQ(due("n0"), "seal 200");
}

TEST_F(UploadsTest, TheNewestCheckpointGoesBeforeEverything) {
  submit(spec());
  start();
  checkpoint(100);
  run_well();
  EXPECT_EQ(due("n0"), "step 100");
  sent("n0", 100);
  EXPECT_EQ(due("n0"), "seal 100");
  sent("n0", 100, true);
  EXPECT_EQ(due("n0"), "everything");
  EXPECT_EQ(job().phase, JobPhase::Completing);
  uploaded("n0");
  EXPECT_EQ(due("n0"), "nothing");
  EXPECT_EQ(job().phase, JobPhase::Succeeded);
}

TEST_F(UploadsTest, ALaterAttemptTakesOver) {
  submit(spec());
  start();
  world_.exited("j", 1, "n0", 0, 3);
  for (const char* node : {"n0", "n1"}) {
    v1::Fact what = world_.fact("j", 1);
    what.mutable_swept()->set_why(v1::SWEPT_WHY_ENDED);
    what.mutable_swept()->set_logs_follow(true);
    world_.report(node, std::move(what));
  }
  world_.pass(std::chrono::minutes(10));
  ASSERT_EQ(job().attempts.size(), 2U);
  EXPECT_EQ(due("n0"), "nothing") << "the second attempt may write there";
  EXPECT_TRUE(part("n0").uploads) << "it may never start";
  for (const char* node : {"n0", "n1"}) world_.logs("j", 1, node);
  EXPECT_FALSE(part("n0").closed());
  start(2);
  EXPECT_FALSE(part("n0").uploads);
  EXPECT_TRUE(part("n0").closed());
  EXPECT_TRUE(job().attempts.back().part(NodeName("n0"))->uploads);
}

TEST_F(UploadsTest, NobodyWaitsForTheCheckpointOfANodeThatIsLost) {
  submit(spec(true));
  start();
  checkpoint(100);
  run_well();
  sent("n0", 100);
  EXPECT_EQ(due("n0"), "nothing");
  world_.see(Disconnected{.node = NodeName("n1"), .connection = ConnectionId(2)});
  world_.pass(std::chrono::hours(1));
  world_.see(HeartbeatHeard{.node = NodeName("n0"), .connection = ConnectionId(1)});
  EXPECT_FALSE(world_.put(DeclareNodeDead{.node = NodeName("n1"), .reason = "gone"}).refusal);
  EXPECT_EQ(job().phase, JobPhase::Completing);
  EXPECT_EQ(due("n0"), "everything");
  EXPECT_FALSE(is_uploaded(100));
  uploaded("n0");
  EXPECT_EQ(job().phase, JobPhase::Succeeded);
  EXPECT_TRUE(job().current()->notes.contains(Note::OutputsIncomplete));
}

TEST_F(UploadsTest, NobodyWaitsForTheMarkOfANodeThatIsLost) {
  submit(spec(true));
  start();
  checkpoint(100);
  run_well();
  for (const char* node : {"n0", "n1"}) sent(node, 100);
  EXPECT_EQ(due("n1"), "nothing");
  world_.see(Disconnected{.node = NodeName("n0"), .connection = ConnectionId(1)});
  world_.pass(std::chrono::hours(1));
  world_.see(HeartbeatHeard{.node = NodeName("n1"), .connection = ConnectionId(2)});
  EXPECT_FALSE(world_.put(DeclareNodeDead{.node = NodeName("n0"), .reason = "gone"}).refusal);
  EXPECT_EQ(job().phase, JobPhase::Completing);
  EXPECT_EQ(due("n1"), "everything");
  EXPECT_FALSE(is_uploaded(100));
}

TEST_F(UploadsTest, NobodyWaitsForTheCheckpointOfANodeWithoutItsDirectory) {
  submit(spec(true));
  start();
  checkpoint(100);
  run_well();
  sent("n0", 100);
  world_.put(
      ProposeOutputsLost{.job = JobId("j"), .attempt = AttemptNo(1), .node = NodeName("n1")});
  EXPECT_EQ(due("n0"), "everything");
  uploaded("n0");
  EXPECT_EQ(job().phase, JobPhase::Succeeded);
}

TEST_F(UploadsTest, ACheckpointGoesOnWhileOtherNodesAreNotSwept) {
  submit(spec(true));
  start();
  checkpoint(100);
  world_.exited("j", 1, "n0", 0, 0);
  v1::Fact what = world_.fact("j", 1);
  what.mutable_swept()->set_why(v1::SWEPT_WHY_ENDED);
  what.mutable_swept()->set_logs_follow(true);
  world_.report("n0", std::move(what));
  EXPECT_EQ(due("n0"), "step 100") << "a pause would end what is under way";
}

TEST_F(UploadsTest, NodesThatAreLostBeforeTheEndAreNoted) {
  submit(spec());
  start();
  for (std::uint32_t rank : {0U, 1U}) world_.exited("j", 1, rank == 0 ? "n0" : "n1", rank, 0);
  for (std::uint64_t one : {1U, 2U})
    world_.see(
        Disconnected{.node = NodeName(one == 1 ? "n0" : "n1"), .connection = ConnectionId(one)});
  world_.pass(std::chrono::hours(1));
  for (const char* node : {"n0", "n1"})
    EXPECT_FALSE(world_.put(DeclareNodeDead{.node = NodeName(node), .reason = "gone"}).refusal);
  EXPECT_EQ(job().phase, JobPhase::Succeeded);
  EXPECT_TRUE(job().current()->notes.contains(Note::OutputsIncomplete));
}

// It has run, and another instance of its agent knows nothing of that.
TEST_F(UploadsTest, ANodeThatIsSweptWithoutItsDirectoryHasLostOutputs) {
  submit(spec());
  start();
  for (std::uint32_t rank : {0U, 1U}) world_.exited("j", 1, rank == 0 ? "n0" : "n1", rank, 0);
  for (const char* node : {"n0", "n1"}) {
    v1::Fact what = world_.fact("j", 1);
    what.mutable_swept()->set_why(v1::SWEPT_WHY_NEVER_STARTED);
    world_.report(node, std::move(what));
  }
  EXPECT_EQ(job().phase, JobPhase::Succeeded);
  ASSERT_TRUE(part("n0").outputs);
  EXPECT_THAT(part("n0").outputs->problem, HasSubstr("lost the run's directory"));
}

// The first node is in both attempts, and has the same directory in both.
TEST_F(UploadsTest, ANodeThatIsLeftBehindWaitsForNobody) {
  v1::Inventory inventory = SmallWorld::inventory(1, "n2");
  inventory.set_rclone("1.60.1");
  inventory.set_uploads(true);
  submit(spec(true));
  start();
  checkpoint(100);
  world_.put(RegisterNode{.node = NodeName("n2"),
                          .instance = InstanceId("i1"),
                          .boot_id = BootId("b1"),
                          .inventory = inventory,
                          .version = "test"});
  world_.see(Connected{.node = NodeName("n2"),
                       .connection = ConnectionId(++world_.connections),
                       .instance = InstanceId("i1"),
                       .present = {},
                       .boot_id = BootId("b1")});
  world_.put(DrainNode{.node = NodeName("n1"), .actor = "root"});
  world_.exited("j", 1, "n1", 1, 3);
  for (const char* node : {"n0", "n1"}) {
    v1::Fact what = world_.fact("j", 1);
    what.mutable_swept()->set_why(v1::SWEPT_WHY_ENDED);
    what.mutable_swept()->set_logs_follow(true);
    world_.report(node, std::move(what));
  }
  world_.pass(std::chrono::minutes(10));
  for (const char* node : {"n0", "n1", "n2"}) {
    world_.see(
        HeartbeatHeard{.node = NodeName(node), .connection = ConnectionId(node[1] - '0' + 1)});
  }
  ASSERT_EQ(job().attempts.size(), 2U);
  EXPECT_EQ(due("n1"), "step 100");
  for (const char* node : {"n0", "n2"}) world_.started("j", 2, node);
  EXPECT_FALSE(part("n0").uploads);
  EXPECT_EQ(due("n1"), "everything") << "of step 100 the first node uploads nothing more";
}

// Regression: it was called drained, and could be removed.
TEST_F(UploadsTest, ANodeThatUploadsIsNotDrainedYet) {
  submit(spec());
  run_well();
  world_.put(DrainNode{.node = NodeName("n0"), .actor = "root", .why = "disk"});
  EXPECT_FALSE(runs_nothing(world_.ledger, NodeName("n0")));
  EXPECT_TRUE(runs_nothing(world_.ledger, NodeName("n1")));
  world_.see(Disconnected{.node = NodeName("n0"), .connection = ConnectionId(1)});
  const Decision removed = world_.put(RemoveNode{.node = NodeName("n0"), .actor = "root"});
  ASSERT_TRUE(removed.refusal);
  EXPECT_THAT(removed.refusal->message, HasSubstr("may still be there"));
  uploaded("n0");
  EXPECT_TRUE(runs_nothing(world_.ledger, NodeName("n0")));
}

TEST_F(UploadsTest, ANodeThatIsRemovedEndsTheWait) {
  submit(spec());
  run_well();
  world_.see(Disconnected{.node = NodeName("n0"), .connection = ConnectionId(1)});
  world_.pass(std::chrono::hours(1));
  EXPECT_FALSE(world_.put(DeclareNodeDead{.node = NodeName("n0"), .reason = "gone"}).refusal);
  EXPECT_FALSE(world_.put(RemoveNode{.node = NodeName("n0"), .actor = "root"}).refusal);
  ASSERT_TRUE(part("n0").outputs);
  EXPECT_EQ(part("n0").outputs->problem, "the node was removed");
  EXPECT_TRUE(part("n0").closed());
}

TEST_F(UploadsTest, AStoreThatIsMissingIsRefused) {
  v1::JobSpec other = spec();
  other.mutable_outputs()->set_to("s3://bucket/x");
  const Decision submitted = world_.submit("j", other);
  ASSERT_TRUE(submitted.refusal);
  EXPECT_THAT(submitted.refusal->message,
              HasSubstr("outputs.to ('s3://bucket/x'): there is no store"));
}

TEST_F(UploadsTest, AReplayGivesTheSame) {
  submit(spec(true));
  run_well();
  uploaded("n1");
  Ledger again;
  for (const auto& [index, event] : world_.journal) apply(again, index, event);
  EXPECT_EQ(dump(again), dump(world_.ledger));
}

}  // namespace
}  // namespace muster::core
