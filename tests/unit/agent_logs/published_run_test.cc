#include "agent/logs/published_run.h"

#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <thread>

#include "tests/unit/agent_logs/temp_dir.h"

namespace muster::agent {
namespace {

class PublishedRunTest : public testing::Test {
 protected:
  LogName rank(std::uint32_t number) { return {.run = run_.key, .rank = RankNo(number)}; }
  LogName node(const std::string& name) {
    return {.run = run_.key, .rank = RankNo(0), .auxiliary = name};
  }
  void add(const LogName& name, PublishedRun::Kind kind, std::uint64_t bytes) {
    EXPECT_TRUE(run_.add(name, kind, nullptr));
    run_.set_extent(name, {.end = bytes});
  }
  v1::AttemptReading reading(std::uint64_t since) {
    v1::AttemptReading reading;
    run_.fill(reading, since, BootTime(std::chrono::seconds(100)));
    return reading;
  }

  const std::shared_ptr<Marks> marks_ = std::make_shared<Marks>();
  PublishedRun run_{{JobId("job"), AttemptNo(1)}, marks_, nullptr};
};

TEST_F(PublishedRunTest, LogsAreShippedInGroups) {
  for (const std::uint32_t number : {0, 1, 2}) add(rank(number), PublishedRun::Kind::Rank, 10);
  add(node("setup"), PublishedRun::Kind::Auxiliary, 5);
  EXPECT_FALSE(run_.add(node("setup"), PublishedRun::Kind::Auxiliary, nullptr));
  run_.rank_failed(RankNo(2), true);
  run_.shipped(rank(1), {.end = 10}, true);
  run_.set_ended(rank(0));
  PublishedRun::Unshipped logs;
  run_.add_unshipped(logs);
  ASSERT_EQ(logs.failed.size(), 1U);
  EXPECT_EQ(logs.failed[0].name, rank(2));
  ASSERT_EQ(logs.auxiliaries.size(), 1U);
  ASSERT_EQ(logs.others.size(), 1U) << "that of rank 1 is complete";
  EXPECT_TRUE(logs.others[0].ended);
  EXPECT_FALSE(run_.complete());
  for (const LogName& name : {rank(0), rank(2), node("setup")}) run_.shipped(name, {}, true);
  EXPECT_TRUE(run_.complete());
}

TEST_F(PublishedRunTest, AnExtentThatArrivesLateIsIgnored) {
  add(rank(0), PublishedRun::Kind::Rank, 10);
  run_.shipped(rank(0), {.end = 7}, false);
  EXPECT_EQ(run_.bytes_read(), 10U);
  run_.set_extent(rank(0), {.end = 12, .segment = 1});
  run_.set_extent(rank(0), {.end = 20, .segment = 0});
  EXPECT_EQ(run_.bytes_read(), 12U) << "of an older segment";
  run_.shipped(rank(0), {.end = 13, .segment = 1}, false);
  EXPECT_EQ(run_.bytes_read(), 13U);
}

// As the watch thread and the heartbeat do it: each reading acknowledges the one before.
TEST_F(PublishedRunTest, NoNewsIsMissedByAReaderThatAcknowledgesMarks) {
  constexpr std::int64_t kSteps = 900;  // fewer than are thinned
  add(rank(0), PublishedRun::Kind::Rank, 10);
  std::atomic<bool> written = false;
  std::thread writer([&] {
    for (std::int64_t step = 1; step <= kSteps; ++step)
      run_.take_steps({.rank = RankNo(0), .steps = {{.step = step}}, .count = true},
                      {.wall = {}, .boot = BootTime(std::chrono::seconds(40))});
    written = true;
  });
  std::set<std::int64_t> seen;
  std::uint64_t since = 0;
  for (bool last = false; !last;) {
    last = written;
    const std::uint64_t mark = marks_->newest();
    const v1::AttemptReading now = reading(since);
    for (const auto& sample : now.samples()) seen.insert(sample.step());
    since = mark;
  }
  writer.join();
  EXPECT_EQ(seen.size(), static_cast<std::size_t>(kSteps));
}

TEST_F(PublishedRunTest, BytesOfCopiesCountForTheScript) {
  add(rank(0), PublishedRun::Kind::Rank, 10);
  add(node("setup"), PublishedRun::Kind::Auxiliary, 5);
  add(node("rank-3"), PublishedRun::Kind::Copy, 7);
  EXPECT_EQ(run_.bytes_read(), 17U);
  EXPECT_EQ(reading(0).ranks(0).log_bytes(), 17U);
  EXPECT_EQ(reading(0).ranks_size(), 1);
}

TEST_F(PublishedRunTest, NewsHasAMarkThatNoEarlierReadingHad) {
  add(rank(0), PublishedRun::Kind::Rank, 10);
  const std::uint64_t before = marks_->newest();
  const auto first =
      run_.take_steps({.rank = RankNo(0), .steps = {{.step = 4}, {.step = 5}}, .count = true},
                      {.wall = {}, .boot = BootTime(std::chrono::seconds(40))});
  EXPECT_EQ(first, 4);
  EXPECT_EQ(reading(before).samples_size(), 2);
  EXPECT_EQ(reading(marks_->newest()).samples_size(), 0);
  EXPECT_EQ(reading(0).step_age().seconds(), 60);
  run_.take_steps({.rank = RankNo(0), .steps = {{.step = 9}}, .count = false},
                  {.wall = {}, .boot = BootTime(std::chrono::seconds(50))});
  EXPECT_EQ(reading(0).ranks(0).step(), 5) << "another log reports the run's steps";
}

}  // namespace
}  // namespace muster::agent
