// Which nodes share the storage of their outputs, and what that means for checkpoint.storage:
// shared.
#include "controller/core/nodes/outputs_storage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/controller_core/small_world.h"

namespace muster::core {
namespace {

using testing::Contains;
using testing::HasSubstr;

struct StorageTest : testing::Test {
  SmallWorld world;
  void SetUp() override { world.limits.outputs_root = world.limits.cluster_out = "/srv/out"; }

  void node(const std::string& name) { world.node(name, 1, "b-" + name, "i-" + name); }
  void report(const std::string& name, const std::string& storage,
              const std::vector<std::string>& sees, const std::string& trouble = "",
              const std::string& root = "/srv/out") {
    HeartbeatHeard heard{.node = NodeName(name),
                         .connection = world.presence.nodes.at(NodeName(name)).connection};
    v1::OutputsReading& reading = *heard.heartbeat.mutable_host()->mutable_outputs();
    reading.set_root(root);
    reading.set_trouble(trouble);
    reading.set_storage_id(storage);
    for (const std::string& one : sees) reading.add_instances("i-" + one);
    world.see(heard);
  }
  std::string of(const std::string& name) const {
    return OutputsStorage(world.presence, world.limits.outputs_root, world.now).of(NodeName(name));
  }
};

TEST_F(StorageTest, ItIsSharedByThoseWhoSeeEachOther) {
  for (const char* name : {"n0", "n1", "n2"}) node(name);
  report("n0", "0123456789abcdef", {"n0", "n1"});
  EXPECT_EQ(of("n0"), "01234567");
  EXPECT_EQ(of("n1"), "") << "it has not reported yet";
  report("n1", "0123456789abcdef", {"n0", "n1"});
  EXPECT_EQ(of("n1"), "01234567");
  report("n2", "fedcba9876543210", {"n2"});
  EXPECT_EQ(of("n2"), "fedcba98");
  const OutputsStorage storage(world.presence, "/srv/out", world.now);
  EXPECT_EQ(storage.nodes_with("01234567"), 2U);
  EXPECT_EQ(storages_text(storage, {NodeName("n0"), NodeName("n1"), NodeName("n2")}),
            "'n0' and 1 other, 'n2'");
}

// The same id and no marks of each other: nobody knows, until the marks had the time to appear.
TEST_F(StorageTest, ACopyOfADiskIsOtherStorage) {
  node("n0");
  report("n0", "aaaa", {"n0"});
  world.pass(kMarksAppear);
  node("n1");
  report("n1", "aaaa", {"n0", "n1"});  // n0's old mark was copied, too
  EXPECT_EQ(of("n0"), "aaaa");
  EXPECT_EQ(of("n1"), "");
  world.pass(kMarksAppear - std::chrono::seconds(1));
  EXPECT_EQ(of("n1"), "");
  world.pass(std::chrono::seconds(1));
  EXPECT_EQ(of("n1"), "aaaa/2");
  EXPECT_EQ(of("n0"), "aaaa");
  report("n0", "aaaa", {"n0", "n1"});
  EXPECT_EQ(of("n1"), "aaaa");
}

TEST_F(StorageTest, WhatIsNotKnown) {
  node("n0");
  EXPECT_EQ(of("n0"), "");
  report("n0", "aaaa", {"n0"}, "'/srv/out' does not answer");
  EXPECT_EQ(of("n0"), "");
  report("n0", "aaaa", {"n0"}, "", "/other");
  EXPECT_EQ(of("n0"), "") << "of another directory";
  report("n0", "aaaa", {"n0"});
  EXPECT_EQ(of("n0"), "aaaa");
  HeartbeatHeard without{.node = NodeName("n0"),
                         .connection = world.presence.nodes.at(NodeName("n0")).connection};
  without.heartbeat.mutable_host();
  world.see(without);
  EXPECT_EQ(of("n0"), "aaaa") << "a heartbeat without it changes nothing";
  EXPECT_FALSE(world.presence.nodes.at(NodeName("n0")).host->has_outputs()) << "it is long";
  world.see(Disconnected{.node = NodeName("n0"),
                         .connection = world.presence.nodes.at(NodeName("n0")).connection});
  EXPECT_EQ(of("n0"), "");
  node("n0");
  EXPECT_EQ(of("n0"), "") << "on a new connection it has to report again";
}

TEST_F(StorageTest, WhatAnAgentReportsIsBounded) {
  node("n0");
  HeartbeatHeard heard{.node = NodeName("n0"),
                       .connection = world.presence.nodes.at(NodeName("n0")).connection};
  v1::OutputsReading& reading = *heard.heartbeat.mutable_host()->mutable_outputs();
  reading.set_root("/srv/out");
  reading.set_storage_id(std::string(1'000, 'a'));
  for (int i = 0; i < 5'000; ++i) reading.add_instances(std::to_string(i));
  reading.add_instances(std::string(65, 'b'));
  world.see(heard);
  const OutputsSeen& seen = *world.presence.nodes.at(NodeName("n0")).outputs;
  EXPECT_EQ(seen.storage_id.size(), 64U);
  EXPECT_EQ(seen.instances.size(), 4'096U);
}

TEST_F(StorageTest, WhereAJobSaves) {
  v1::JobSpec spec = SmallWorld::spec("train", 2, 1);
  v1::ResolvedSpec resolved;
  const auto below = [&] { return saves_below_outputs(spec, resolved, JobId("j1"), world.limits); };
  EXPECT_TRUE(below());
  resolved.set_outputs_root("/old/out");
  EXPECT_FALSE(below()) << "the job was accepted when that was the directory";
  resolved.clear_outputs_root();
  spec.set_output_dir("/srv/outer");
  EXPECT_FALSE(below());
  spec.set_output_dir("/srv/out/../else");
  EXPECT_FALSE(below());
  spec.set_output_dir("/srv/out/mine");
  EXPECT_TRUE(below());
  spec.mutable_checkpoint()->set_dir("/scratch");
  EXPECT_FALSE(below());
  spec.mutable_checkpoint()->set_dir("${out}/save");
  EXPECT_TRUE(below());
  spec.mutable_resources()->set_nodes(1);
  EXPECT_FALSE(below());
  spec.mutable_resources()->set_nodes(2);
  spec.mutable_resume()->set_enabled(false);
  EXPECT_FALSE(below());
}

struct SharedStorageTest : StorageTest {
  v1::JobSpec spec = SmallWorld::spec("train", 2, 1);
  void SetUp() override {
    StorageTest::SetUp();
    spec.mutable_checkpoint()->set_storage(v1::CHECKPOINT_STORAGE_SHARED);
    for (const char* name : {"n0", "n1", "n2"}) node(name);
    report("n0", "aaaa", {"n0"});
  }
  std::vector<std::string> placed(const std::string& job) const {
    std::vector<std::string> nodes;
    for (const NodePart& part : world.job(job).current()->parts)
      nodes.push_back(part.placed.node.str());
    return nodes;
  }
};

TEST_F(SharedStorageTest, TheNodesOfAJobHaveOneStorage) {
  report("n1", "bbbb", {"n1", "n2"});
  report("n2", "bbbb", {"n1", "n2"});
  ASSERT_FALSE(world.submit("j1", spec).refusal);
  EXPECT_EQ(placed("j1"), (std::vector<std::string>{"n1", "n2"}));
}

TEST_F(SharedStorageTest, WhatIsNotKnownGoesWithEverything) {
  report("n2", "bbbb", {"n2"});
  ASSERT_FALSE(world.submit("j1", spec).refusal);
  EXPECT_EQ(placed("j1"), (std::vector<std::string>{"n0", "n1"}));
}

TEST_F(SharedStorageTest, ItIsRefusedWhereNodesAreKnownNotToShare) {
  report("n1", "bbbb", {"n1"});
  report("n2", "cccc", {"n2"});
  const Decision decision = world.submit("j1", spec);
  ASSERT_TRUE(decision.refusal);
  EXPECT_EQ(decision.refusal->code, ErrorCode::Unsatisfiable);
  EXPECT_THAT(decision.refusal->message,
              HasSubstr("checkpoint.storage: shared, but at most 1 of the nodes that could do see "
                        "the same files in '/srv/out' ('n0', 'n1', 'n2' see different ones)"));
  spec.mutable_checkpoint()->clear_storage();
  EXPECT_FALSE(world.submit("j1", spec).refusal) << "auto is only warned of";
}

// The storage went apart after the submission. The job waits, and others pass it.
TEST_F(SharedStorageTest, AJobThatWaitsForSharedStorageDelaysNobody) {
  report("n1", "aaaa", {"n0", "n1"});
  report("n0", "aaaa", {"n0", "n1"});
  report("n2", "cccc", {"n2"});
  world.submit("busy", SmallWorld::spec("busy", 3, 1));
  ASSERT_FALSE(world.submit("j1", spec).refusal);
  ASSERT_FALSE(world.submit("j2", SmallWorld::spec("behind", 2, 1)).refusal);
  report("n1", "bbbb", {"n1"});
  world.put(CancelJob{.job = JobId("busy"), .reason = ""});
  for (const char* name : {"n0", "n1", "n2"}) {
    v1::Fact what = world.fact("busy", 1);
    what.mutable_swept()->set_why(v1::SWEPT_WHY_STOPPED);
    world.report(name, std::move(what), std::string("i-") + name);
  }
  EXPECT_EQ(world.job("j1").phase, JobPhase::Queued);
  EXPECT_EQ(world.job("j2").phase, JobPhase::Launching);
  EXPECT_THAT(explain(world.ledger, world.presence, world.job("j1"), world.now, world.limits),
              Contains(HasSubstr("see the same files in '/srv/out'")));
}

}  // namespace
}  // namespace muster::core
