// Which files the nodes of an attempt have of a job's inputs in stores.
#include "controller/core/model/attempt_inputs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "small_world.h"

namespace muster::core {
namespace {

using testing::HasSubstr;

const std::string kOld(64, 'a'), kNew(64, 'b');

class AttemptInputs : public testing::Test {
 protected:
  AttemptInputs() {
    for (const char* name : {"n0", "n1"}) {
      v1::Inventory inventory = SmallWorld::inventory(1, name);
      inventory.set_rclone("1.60.1");
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
    profile.set_url("webdav://data");
    profile.set_endpoint("http://data.example.org");
    EXPECT_FALSE(world_
                     .put(SetStore{.key = {.owner = {}, .shared = true, .name = "all"},
                                   .profile = profile,
                                   .actor = {}})
                     .refusal);
    v1::JobSpec spec = SmallWorld::spec("reads", 2, 1);
    spec.mutable_recovery()->set_max_restarts(5);
    v1::InputSpec& input = *spec.add_inputs();
    input.set_name("data");
    input.set_from("webdav://data/wiki");
    const Decision submitted = world_.submit("j", spec);
    EXPECT_FALSE(submitted.refusal) << submitted.refusal->message;
    EXPECT_EQ(attempt().inputs.size(), 1U);
  }
  const AttemptRecord& attempt() { return *world_.job("j").current(); }
  // The node has started, with files of this digest.
  Decision started(const std::string& node, const std::string& sha256,
                   const std::string& name = "data") {
    v1::Fact fact = world_.fact("j", attempt().number.value);
    v1::InputState& input = *fact.mutable_started()->mutable_resolved()->add_inputs();
    input.set_name(name);
    input.set_contents_sha256(sha256);
    input.set_objects(sha256 == kOld ? 3 : 4);
    return world_.report(node, std::move(fact));
  }
  void end_it() {
    const std::uint32_t number = attempt().number.value;
    for (const char* node : {"n0", "n1"}) {
      world_.exited("j", number, node, node[1] - '0', -1, 15);
      world_.swept("j", number, node, v1::SWEPT_WHY_STOPPED);
    }
  }
  const std::map<std::string, InputPin>& pins() { return world_.job("j").input_pins; }
  const InputPin& pin() { return pins().at("data"); }
  std::optional<AttemptNoted> note() {
    const auto& notes = attempt().notes;
    const auto found = notes.find(Note::InputsChanged);
    return found == notes.end() ? std::nullopt : std::optional(found->second);
  }

  SmallWorld world_;
};

TEST_F(AttemptInputs, WhenAllNodesAgreeTheNextAttemptHasTheSame) {
  started("n0", kOld);
  EXPECT_TRUE(pins().empty()) << "the other one may differ, or fail";
  started("n1", kOld);
  EXPECT_EQ(attempt().state, AttemptState::Live);
  EXPECT_EQ(pin().contents_sha256, kOld);
  EXPECT_FALSE(pin().anew);
}

TEST_F(AttemptInputs, TwoNodesWithDifferentFilesBreakTheAttempt) {
  started("n0", kOld);
  started("n1", kNew);
  EXPECT_EQ(attempt().state, AttemptState::Stopping);
  EXPECT_THAT(attempt().broke_cause,
              HasSubstr("inputs.data has other files on node 'n1' than on node 'n0' (4 of 0 bytes, "
                        "and 3 of 0 bytes)"));
  EXPECT_TRUE(pins().empty()) << "the next attempt lists anew";
  end_it();
  const AttemptRecord& broken = *world_.job("j").attempt(AttemptNo(1));
  ASSERT_TRUE(broken.verdict);
  EXPECT_EQ(broken.verdict->cls, FailureClass::Launch);
  EXPECT_THAT(broken.verdict->reason, HasSubstr("inputs.data has other files"));
  ASSERT_EQ(attempt().number, AttemptNo(2)) << "it is tried again";
  started("n1", kNew);
  started("n0", kNew);
  EXPECT_EQ(attempt().state, AttemptState::Live);
  EXPECT_EQ(pin().contents_sha256, kNew);
  EXPECT_FALSE(note()) << "the job has begun with nothing else";
}

// A node that is new in the job has listed what has changed since.
TEST_F(AttemptInputs, ANodeThatDiffersMakesAllListAnewAndThatIsNoted) {
  started("n0", kOld);
  started("n1", kOld);
  end_it();
  started("n1", kNew);
  EXPECT_FALSE(note()) << "the other one may have what the job began with";
  EXPECT_EQ(pin().contents_sha256, kOld);
  started("n0", kOld);
  EXPECT_EQ(attempt().state, AttemptState::Stopping);
  EXPECT_TRUE(pin().anew);
  end_it();
  started("n0", kNew);
  started("n1", kNew);
  EXPECT_EQ(pin().contents_sha256, kNew);
  EXPECT_FALSE(pin().anew);
  ASSERT_TRUE(note());
  EXPECT_EQ(note()->text, "data");
}

TEST_F(AttemptInputs, ANodeThatHasLostAFileMakesAllListAnew) {
  started("n0", kOld);
  started("n1", kOld);
  end_it();
  v1::Fact lost = world_.fact("j", 2);
  lost.mutable_start_failed()->set_why(v1::START_FAILURE_INPUTS);
  world_.report("n0", std::move(lost));
  EXPECT_FALSE(pin().anew) << "the store was away";
  for (const char* node : {"n0", "n1"}) world_.swept("j", 2, node, v1::SWEPT_WHY_NEVER_STARTED);
  ASSERT_EQ(attempt().number, AttemptNo(3));
  lost = world_.fact("j", 3);
  lost.mutable_start_failed()->set_why(v1::START_FAILURE_INPUTS_CHANGED);
  world_.report("n0", std::move(lost));
  EXPECT_TRUE(pin().anew);
}

TEST_F(AttemptInputs, OfAReportThatIsTooLongTheInputsStay) {
  v1::Fact fact = world_.fact("j", 1);
  v1::NodeResolved& resolved = *fact.mutable_started()->mutable_resolved();
  resolved.add_env(std::string(2 << 20, 'x'));
  resolved.set_run_dir("/run");
  v1::InputState& input = *resolved.add_inputs();
  input.set_name("data");
  input.set_contents_sha256(kNew);
  world_.report("n0", std::move(fact));
  const v1::NodeResolved& kept = attempt().part(NodeName("n0"))->resolved;
  EXPECT_EQ(kept.env_size(), 0);
  EXPECT_EQ(kept.run_dir(), "");
  ASSERT_EQ(kept.inputs_size(), 1);
  started("n1", kOld);
  EXPECT_EQ(attempt().state, AttemptState::Stopping) << "they differ";
}

TEST_F(AttemptInputs, AReportOfAnEarlierAttemptChangesNothing) {
  started("n0", kOld);
  end_it();
  ASSERT_EQ(attempt().number, AttemptNo(2));
  started("n0", kOld);
  started("n1", kOld);
  v1::Fact late = world_.fact("j", 1);
  v1::InputState& input = *late.mutable_started()->mutable_resolved()->add_inputs();
  input.set_name("data");
  input.set_contents_sha256(kNew);
  world_.report("n1", std::move(late));
  EXPECT_EQ(pin().contents_sha256, kOld);
  EXPECT_FALSE(pin().anew);
  EXPECT_EQ(attempt().state, AttemptState::Live);
}

// Regression: the verdict of an attempt that something else had broken was that its inputs differ.
TEST_F(AttemptInputs, WhatBrokeTheAttemptFirstIsItsVerdict) {
  started("n0", kOld);
  world_.exited("j", 1, "n0", 0, 2);
  EXPECT_EQ(attempt().state, AttemptState::Stopping);
  started("n1", kNew);
  world_.exited("j", 1, "n1", 1, 0);
  for (const char* node : {"n0", "n1"}) world_.swept("j", 1, node, v1::SWEPT_WHY_STOPPED);
  const AttemptRecord& broken = *world_.job("j").attempt(AttemptNo(1));
  ASSERT_TRUE(broken.verdict);
  EXPECT_EQ(broken.verdict->cls, FailureClass::UserError) << broken.verdict->reason;
}

TEST_F(AttemptInputs, WhatIsNoneOfTheJobsInputsIsLeftOut) {
  started("n0", kOld, "another");
  started("n1", "../../etc/passwd");
  EXPECT_TRUE(pins().empty());
  for (const NodePart& part : attempt().parts) EXPECT_EQ(part.resolved.inputs_size(), 0);
  EXPECT_EQ(attempt().state, AttemptState::Live);
}

TEST_F(AttemptInputs, AReplayGivesTheSame) {
  started("n0", kOld);
  started("n1", kOld);
  end_it();
  started("n0", kNew);
  started("n1", kOld);
  Ledger again;
  for (const auto& [index, event] : world_.journal) apply(again, index, event);
  EXPECT_EQ(dump(again), dump(world_.ledger));
  EXPECT_THAT(dump(again), HasSubstr("input data " + kOld + " anew=true"));
}

}  // namespace
}  // namespace muster::core
