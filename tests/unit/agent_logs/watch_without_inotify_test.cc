// A user whose inotify instances are used up: the watch polls, and takes an instance that comes
// free.
#include <sys/inotify.h>

#include <atomic>
#include <cerrno>
#include <fstream>

#include "tests/unit/agent_logs/watch_ground.h"

namespace muster::agent {
namespace {

class WatchWithoutInotify : public WatchTest {
 protected:
  // As for a user whose 128 instances are used by other programs. `allowed_`: one of these has
  // ended.
  void SetUp() override {
    options_.inotify_init = [this](int flags) {
      ++asked_;
      if (allowed_) return ::inotify_init1(flags);
      errno = EMFILE;
      return -1;
    };
    WatchTest::SetUp();
  }
  std::atomic<bool> allowed_ = false;
  std::atomic<int> asked_ = 0;
};

// Regression: 64 agents on one machine used all inotify instances of their user. The next agent did
// not start, and a job that was placed on it failed.
TEST_F(WatchWithoutInotify, logs_are_scanned_and_one_line_says_so) {
  watch_->stop();
  options_.blind_scan = 1h;  // so the scan cannot find the steps
  start();
  watching_.set_success_regex("all done");
  add({0, 1});
  const test::Appender rank(log(0)), other(log(1));
  rank.write(line(1));
  ASSERT_TRUE(eventually([&] {
    const std::scoped_lock lock(mutex_);
    return !first_steps_.empty();
  }));
  rank.write(line(2));
  ASSERT_TRUE(eventually([&] { return watch_->readings(0).readings.at(0).ranks(0).step() == 2; }));
  other.write("all done\n");
  watch_->rank_ended(run_, RankNo(1), false);
  ASSERT_TRUE(eventually([&] {
    const std::scoped_lock lock(mutex_);
    return ends_.size() == 1;
  }));
  EXPECT_TRUE(ends_[1].success_seen);
  watch_->stop();
  ASSERT_EQ(troubles_.size(), 2u) << "one for each life of the watch";
  EXPECT_EQ(troubles_[1],
            "watching files: making an inotify instance: Too many open files; logs are read every "
            "100 ms and save directories scanned every 3600000 ms instead, runs go "
            "on as ever; raise fs.inotify.max_user_instances (sysctl), which bounds how many a "
            "user may have");
}

TEST_F(WatchWithoutInotify, an_instance_that_comes_free_is_taken) {
  watch_->stop();
  options_.blind_scan = 20ms;
  start();
  add({0});
  const test::Appender rank(log(0));
  rank.write(line(1));
  ASSERT_TRUE(eventually([&] { return watch_->readings(0).readings.at(0).ranks(0).step() == 1; }));
  const auto instances = [] {
    int count = 0;
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
      count += std::filesystem::read_symlink(entry.path(), ignored) == "anon_inode:inotify";
    return count;
  };
  EXPECT_EQ(instances(), 0);
  allowed_ = true;
  ASSERT_TRUE(eventually([&] { return instances() == 1; }));
  const int asked = asked_;
  rank.write(line(2));
  ASSERT_TRUE(eventually([&] { return watch_->readings(0).readings.at(0).ranks(0).step() == 2; }));
  EXPECT_EQ(asked_, asked) << "one is enough";
}

TEST_F(WatchWithoutInotify, checkpoints_are_scanned_for) {
  watch_->stop();
  options_.blind_scan = 50ms;
  start();
  watching_.set_layout("megatron");
  watching_.set_save_dir((dir_.path() / "save").string());
  watching_.set_world_size(1);
  std::filesystem::create_directories(dir_.path() / "save");
  add({0});
  ASSERT_TRUE(eventually([&] { return asked_ > 2; })) << "it has looked, and found nothing";
  write_shard(dir_.path() / "save" / "iter_0000010" / "mp_rank_00");
  std::ofstream(dir_.path() / "save" / "latest_checkpointed_iteration.txt") << "10";
  EXPECT_TRUE(eventually([&] {
    const Readings all = watch_->readings(0);
    return all.readings.at(0).shards_size() == 1 && all.readings.at(0).shards(0).sealed();
  }));
}

}  // namespace
}  // namespace muster::agent
