// Save directories and success files on file systems that do not answer. Regression: a dead NFS
// server of one job blocked the agent's only watch thread, and no run's logs, steps or ends were
// reported any more.
#include <algorithm>
#include <atomic>
#include <set>

#include "agent/launch/disk_view.h"
#include "tests/unit/agent_logs/watch_ground.h"

namespace muster::agent {
namespace {

// Outlives the watch, because hanging threads use it.
class Disk {
 public:
  // A caller that uses something below `path` waits. list() waits after it has read the directory,
  // so its result is the state before the hang.
  void hang(const std::string& path) {
    const std::scoped_lock lock(mutex_);
    hung_.insert(path);
  }
  void answer() {
    const std::scoped_lock lock(mutex_);
    hung_.clear();
    changed_.notify_all();
  }
  void pass(const std::string& path) {
    std::unique_lock lock(mutex_);
    ++asked_[path];
    const auto hangs = [&] {
      return std::ranges::any_of(hung_,
                                 [&](const std::string& dead) { return path.starts_with(dead); });
    };
    if (!hangs()) return;
    ++inside_;
    changed_.wait(lock, [&] { return !hangs(); });
    --inside_;
    changed_.notify_all();
  }
  [[nodiscard]] int inside() {
    const std::scoped_lock lock(mutex_);
    return inside_;
  }
  [[nodiscard]] int asked(const std::string& path) {
    const std::scoped_lock lock(mutex_);
    return asked_[path];
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::set<std::string> hung_;
  std::map<std::string, int> asked_;
  int inside_ = 0;
};

class HangingView final : public DiskView {
 public:
  explicit HangingView(std::shared_ptr<Disk> disk) : disk_(std::move(disk)) {}
  [[nodiscard]] std::vector<Entry> list(const std::string& dir) const override {
    auto found = DiskView::list(dir);
    disk_->pass(dir);
    return found;
  }

 private:
  const std::shared_ptr<Disk> disk_;
};

class WatchHang : public WatchTest {
 protected:
  void SetUp() override {
    options_.view = [disk = disk_] { return std::make_shared<HangingView>(disk); };
    options_.file_there = [disk = disk_](const std::string& path) {
      const bool there = std::filesystem::exists(path);
      disk->pass(path);
      return there;
    };
    // nfs-X/... is file system X.
    options_.device_of = [root = dir_.path().string() +
                                 "/nfs-"](const std::string& path) -> std::uint64_t {
      return path.starts_with(root) ? static_cast<unsigned char>(path[root.size()]) : 7;
    };
    options_.hang_after = options_.last_scan = 1h;
    watching_.set_layout("megatron");
    watching_.set_world_size(1);
    WatchTest::SetUp();
  }
  void TearDown() override {
    disk_->answer();
    WatchTest::TearDown();
    watch_.reset();
    // The threads own what they use, but a test leaves no thread running.
    EXPECT_TRUE(eventually([&] { return disk_->inside() == 0 && disk_.use_count() <= 3; }))
        << disk_.use_count();
  }
  void again(const std::function<void()>& change) {
    watch_->stop();
    change();
    start();
  }

  // A run that saves into file system `device`.
  struct Run {
    RunKey key;
    std::filesystem::path save;
    std::unique_ptr<test::Appender> rank;
  };
  Run run(const std::string& name, char device, const std::string& success_file = {}) {
    Run made{.key = {JobId(name), AttemptNo(1)},
             .save = dir_.path() / (std::string("nfs-") + device) / name};
    const auto run_dir = dir_.path() / (name + ".1");
    std::filesystem::create_directories(made.save);
    std::filesystem::create_directories(run_dir / "logs");
    made.rank = std::make_unique<test::Appender>(run_dir / "logs" / "rank-0.log");
    v1::Watching watching = watching_;
    watching.set_save_dir(made.save.string());
    watching.set_success_file(success_file);
    const auto added = watch_->add(made.key, run_dir, watching, {0}, {}, {}, {});
    EXPECT_TRUE(added.has_value()) << added.error().message;
    return made;
  }
  [[nodiscard]] bool hangs(int threads) {
    return eventually([&] { return disk_->inside() == threads; });
  }
  [[nodiscard]] bool sealed(const Run& run, int step) {
    return std::ranges::any_of(reading(run.key).shards(), [&](const v1::ShardReading& shard) {
      return shard.step() == step && shard.sealed();
    });
  }
  // Checks that first step, progress, checkpoints, the end of a rank and the sweep all still work.
  void expect_alive(const Run& run) {
    run.rank->write(line(1));
    EXPECT_TRUE(comes(run.key, [](const Reports& reports) {
      return reports.first_steps == std::vector<std::int64_t>{1};
    }));
    run.rank->write(line(2));
    EXPECT_TRUE(eventually([&] { return reading(run.key).ranks(0).step() == 2; }));
    write_checkpoint(run.save, 10);
    EXPECT_TRUE(eventually([&] { return sealed(run, 10); }));
    watch_->rank_ended(run.key, RankNo(0), true);
    EXPECT_TRUE(comes(run.key, [](const Reports& reports) { return reports.ends.size() == 1; }));
    watch_->run_swept(run.key);
    EXPECT_TRUE(comes(run.key, [](const Reports& reports) { return reports.last_scans == 1; }));
    EXPECT_TRUE(eventually([&] {
      return std::ranges::any_of(watch_->logs(), [&](const LogStatus& log) {
        return log.name.run == run.key && log.ended;
      });
    }));
  }

  const std::shared_ptr<Disk> disk_ = std::make_shared<Disk>();
};

TEST_F(WatchHang, a_dead_file_system_holds_up_no_other_runs_and_no_logs) {
  const Run bad = run("bad", 'a');
  ASSERT_TRUE(eventually([&] { return disk_->asked(bad.save.string()) > 1; }))
      << "its file system is known by now";
  disk_->hang(dir_.path() / "nfs-a");
  write_checkpoint(bad.save, 5);  // makes the watch scan it
  ASSERT_TRUE(hangs(1));
  // Its first scan uses a thread of its own, because its file system is not known yet.
  const Run neighbour = run("neighbour", 'a');
  ASSERT_TRUE(hangs(2));
  expect_alive(run("good", 'b'));

  for (const Run* stalled : {&bad, &neighbour}) {
    stalled->rank->write(line(1) + "ValueError: no\n");
    EXPECT_TRUE(comes(stalled->key,
                      [](const Reports& reports) { return reports.first_steps.size() == 1; }));
    watch_->rank_ended(stalled->key, RankNo(0), true);
    EXPECT_TRUE(comes(stalled->key, [](const Reports& reports) {
      return reports.ends.contains(0) && reports.ends.at(0).evidence == "ValueError: no";
    }));
    EXPECT_FALSE(sealed(*stalled, 5));
  }
  disk_->answer();
  EXPECT_TRUE(eventually([&] { return sealed(bad, 5); }));
  EXPECT_TRUE(troubles().empty());
}

TEST_F(WatchHang, is_logged_once_a_file_system) {
  again([&] { options_.hang_after = options_.last_scan = 1ms; });
  disk_->hang(dir_.path() / "nfs-a");
  const Run one = run("one", 'a');
  ASSERT_TRUE(eventually([&] { return !troubles().empty(); }));
  EXPECT_EQ(troubles()[0], "looking for checkpoints in '" + one.save.string() +
                               "' for job 'one' attempt 1: no answer for 1 ms; runs of that file "
                               "system wait for it, all else goes on; is its server there?");
  expect_alive(run("good", 'b'));
  const auto of_one = [](const std::string& text) {
    return text.find("job 'one'") != std::string::npos;
  };
  EXPECT_EQ(std::ranges::count_if(troubles(), of_one), 1);
  disk_->answer();  // from here on, a scan that takes 1 ms counts as a new hang
  write_checkpoint(one.save, 5);
  EXPECT_TRUE(eventually([&] { return sealed(one, 5); }));
}

TEST_F(WatchHang, beyond_the_threads_runs_wait_their_turn) {
  again([&] {
    options_.scan_threads = 2;
    options_.hang_after = options_.last_scan = 1ms;
  });
  disk_->hang(dir_.path() / "nfs-a");
  disk_->hang(dir_.path() / "nfs-b");
  const Run first = run("first", 'a'), second = run("second", 'b');
  ASSERT_TRUE(hangs(2));
  const Run third = run("third", 'c'), fourth = run("fourth", 'd');
  const auto of_threads = [](const std::string& text) {
    return text.find("all 2 threads for such scans wait for file systems") != std::string::npos;
  };
  ASSERT_TRUE(eventually([&] { return std::ranges::any_of(troubles(), of_threads); }));
  third.rank->write(line(1));
  EXPECT_TRUE(comes(third.key, [](const Reports& reports) {
    return reports.first_steps.size() == 1;
  })) << "logs need no such thread";
  write_checkpoint(third.save, 5);
  write_checkpoint(fourth.save, 5);
  EXPECT_EQ(disk_->asked(third.save.string()), 0);
  EXPECT_EQ(std::ranges::count_if(troubles(), of_threads), 1) << "said once";
  disk_->answer();
  EXPECT_TRUE(eventually([&] { return sealed(third, 5) && sealed(fourth, 5); }));
}

// What docs/logs.md says of the bound: with every thread in a hang, nothing that needs no scan is
// delayed, one line says why checkpoints are not seen, and an answer ends that.
TEST_F(WatchHang, when_every_thread_hangs_only_scans_wait) {
  again([&] {
    options_.scan_threads = 2;
    options_.hang_after = 1ms;
    options_.last_scan = 50ms;
  });
  disk_->hang(dir_.path() / "nfs-a");
  disk_->hang(dir_.path() / "nfs-b");
  const Run first = run("first", 'a'), second = run("second", 'b');
  ASSERT_TRUE(hangs(2));
  const Run third = run("third", 'c');
  write_checkpoint(third.save, 5);
  third.rank->write(line(1) + line(2));
  EXPECT_TRUE(comes(third.key, [](const Reports& reports) {
    return reports.first_steps == std::vector<std::int64_t>{1};
  }));
  EXPECT_TRUE(eventually([&] { return reading(third.key).ranks(0).step() == 2; }));
  watch_->rank_ended(third.key, RankNo(0), false);
  EXPECT_TRUE(comes(third.key, [](const Reports& reports) { return reports.ends.size() == 1; }));
  watch_->run_swept(third.key);
  EXPECT_TRUE(comes(third.key, [](const Reports& reports) { return reports.last_scans == 1; }));
  EXPECT_TRUE(eventually([&] {
    return std::ranges::any_of(watch_->logs(), [&](const LogStatus& log) {
      return log.name.run == third.key && log.ended;
    });
  }));
  EXPECT_FALSE(sealed(third, 5));
  EXPECT_EQ(disk_->asked(third.save.string()), 0) << "no thread was added for it";
  const auto of_threads = [](const std::string& text) {
    return text.ends_with(
        ": all 2 threads for such scans wait for file systems that do not answer; it and others "
        "wait their turn, logs and progress go on");
  };
  EXPECT_TRUE(eventually([&] { return std::ranges::any_of(troubles(), of_threads); }));
  EXPECT_EQ(std::ranges::count_if(troubles(), of_threads), 1);
  disk_->answer();
  EXPECT_TRUE(eventually([&] { return sealed(third, 5); }));
  EXPECT_TRUE(comes(third.key, [](const Reports& reports) { return reports.shards > 0; }));
  EXPECT_EQ(reports(third.key).last_scans, 1);
}

// Regression: after a restart of the agent, 33 runs on one dead file system had all 32 threads, and
// no checkpoint of any other run was seen any more.
TEST_F(WatchHang, many_new_runs_on_a_dead_file_system_leave_threads_for_others) {
  const Run good = run("good", 'b');
  ASSERT_TRUE(eventually([&] { return disk_->asked(good.save.string()) > 1; }))
      << "its file system is known by now";
  disk_->hang(dir_.path() / "nfs-a");
  std::vector<Run> bad;
  for (int i = 0; i < 33; ++i) bad.push_back(run("bad-" + std::to_string(i), 'a'));
  constexpr int kMost = ScanThreads::kUnknownOfMount;
  ASSERT_TRUE(hangs(kMost));
  expect_alive(good);
  EXPECT_EQ(disk_->inside(), kMost);
  disk_->answer();
  write_checkpoint(bad.back().save, 5);
  EXPECT_TRUE(eventually([&] { return sealed(bad.back(), 5); }));
}

TEST_F(WatchHang, the_last_scan_begins_after_the_sweep) {
  const Run one = run("one", 'a');
  disk_->hang(one.save);
  write_checkpoint(one.save, 5);
  ASSERT_TRUE(hangs(1)) << "and has seen step 5 at most";
  write_checkpoint(one.save, 10);
  watch_->run_swept(one.key);
  EXPECT_EQ(reports(one.key).last_scans, 0);
  disk_->answer();
  ASSERT_TRUE(comes(one.key, [](const Reports& reports) { return reports.last_scans == 1; }));
  EXPECT_TRUE(sealed(one, 10)) << "at that moment";
}

TEST_F(WatchHang, a_last_scan_that_does_not_come_back_is_waited_for_no_longer) {
  again([&] { options_.hang_after = options_.last_scan = 1ms; });
  disk_->hang(dir_.path() / "nfs-a");
  const Run one = run("one", 'a');
  ASSERT_TRUE(hangs(1));
  write_checkpoint(one.save, 5);
  watch_->run_swept(one.key);
  ASSERT_TRUE(comes(one.key, [](const Reports& reports) { return reports.last_scans == 1; }));
  const auto of_sweep = [&](const std::string& text) {
    return text ==
           "looking once more for checkpoints of job 'one' attempt 1 before its sweep is reported: "
           "no answer from '" +
               one.save.string() + "' for 1 ms; what was saved last is reported when it answers";
  };
  EXPECT_TRUE(eventually([&] { return std::ranges::count_if(troubles(), of_sweep) == 1; }));
  EXPECT_FALSE(sealed(one, 5));
  disk_->answer();
  EXPECT_TRUE(eventually([&] { return sealed(one, 5); })) << "late, but told";
  EXPECT_TRUE(comes(one.key, [](const Reports& reports) { return reports.shards > 0; }));
  EXPECT_EQ(reports(one.key).last_scans, 1);
}

TEST_F(WatchHang, stop_waits_for_nobody) {
  disk_->hang(dir_.path());
  const Run one = run("one", 'a', (dir_.path() / "nfs-a" / "done").string());
  ASSERT_TRUE(hangs(2)) << "save directory and success file";
  watch_->stop();
  watch_.reset();
  EXPECT_EQ(disk_->inside(), 2)
      << "they hang on, and touch nothing of the watch when they come back";
}

TEST_F(WatchHang, a_run_that_hangs_can_be_removed_and_come_again) {
  disk_->hang(dir_.path() / "nfs-a");
  {
    const Run one = run("one", 'a', (dir_.path() / "nfs-a" / "done").string());
    ASSERT_TRUE(hangs(2));
    watch_->rank_ended(one.key, RankNo(0), false);
    watch_->run_swept(one.key);
    watch_->remove(one.key);
  }
  expect_alive(run("good", 'b'));
  disk_->answer();
  ASSERT_TRUE(hangs(0));
  EXPECT_EQ(reports({JobId("one"), AttemptNo(1)}).last_scans, 0);
  EXPECT_TRUE(reports({JobId("one"), AttemptNo(1)}).ends.empty());
  std::filesystem::remove_all(dir_.path() / "one.1");
  expect_alive(run("one", 'a'));
}

TEST_F(WatchHang, only_a_rank_that_ended_well_waits_for_the_success_file) {
  const auto file = dir_.path() / "nfs-a" / "done";
  disk_->hang(file);
  const Run well = run("well", 'a', file.string()), failed = run("failed", 'a', file.string());
  ASSERT_TRUE(hangs(2));
  watch_->rank_ended(failed.key, RankNo(0), true);
  EXPECT_TRUE(comes(failed.key, [](const Reports& reports) { return reports.ends.size() == 1; }));
  std::ofstream(file) << "done";  // after the scan that is in progress
  watch_->rank_ended(well.key, RankNo(0), false);
  expect_alive(run("good", 'b'));
  EXPECT_TRUE(reports(well.key).ends.empty());
  disk_->answer();
  ASSERT_TRUE(comes(well.key, [](const Reports& reports) { return reports.ends.size() == 1; }));
  EXPECT_TRUE(reports(well.key).ends.at(0).success_seen);
  EXPECT_FALSE(reports(failed.key).ends.at(0).success_seen);
}

}  // namespace
}  // namespace muster::agent
