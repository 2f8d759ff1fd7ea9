// Regression: only the first failure of a job over two machines, an hour later, showed that its
// checkpoints were on separate disks.
#include "controller/core/submission_warnings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/controller_core/small_world.h"

namespace muster::core {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> warnings_of(const SmallWorld& world, const v1::JobSpec& spec,
                                     std::vector<NodeName> nodes = {}) {
  JobRecord job;
  job.id = JobId("1");
  job.spec = spec;
  return submission_warnings({.ledger = world.ledger,
                              .presence = world.presence,
                              .job = job,
                              .out = "/srv/out/1",
                              .nodes = std::move(nodes),
                              .now = world.now,
                              .limits = world.limits});
}

TEST(SubmissionWarnings, AnOutputThatSeveralMachinesMayNotShare) {
  SmallWorld world;
  world.node("n0", 1, "b0");
  v1::JobSpec spec = SmallWorld::spec("train", 2, 1);
  const auto warnings = [&] { return warnings_of(world, spec); };
  EXPECT_THAT(warnings(), IsEmpty()) << "one machine";
  world.node("n1", 1, "b0");
  EXPECT_THAT(warnings(), IsEmpty()) << "two agents on it";
  world.node("n2", 1, "b2");
  EXPECT_THAT(
      warnings(),
      ElementsAre(testing::AllOf(
          HasSubstr("job 'train' takes 2 nodes, and nothing says that they share '/srv/out/1': "),
          HasSubstr("local that each node goes on from its own disk"))));
  spec.mutable_checkpoint()->set_storage(v1::CHECKPOINT_STORAGE_SHARED);
  EXPECT_THAT(warnings(), IsEmpty()) << "it is said";
  spec.mutable_checkpoint()->set_storage(v1::CHECKPOINT_STORAGE_LOCAL);
  EXPECT_THAT(warnings(), IsEmpty());
  spec.mutable_checkpoint()->clear_storage();
  spec.mutable_checkpoint()->set_layout("none");
  EXPECT_THAT(warnings(), IsEmpty()) << "it goes on from nothing";
  spec.mutable_checkpoint()->set_layout("megatron");
  spec.mutable_resources()->set_nodes(1);
  EXPECT_THAT(warnings(), IsEmpty());
}

TEST(SubmissionWarnings, MegatronsIndexFilesWouldBeOnOneNodeAlone) {
  SmallWorld world;
  world.node("n0", 1, "b0");
  v1::JobSpec spec = SmallWorld::spec("train", 2, 1);
  spec.set_engine("megatron");
  v1::InputSpec& input = *spec.add_inputs();
  input.set_name("data_path");
  input.set_from("obs://bkt/tokens");
  for (const char* word : {"--data-path", "30", "${inputs.data_path}/wiki", "--split", "1"})
    spec.mutable_launch()->add_args(word);
  EXPECT_THAT(warnings_of(world, spec),
              ElementsAre(HasSubstr("each of its 2 nodes has data of its own (inputs.data_path)")));
  spec.mutable_code()->add_patches()->set_name("builtin:node-local-index");
  EXPECT_THAT(warnings_of(world, spec), IsEmpty());
  spec.mutable_code()->clear_patches();
  spec.mutable_inputs(0)->set_from("/shared/tokens");
  EXPECT_THAT(warnings_of(world, spec), IsEmpty()) << "every node sees the same files";
  spec.mutable_inputs(0)->set_from("obs://bkt/tokens");
  spec.mutable_resources()->set_nodes(1);
  EXPECT_THAT(warnings_of(world, spec), IsEmpty());
}

TEST(SubmissionWarnings, WhatTheAgentsHaveCheckedIsKnown) {
  SmallWorld world;
  world.limits.outputs_root = world.limits.cluster_out = "/srv/out";
  const auto outputs = [&](const std::string& name, const std::string& storage,
                           const std::vector<std::string>& sees) {
    world.node(name, 1, "b-" + name, "i-" + name);
    HeartbeatHeard heard{.node = NodeName(name),
                         .connection = world.presence.nodes.at(NodeName(name)).connection};
    v1::OutputsReading& reading = *heard.heartbeat.mutable_host()->mutable_outputs();
    reading.set_root("/srv/out");
    reading.set_storage_id(storage);
    for (const std::string& one : sees) reading.add_instances(one);
    world.see(heard);
  };
  outputs("n0", "aaaa", {"i-n0", "i-n1"});
  outputs("n1", "aaaa", {"i-n0", "i-n1"});
  v1::JobSpec spec = SmallWorld::spec("train", 2, 1);
  EXPECT_THAT(warnings_of(world, spec), IsEmpty()) << "they share it";
  outputs("n2", "bbbb", {"i-n2"});
  EXPECT_THAT(warnings_of(world, spec),
              ElementsAre(testing::AllOf(
                  HasSubstr("job 'train' takes 2 nodes, and not all that could run it see the same "
                            "files in '/srv/out' (storage of 'n0' and 1 other, 'n2'): what a node "
                            "saves there is lost with the node"),
                  HasSubstr("checkpoint.storage: local"))));
  EXPECT_THAT(warnings_of(world, spec, {NodeName("n0"), NodeName("n1")}), IsEmpty());
  EXPECT_THAT(
      warnings_of(world, spec, {NodeName("n1"), NodeName("n2")}),
      ElementsAre(HasSubstr("not all that it gets see the same files in '/srv/out' (storage "
                            "of 'n1', 'n2')")));
  spec.mutable_checkpoint()->set_storage(v1::CHECKPOINT_STORAGE_LOCAL);
  EXPECT_THAT(warnings_of(world, spec), IsEmpty());
  spec.mutable_checkpoint()->clear_storage();
  spec.set_output_dir("/elsewhere");
  EXPECT_THAT(warnings_of(world, spec), ElementsAre(HasSubstr("nothing says that they share")))
      << "nobody checks that";
  spec.clear_output_dir();
  outputs("n2", "", {});
  EXPECT_THAT(warnings_of(world, spec), ElementsAre(HasSubstr("nothing says that they share")))
      << "of n2 it is not known";
}

// Regression: trained with --save ./ckpt, continued with --load ./ckpt: the second training began
// with random weights, because muster had redirected the first.
TEST(SubmissionWarnings, ADirectoryThatAnEarlierJobWouldHaveSavedIn) {
  SmallWorld world;
  world.node("n0", 1);
  v1::JobSpec first = SmallWorld::spec("first", 1, 1);
  first.set_engine("megatron");
  first.mutable_code()->set_at("/data/Megatron-LM/");
  for (const char* word : {"--save", "./ckpt"}) first.mutable_launch()->add_args(word);
  world.submit("j1", first);
  world.started("j1", 1, "n0");
  v1::JobSpec second = first;
  second.mutable_launch()->clear_args();
  for (const char* word : {"--load", "../Megatron-LM/ckpt", "--save=/data/further"})
    second.mutable_launch()->add_args(word);
  const auto warnings = [&] { return warnings_of(world, second); };
  world.accept(
      {.events = {CheckpointCompleted{
           .job = JobId("j1"), .attempt = AttemptNo(1), .step = 20, .path = "/out/j1/iter_20"}}});
  EXPECT_THAT(warnings(), IsEmpty()) << "it runs";
  world.exited("j1", 1, "n0", 0, 0);
  world.swept("j1", 1, "n0");
  world.logs("j1", 1, "n0");
  EXPECT_THAT(
      warnings(),
      ElementsAre(HasSubstr("--load '/data/Megatron-LM/ckpt': job j1 would have saved there")));
  world.pass(world.limits.archive_after + std::chrono::seconds(1));
  world.settle();
  ASSERT_FALSE(world.ledger.jobs.contains(JobId("j1")));
  EXPECT_THAT(
      warnings(),
      ElementsAre(HasSubstr("start: {from: 'job:j1', as: resume} goes on from its step 20")));
  second.mutable_launch()->set_args(2, "--save=/data/Megatron-LM/ckpt");
  EXPECT_THAT(warnings(), IsEmpty()) << "it saves where it loads";
  second.mutable_launch()->set_args(1, "${resume.dir}");
  EXPECT_THAT(warnings(), IsEmpty());
}

}  // namespace
}  // namespace muster::core
