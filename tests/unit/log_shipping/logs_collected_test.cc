#include "controller/links/logs_collected.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>

#include "controller/journal/memory_journal.h"
#include "controller/shell/view.h"
#include "tests/unit/agent_logs/temp_dir.h"

namespace muster::controller {
namespace {

class LogsCollectedTest : public testing::Test {
 protected:
  LogsCollectedTest() {
    store_ = std::move(*logs::LogStore::open(dir_.path(), 1 << 30));
    Shell::Options options;
    options.new_cluster = ClusterId("cluster");
    options.describe = [](const journal::Row&, const core::Ledger&) { return v1::Event(); };
    options.on_fatal = [](const Error& error) { ADD_FAILURE() << error.message; };
    shell_ = std::make_unique<Shell>(journal_, system_clock(), std::move(options));
    EXPECT_TRUE(shell_->start());
    collected_ = std::make_unique<LogsCollected>(*shell_, *store_, work_);
  }
  ~LogsCollectedTest() override {
    shell_->stop();
    work_.stop();
  }
  void store_log(const std::string& job) {
    ASSERT_TRUE(store_->append({JobId(job), AttemptNo(1), RankNo(0)}, 0, "bytes", {}).has_value());
  }
  // As if nothing had been written to it for so long.
  void age(const std::string& job, Duration by) const {
    const auto at = std::chrono::floor<std::chrono::seconds>(system_clock().now().wall - by)
                        .time_since_epoch()
                        .count();
    const timespec times[2] = {{.tv_sec = at, .tv_nsec = 0}, {.tv_sec = at, .tv_nsec = 0}};
    for (const char* name : {"/1/rank-0.log", "/1/rank-0.index", "/1", ""}) {
      ASSERT_EQ(::utimensat(AT_FDCWD, ((dir_.path() / job).string() + name).c_str(), times, 0), 0)
          << name;
    }
  }
  std::vector<JobId> stored() {
    work_.stop();  // runs what was posted
    std::vector<JobId> jobs = store_->jobs();
    std::ranges::sort(jobs);
    return jobs;
  }

  test::TempDir dir_;
  std::shared_ptr<journal::MemoryDisk> disk_ = std::make_shared<journal::MemoryDisk>();
  journal::MemoryJournal journal_{disk_};
  async::Loop work_{"work"};
  std::unique_ptr<logs::LogStore> store_;
  std::unique_ptr<Shell> shell_;
  std::unique_ptr<LogsCollected> collected_;
};

// Regression: the last trace of a job left the ledger after a week; its log directories stayed for
// ever.
TEST_F(LogsCollectedTest, a_forgotten_jobs_logs_are_removed) {
  store_log("old");
  store_log("new");
  core::Ledger ledger;
  ledger.tombstones[JobId("old")] = {.id = JobId("old")};
  ledger.tombstones[JobId("new")] = {.id = JobId("new")};
  collected_->start(ledger);
  EXPECT_TRUE(collected_->known(JobId("old")));
  EXPECT_FALSE(
      collected_->is_of({JobId("old"), AttemptNo(1), RankNo(0)}, NodeName("n1"), InstanceId("i1")))
      << "it is in the archive";
  const journal::Row row{.index = JournalIndex(1),
                         .event = {.at = {}, .body = core::TombstoneDropped{.job = JobId("old")}}};
  collected_->on_release({&row, 1});
  EXPECT_FALSE(collected_->known(JobId("old")));
  EXPECT_EQ(stored(), std::vector<JobId>{JobId("new")});
}

// Killed between the tombstone's record and the removal: otherwise nothing would remove it later.
// But a job that is unknown because its submission was lost with the end of a damaged journal may
// be what a user searches for.
TEST_F(LogsCollectedTest, what_a_kill_left_of_forgotten_jobs_goes_at_the_next_start_and_only_that) {
  for (const char* job : {"forgotten", "lost", "known"}) store_log(job);
  age("forgotten", std::chrono::hours(24 * 7 + 1));
  age("lost", std::chrono::hours(24 * 7 - 1));
  age("known", std::chrono::hours(24 * 30));
  core::Ledger ledger;
  ledger.tombstones[JobId("known")] = {.id = JobId("known")};
  collected_->start(ledger);
  EXPECT_EQ(stored(), (std::vector<JobId>{JobId("known"), JobId("lost")}));
}

}  // namespace
}  // namespace muster::controller
