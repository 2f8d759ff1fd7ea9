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

TEST(SubmissionWarnings, AnOutputThatSeveralMachinesMayNotShare) {
  SmallWorld world;
  world.node("n0", 1, "b0");
  v1::JobSpec spec = SmallWorld::spec("train", 2, 1);
  const auto warnings = [&] { return submission_warnings(world.ledger, spec, "/srv/out/1"); };
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
  const auto warnings = [&] { return submission_warnings(world.ledger, second, "/srv/out/1"); };
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
