// Two regressions with launch.per: node. A tutorial's script uses --no-save-optim: its checkpoints
// counted as resume points, and the training silently continued without its optimizer. And "train
// with --save ./ckpt, then continue with --load ./ckpt" silently began with random weights, because
// muster had redirected the first directory.
#include "controller/core/chains/saved_before.h"

#include <gmock/gmock.h>

#include "controller/core/recovery/checkpoints.h"
#include "tests/unit/controller_core/small_world.h"

namespace muster::core {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

struct Scripts : SmallWorld {
  Scripts() {
    put(RegisterNode{.node = NodeName("n0"),
                     .instance = InstanceId("i1"),
                     .boot_id = BootId("b1"),
                     .inventory = inventory(2, "n0"),
                     .version = "test"});
    see(Connected{.node = NodeName("n0"),
                  .connection = ConnectionId(++connections),
                  .instance = InstanceId("i1"),
                  .present = {},
                  .boot_id = BootId("b1")});
  }
  static v1::JobSpec script(const std::string& name) {
    v1::JobSpec what = spec(name, 1, 2);
    what.mutable_launch()->set_per(v1::LAUNCH_PER_NODE);
    what.mutable_launch()->set_intercept(true);
    return what;
  }
  // Time passes, and the node still sends heartbeats.
  void later(Duration time) {
    pass(time);
    see(HeartbeatHeard{
        .node = NodeName("n0"), .connection = ConnectionId(connections), .heartbeat = {}});
  }
  void launched(const std::string& id, const std::string& save, bool weights_alone = false) {
    v1::Fact what = fact(id, 1);
    what.mutable_script_launched()->set_ranks(2);
    what.mutable_script_launched()->set_save(save);
    what.mutable_script_launched()->set_weights_alone(weights_alone);
    report("n0", std::move(what));
  }
  void saved(const std::string& id, std::int64_t step) {
    accept({.events = {CheckpointCompleted{
                .job = JobId(id),
                .attempt = AttemptNo(1),
                .step = step,
                .path = fmt::format("/out/{}/checkpoints/attempt-1/iter_{:07}", id, step)}}});
  }
  void ends(const std::string& id) {
    exited(id, 1, "n0", 0, 0);
    swept(id, 1, "n0");
    logs(id, 1, "n0");
  }
  [[nodiscard]] const std::vector<SavedBefore>& given(const std::string& id) const {
    return job(id).attempts.front().saved;
  }
  static SavedBefore checkpoint(const std::string& named, const std::string& id,
                                std::int64_t step) {
    return {.named_dir = named,
            .job = JobId(id),
            .path = fmt::format("/out/{}/checkpoints/attempt-1/iter_{:07}", id, step),
            .step = step};
  }
};

TEST(WeightsAlone, NoAttemptGoesOnFromThem) {
  for (const bool reported_first : {true, false}) {
    Scripts world;
    world.submit("j1", Scripts::script("finetune"));
    world.started("j1", 1, "n0");
    if (reported_first) world.launched("j1", "/data/ckpt", true);
    world.saved("j1", 20);
    if (!reported_first) {
      EXPECT_EQ(newest_checkpoint(world.job("j1"))->step, 20) << "nobody has said it yet";
      world.launched("j1", "/data/ckpt", true);
    }
    EXPECT_FALSE(newest_checkpoint(world.job("j1")));
    EXPECT_TRUE(world.job("j1").checkpoints.front().quarantined);
    world.launched("j1", "/data/ckpt", false);
    EXPECT_FALSE(newest_checkpoint(world.job("j1")))
        << "the first word counts, whichever node says another";
  }
}

TEST(WeightsAlone, OthersAreResumePointsAsEver) {
  Scripts world;
  world.submit("j1", Scripts::script("pretrain"));
  world.started("j1", 1, "n0");
  world.launched("j1", "/data/ckpt");
  world.saved("j1", 20);
  EXPECT_EQ(newest_checkpoint(world.job("j1"))->step, 20);
}

TEST(SavedBefore, ALaterJobGetsWhatAnEarlierOneHasSaved) {
  Scripts world;
  world.submit("j1", Scripts::script("first"));
  world.started("j1", 1, "n0");
  world.launched("j1", "/data/ckpt");
  world.saved("j1", 10);
  world.saved("j1", 20);
  world.accept({.events = {CheckpointQuarantined{
                    .job = JobId("j1"), .attempt = AttemptNo(1), .step = 10, .reason = "torn"}}});
  world.submit("beside", Scripts::script("beside"));  // waits for the devices
  world.later(std::chrono::seconds(1));
  world.ends("j1");
  ASSERT_EQ(world.job("beside").attempts.size(), 1u);
  EXPECT_THAT(world.given("beside"), IsEmpty())
      << "it was submitted while the other ran: both have a ./ckpt of their own";
  world.ends("beside");
  world.submit("later", Scripts::script("later"));
  EXPECT_THAT(world.given("later"), ElementsAre(Scripts::checkpoint("/data/ckpt", "j1", 20)))
      << "what was quarantined is not among them";
  world.ends("later");
  // It stays known when the job is archived, and goes with the job's tombstone.
  world.later(world.limits.archive_after + std::chrono::seconds(1));
  ASSERT_FALSE(world.ledger.jobs.contains(JobId("j1")));
  world.submit("much-later", Scripts::script("much-later"));
  EXPECT_THAT(world.given("much-later"), ElementsAre(Scripts::checkpoint("/data/ckpt", "j1", 20)));
  world.ends("much-later");
  world.later(world.limits.tombstone_keep + std::chrono::hours(1));
  world.later(std::chrono::minutes(1));
  EXPECT_THAT(world.ledger.indexes.savers, IsEmpty());
  v1::JobSpec own = SmallWorld::spec("ranks", 1, 2);
  EXPECT_THAT(saved_before(world.ledger, JobRecord{.id = JobId("x"), .spec = own}), IsEmpty());
}

TEST(SavedBefore, TheNewestJobThatHasAnyIsTheOne) {
  Scripts world;
  for (const char* id : {"j1", "j2", "j3"}) {
    world.submit(id, Scripts::script(id));
    world.started(id, 1, "n0");
    world.launched(id, "/data/ckpt");
    if (id != std::string("j3")) world.saved(id, 20);
    world.ends(id);
    world.pass(std::chrono::seconds(1));
  }
  world.submit("j4", Scripts::script("j4"));
  EXPECT_THAT(world.given("j4"), ElementsAre(Scripts::checkpoint("/data/ckpt", "j2", 20)))
      << "j3 ended before it had saved";
}

TEST(SavedBefore, AJobWithoutACheckpointIsGivenAsThat) {
  Scripts world;
  world.submit("j1", Scripts::script("j1"));
  world.started("j1", 1, "n0");
  world.launched("j1", "/data/ckpt");
  world.ends("j1");
  world.submit("j2", Scripts::script("j2"));
  EXPECT_THAT(world.given("j2"),
              ElementsAre(SavedBefore{
                  .named_dir = "/data/ckpt", .job = JobId("j1"), .path = {}, .step = 0}));
}

// The directory may be any word of the script, and becomes an environment variable.
TEST(SavedBefore, WhatCannotBeAPathIsNotTaken) {
  Scripts world;
  world.submit("j1", Scripts::script("j1"));
  world.started("j1", 1, "n0");
  for (const std::string& dir :
       {std::string(), std::string("ckpt"), std::string("/a\nb"), "/" + std::string(5000, 'x')})
    world.launched("j1", dir);
  EXPECT_FALSE(world.job("j1").attempts.front().script_launch);
}

}  // namespace
}  // namespace muster::core
