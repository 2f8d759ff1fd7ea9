// What a power loss leaves, and who is told so.

#include "tests/unit/controller_logs/store_fixture.h"

namespace muster::logs {
namespace {

using DurableTest = LogStoreTest;

TEST_F(DurableTest, synced_is_told_after_a_sync) {
  EXPECT_EQ(append(0, "abc").synced, 0u);
  EXPECT_EQ(synced(), std::vector<LogKey>{key_});
  EXPECT_EQ(store_->state(key_)->synced, 3u);
  EXPECT_EQ(append(3, "def").synced, 3u);
  EXPECT_EQ(synced(), std::vector<LogKey>{key_});
  EXPECT_EQ(synced(), std::vector<LogKey>{});
  reopen();
  EXPECT_EQ(store_->state(key_)->synced, 0u);
  EXPECT_EQ(synced(), std::vector<LogKey>{key_}) << "opened again, nobody knows";
}

// A log passed for wholly here as soon as its end was: the node deleted the only other copy, and a power cut of the controller's host in the next two seconds
// took bytes that nobody had any more. The end mark itself may not be on the disk before the bytes: whoever reads it there, trusts it.
TEST_F(DurableTest, a_log_is_durable_when_its_bytes_and_then_its_end_are_synced) {
  append(0, "abc");
  const LogState ended = store_->finish(key_, 3).value();
  EXPECT_TRUE(ended.complete) << "who follows the log need not wait for the disk";
  EXPECT_FALSE(ended.durable);
  reopen();
  EXPECT_FALSE(store_->state(key_)->complete) << "its sender says it again";
  ASSERT_TRUE(store_->finish(key_, 3).has_value());
  const Synced done = store_->sync();
  ASSERT_EQ(done.logs.size(), 1u);
  EXPECT_TRUE(done.logs[0].second.durable);
  EXPECT_EQ(done.logs[0].second.synced, 3u);
  EXPECT_TRUE(store_->finish(key_, 3)->durable) << "said once more";
  reopen();
  const LogState after = store_->state(key_).value();
  EXPECT_TRUE(after.durable && after.complete);
  EXPECT_EQ(after.synced, 3u);
  EXPECT_EQ(synced(), std::vector<LogKey>{});
}

TEST_F(DurableTest, an_end_behind_synced_bytes_is_synced_as_well) {
  append(0, "abc");
  EXPECT_EQ(synced(), std::vector<LogKey>{key_});
  EXPECT_FALSE(store_->finish(key_, 3)->durable);
  EXPECT_EQ(synced(), std::vector<LogKey>{key_});
  EXPECT_TRUE(store_->state(key_)->durable);
  const LogKey empty{JobId("job"), AttemptNo(1), RankNo(1)};
  EXPECT_FALSE(store_->finish(empty, 0)->durable);
  EXPECT_EQ(synced(), std::vector<LogKey>{empty});
  reopen();
  EXPECT_TRUE(store_->state(empty)->durable);
}

// The first log that could not be synced took all others of that round with it: unless more bytes came, nobody ever synced them.
TEST_F(DurableTest, one_log_that_cannot_be_synced_holds_up_no_other_and_is_tried_again) {
  const LogKey bad{JobId("a"), AttemptNo(1), RankNo(0)}, good{JobId("b"), AttemptNo(1), RankNo(0)};
  ASSERT_TRUE(store_->append(bad, 0, "abc", {}).has_value());
  ASSERT_TRUE(store_->append(good, 0, "abc", {}).has_value());
  // So many others that its descriptor was closed; and now it cannot be opened.
  for (std::uint32_t rank = 0; rank < 300; ++rank) ASSERT_TRUE(store_->state({JobId("c"), AttemptNo(1), RankNo(rank)}).has_value());
  const std::filesystem::path log = root() / "a" / "1" / "rank-0.log";
  std::filesystem::rename(log, dir_.path() / "aside");
  std::filesystem::create_directory(log);
  const Synced first = store_->sync();
  ASSERT_TRUE(first.error.has_value());
  EXPECT_NE(first.error->message.find(log.string()), std::string::npos) << first.error->message;
  ASSERT_EQ(first.logs.size(), 1u);
  EXPECT_EQ(first.logs[0].first, good);
  std::filesystem::remove(log);
  std::filesystem::rename(dir_.path() / "aside", log);
  EXPECT_EQ(synced(), std::vector<LogKey>{bad});
  EXPECT_EQ(store_->state(bad)->synced, 3u);
}

}  // namespace
}  // namespace muster::logs
