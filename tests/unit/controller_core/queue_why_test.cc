// Regression: `ps` showed only "queued", and a user who wanted the reason ran `muster why` job by
// job. Each such answer searches places for the job and for those before it. For a list there are
// few searches, and every queued job still gets a reason.
#include "controller/core/queue_why.h"

#include <gmock/gmock.h>

#include "small_world.h"

namespace muster::core {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

std::map<JobId, std::string> why(const SmallWorld& world, const std::vector<std::string>& ids) {
  return queue_why(world.ledger, world.presence, {ids.begin(), ids.end()}, world.now, world.limits);
}

TEST(QueueWhy, TheNextShowsWhatItNeedsAndTheOthersBehindWhom) {
  SmallWorld world;
  world.submit("wide", SmallWorld::spec("wide", 3, 1));
  world.node("n0", 2);
  world.submit("runs", SmallWorld::spec("runs", 1, 2));
  for (const char* id : {"second", "third", "fourth"}) world.submit(id, SmallWorld::spec(id, 1, 2));
  ASSERT_EQ(world.job("runs").phase, JobPhase::Launching);
  const auto reasons = why(world, {"wide", "second", "third", "fourth"});
  ASSERT_EQ(reasons.size(), 4U);
  EXPECT_THAT(reasons.at(JobId("wide")), HasSubstr("need 3 nodes"));
  EXPECT_THAT(reasons.at(JobId("second")), StartsWith("need 1 node with 2 devices, 0 fit"));
  EXPECT_EQ(reasons.at(JobId("third")), "behind 'second' in the queue, 1 ahead");
  EXPECT_EQ(reasons.at(JobId("fourth")), "behind 'second' in the queue, 2 ahead");
  EXPECT_EQ(why(world, {"fourth"}).at(JobId("fourth")), reasons.at(JobId("fourth")))
      << "those ahead are not of the list";
}

// Regression: `why` of the third job in the queue gave the same requirement and the same nodes
// twice.
TEST(QueueWhy, OneReasonIsGivenOnce) {
  SmallWorld world;
  world.node("n0", 2);
  world.submit("runs", SmallWorld::spec("runs", 1, 2));
  for (const char* id : {"second", "third"}) world.submit(id, SmallWorld::spec(id, 1, 2));
  const auto lines =
      explain(world.ledger, world.presence, world.job("third"), world.now, world.limits);
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_THAT(lines[0], StartsWith("waits: need 1 node with 2 devices, 0 fit: 'n0'"));
  EXPECT_EQ(
      lines[1],
      "1 job is ahead in the queue (first in, first out); 'second' is next and waits for the same");
}

TEST(QueueWhy, ManyThatNoNodeCouldHoldAllGetAReason) {
  SmallWorld world;
  std::vector<std::string> ids;
  for (int count = 0; count < 100; ++count) {
    ids.push_back(fmt::format("wide{:03}", count));
    world.submit(ids.back(), SmallWorld::spec(ids.back(), 2, 1), ids.back());
  }
  world.node("n0", 1);
  const auto reasons = why(world, ids);
  ASSERT_EQ(reasons.size(), 100U);
  EXPECT_THAT(reasons.at(JobId("wide000")), HasSubstr("need 2 nodes"));
  EXPECT_EQ(reasons.at(JobId("wide099")), "waits for other nodes");
}

TEST(QueueWhy, APredecessorIsNamed) {
  SmallWorld world;
  world.node("n0", 1);
  world.submit("first", SmallWorld::spec("first", 1, 1));
  v1::JobSpec after = SmallWorld::spec("then", 1, 1);
  after.mutable_schedule()->add_after("first");
  world.submit("then", after);
  EXPECT_THAT(why(world, {"then"}).at(JobId("then")), StartsWith("waits for job 'first'"));
}

TEST(QueueWhy, AStartedControllerSaysThatItListens) {
  SmallWorld world;
  world.node("n0", 1);
  world.submit("runs", SmallWorld::spec("runs", 1, 1));
  world.submit("waits", SmallWorld::spec("waits", 1, 1));
  world.presence = Presence{};
  world.presence.listening_since = world.now.boot;
  world.limits.hear_first = std::chrono::seconds(5);
  EXPECT_THAT(why(world, {"waits"}).at(JobId("waits")), HasSubstr("just started"));
}

}  // namespace
}  // namespace muster::core
