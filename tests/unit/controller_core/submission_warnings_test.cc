// A job over two machines was told only by its first failure, an hour later, that its checkpoints lay on disks of their own.
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
  EXPECT_THAT(warnings(), ElementsAre(HasSubstr("job 'train' takes 2 nodes, and nothing says that they share '/srv/out/1': ")));
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

}  // namespace
}  // namespace muster::core
