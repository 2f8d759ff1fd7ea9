#include "agent/logs/checkpoint_scans.h"

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <mutex>

#include "agent/launch/disk_view.h"
#include "tests/unit/agent_logs/subject_ground.h"
#include "tests/unit/agent_logs/watch_ground.h"

namespace muster::agent {
namespace {

// A file system whose directories are read only while it answers. Hanging threads use it, so it
// outlives the test.
class Server {
 public:
  void answer(bool answers) {
    const std::scoped_lock lock(mutex_);
    answers_ = answers;
    asked_ = 0;
    changed_.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex_);
    ++asked_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return answers_; });
  }
  void wait_for_asked() {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, 20s, [&] { return asked_ > 0; }));
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool answers_ = true;
  int asked_ = 0;  // since the last answer()
};

class ServedView final : public DiskView {
 public:
  explicit ServedView(std::shared_ptr<Server> server) : server_(std::move(server)) {}
  [[nodiscard]] std::vector<Entry> list(const std::string& dir) const override {
    auto found = DiskView::list(dir);
    server_->wait();
    return found;
  }

 private:
  const std::shared_ptr<Server> server_;
};

class CheckpointScansTest : public SubjectTest {
 protected:
  CheckpointScansTest() {
    options_.view = [server = server_] { return std::make_shared<ServedView>(server); };
    std::filesystem::create_directories(save_);
    watching_.set_layout("megatron");
    watching_.set_world_size(1);
    watching_.set_save_dir(save_.string());
  }
  ~CheckpointScansTest() override { server_->answer(true); }
  void watch() {
    auto checkpoints = CheckpointWatch::make(watching_);
    ASSERT_TRUE(checkpoints && *checkpoints);
    const SaveDir dir = (*checkpoints)->save_dir();
    run_ = std::make_shared<PublishedRun>(run_->key, marks_, std::move(*checkpoints));
    scans_ = std::make_shared<CheckpointScans>(tools(), run_, dir, JobReach());
  }
  void scan(BootTime at) {
    scans_->pass(at);
    ASSERT_TRUE(take_result());
  }
  bool sealed(int step) {
    const v1::AttemptReading now = reading();
    return std::ranges::any_of(now.shards(), [&](const v1::ShardReading& shard) {
      return shard.step() == step && shard.sealed();
    });
  }

  const std::shared_ptr<Server> server_ = std::make_shared<Server>();
  const std::filesystem::path save_ = dir_.path() / "save";
  std::shared_ptr<CheckpointScans> scans_;
};

TEST_F(CheckpointScansTest, AChangeIsScannedOnceTheScanBeforeIsSomeTimeAgo) {
  watch();
  scan(now());
  write_checkpoint(save_, 10);
  scans_->changed("latest_checkpointed_iteration.txt");
  const BootTime due = scans_->next_due();
  scans_->pass(due - 1ms);
  EXPECT_FALSE(sealed(10));
  ASSERT_NO_FATAL_FAILURE(scan(due));
  EXPECT_TRUE(sealed(10));
  EXPECT_EQ(shards_, 1);
}

TEST_F(CheckpointScansTest, WithoutReportsItIsScannedFromTimeToTime) {
  options_.inotify_init = [](int) { return errno = EMFILE, -1; };
  watch();
  scan(now());
  write_checkpoint(save_, 10);
  const BootTime due = scans_->next_due();
  EXPECT_LE(due, now() + options_.blind_scan);
  ASSERT_NO_FATAL_FAILURE(scan(due));
  EXPECT_TRUE(sealed(10));
}

TEST_F(CheckpointScansTest, AScanIsNeverSoonerThanTheCostOfTheScanBeforeAllows) {
  options_.inotify_init = [](int) { return errno = EMFILE, -1; };
  options_.blind_scan = 1ms;
  watch();
  const BootTime before = now();
  scan(before);
  EXPECT_GE(scans_->next_due(), before + 50ms);
}

TEST_F(CheckpointScansTest, AHangOfARunThatWasRemovedIsOverWhenItsFileSystemAnswers) {
  options_.device_of = [](const std::string&) { return 7; };
  const auto hang = [&] {
    watch();
    scan(now());  // finds out the file system
    server_->answer(false);
    scans_->changed("iter_0000010");
    scans_->pass(scans_->next_due());
    server_->wait_for_asked();
    scans_->pass(scans_->next_due());
  };
  hang();
  ASSERT_EQ(troubles_.size(), 1U);
  scans_.reset();
  server_->answer(true);
  ASSERT_TRUE(take_result());
  hang();
  EXPECT_EQ(troubles_.size(), 2U);
  server_->answer(true);
  EXPECT_TRUE(take_result());
}

TEST_F(CheckpointScansTest, TheLastScanBeginsAfterTheSweepAndIsReportedOnce) {
  watch();
  server_->answer(false);
  scans_->pass(now());
  server_->wait_for_asked();
  write_checkpoint(save_, 10);  // the scan under way has not seen it
  scans_->swept(now());
  server_->answer(true);
  ASSERT_TRUE(take_result());
  EXPECT_EQ(last_scans_, 0);
  ASSERT_NO_FATAL_FAILURE(scan(now()));
  EXPECT_EQ(last_scans_, 1);
  EXPECT_TRUE(sealed(10));
}

TEST_F(CheckpointScansTest, TheSweepIsReportedWithoutAScanThatHangs) {
  watch();
  server_->answer(false);
  scans_->pass(now());
  server_->wait_for_asked();
  write_checkpoint(save_, 10);
  const BootTime swept = now();
  scans_->swept(swept);
  scans_->pass(swept + options_.last_scan);
  EXPECT_EQ(last_scans_, 1);
  EXPECT_EQ(troubles_.back(),
            "looking once more for checkpoints of job 'job' attempt 1 before its sweep is "
            "reported: no answer from '" +
                save_.string() + "' for 15000 ms; what was saved last is reported when it answers");
  server_->answer(true);
  ASSERT_TRUE(take_result());
  ASSERT_NO_FATAL_FAILURE(scan(now() + 1h));
  EXPECT_TRUE(sealed(10));
  EXPECT_EQ(last_scans_, 1);
}

}  // namespace
}  // namespace muster::agent
