#include "controller/shell/heartbeat_merge.h"

#include <gtest/gtest.h>

#include <string>

namespace muster::controller {
namespace {

v1::AttemptReading& reading(v1::Heartbeat& heartbeat, const std::string& job, std::int64_t step) {
  v1::AttemptReading& made = *heartbeat.add_readings();
  made.set_job_id(job);
  made.set_attempt(1);
  made.add_ranks()->set_step(step);
  return made;
}
void shard(v1::AttemptReading& reading, std::int64_t step, const std::string& name,
           std::uint64_t bytes) {
  v1::ShardReading& made = *reading.add_shards();
  made.set_step(step);
  made.set_shard(name);
  made.set_bytes(bytes);
}
std::string steps(const v1::AttemptReading& reading) {
  std::string text;
  for (const v1::StepSample& sample : reading.samples())
    text += std::to_string(sample.step()) + " ";
  return text;
}
std::string shards(const v1::AttemptReading& reading) {
  std::string text;
  for (const v1::ShardReading& one : reading.shards())
    text += std::to_string(one.step()) + one.shard() + std::to_string(one.bytes()) + " ";
  return text;
}

TEST(HeartbeatMerge, ReadingsAreTheNewestAndSamplesFollowEachOther) {
  v1::Heartbeat earlier, newest;
  v1::AttemptReading& old = reading(earlier, "a", 2);
  old.add_samples()->set_step(1);
  old.add_samples()->set_step(2);
  reading(earlier, "gone", 7);
  reading(newest, "a", 3).add_samples()->set_step(3);
  newest.set_number(9);
  take_over(newest, earlier);
  EXPECT_EQ(newest.number(), 9u);
  ASSERT_EQ(newest.readings_size(), 2);
  EXPECT_EQ(newest.readings(0).ranks_size(), 1);
  EXPECT_EQ(newest.readings(0).ranks(0).step(), 3);
  EXPECT_EQ(steps(newest.readings(0)), "1 2 3 ");
  EXPECT_EQ(newest.readings(1).job_id(), "gone");
}

// Agents report a shard of an older step only once: a dropped heartbeat must not drop the shard,
// too.
TEST(HeartbeatMerge, ShardsThatNobodyRepeatsStay) {
  v1::Heartbeat earlier, newest;
  v1::AttemptReading& old = reading(earlier, "a", 1);
  shard(old, 10, "x", 1);
  shard(old, 20, "x", 1);
  v1::AttemptReading& now = reading(newest, "a", 2);
  shard(now, 20, "x", 2);
  shard(now, 20, "y", 2);
  take_over(newest, earlier);
  EXPECT_EQ(shards(newest.readings(0)), "20x2 20y2 10x1 ");
}

TEST(HeartbeatMerge, WhatPilesUpIsBounded) {
  v1::Heartbeat waiting;
  for (std::int64_t at = 0; at < 3 * kSamplesKept; ++at) {
    v1::Heartbeat next;
    v1::AttemptReading& one = reading(next, "a", at);
    one.add_samples()->set_step(at);
    shard(one, at, "x", 1);
    take_over(next, std::move(waiting));
    waiting = std::move(next);
  }
  ASSERT_EQ(waiting.readings_size(), 1);
  EXPECT_EQ(waiting.readings(0).samples_size(), kSamplesKept);
  EXPECT_EQ(waiting.readings(0).samples(kSamplesKept - 1).step(), 3 * kSamplesKept - 1);
  EXPECT_EQ(waiting.readings(0).shards_size(), static_cast<int>(kStepsKept));
}

// Both heartbeats were acknowledged, and the agent reports the probe only once.
TEST(HeartbeatMerge, AProbeOfTheDevicesIsKeptUntilThereIsANewerOne) {
  const auto with_health = [](v1::DeviceHealth health) {
    v1::Heartbeat heartbeat;
    heartbeat.add_devices()->set_health(health);
    return heartbeat;
  };
  v1::Heartbeat newest;
  take_over(newest, with_health(v1::DEVICE_HEALTH_BAD));
  ASSERT_EQ(newest.devices_size(), 1);
  EXPECT_EQ(newest.devices(0).health(), v1::DEVICE_HEALTH_BAD);
  newest = with_health(v1::DEVICE_HEALTH_OK);
  take_over(newest, with_health(v1::DEVICE_HEALTH_BAD));
  ASSERT_EQ(newest.devices_size(), 1);
  EXPECT_EQ(newest.devices(0).health(), v1::DEVICE_HEALTH_OK);
}

// An agent sends it only when it has changed.
TEST(HeartbeatMerge, ACheckOfTheOutputsIsKeptUntilThereIsANewerOne) {
  const auto with_storage = [](const std::string& id) {
    v1::Heartbeat heartbeat;
    heartbeat.mutable_host()->mutable_outputs()->set_storage_id(id);
    return heartbeat;
  };
  v1::Heartbeat newest;
  newest.mutable_host()->set_state_dir("/newest");
  take_over(newest, with_storage("aaaa"));
  EXPECT_EQ(newest.host().outputs().storage_id(), "aaaa");
  EXPECT_EQ(newest.host().state_dir(), "/newest");
  newest = with_storage("bbbb");
  take_over(newest, with_storage("aaaa"));
  EXPECT_EQ(newest.host().outputs().storage_id(), "bbbb");
}

// While the disk hangs, heartbeats are merged. Regression: the merged heartbeat of a node that
// names other jobs each time grew without end.
TEST(HeartbeatMerge, WhatIsTakenOverHasABound) {
  v1::Heartbeat waiting;
  for (int heartbeat = 0; heartbeat < 100; ++heartbeat) {
    v1::Heartbeat newest;
    reading(newest, std::to_string(heartbeat) + std::string(1 << 20, 'x'), heartbeat);
    take_over(newest, std::move(waiting));
    waiting = std::move(newest);
    ASSERT_LE(waiting.ByteSizeLong(), kBytesMost);
  }
  EXPECT_EQ(waiting.readings(0).ranks(0).step(), 99);
}

}  // namespace
}  // namespace muster::controller
