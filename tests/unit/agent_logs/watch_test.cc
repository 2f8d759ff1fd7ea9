#include "agent/logs/watch.h"

#include <atomic>
#include <fstream>

#include "agent/logs/log_file.h"
#include "tests/unit/agent_logs/watch_ground.h"

namespace muster::agent {
namespace {

using namespace std::chrono_literals;

TEST_F(WatchTest, steps_are_seen_as_they_are_written_and_the_first_is_reported_once) {
  add({0, 1});
  const test::Appender rank(log(0));
  rank.write(line(1) + line(2).substr(0, 20));
  ASSERT_TRUE(eventually([&] {
    const std::scoped_lock lock(mutex_);
    return !first_steps_.empty();
  }));
  rank.write(line(2).substr(20));
  ASSERT_TRUE(eventually([&] { return watch_->readings(0).readings.at(0).ranks(0).step() == 2; }));
  EXPECT_EQ(first_steps_, std::vector<std::int64_t>{1});
  const Readings all = watch_->readings(0);
  EXPECT_EQ(all.readings.at(0).samples_size(), 2);
  EXPECT_EQ(all.readings.at(0).ranks(0).total(), 100);
  EXPECT_FALSE(all.readings.at(0).ranks(1).has_step());
  EXPECT_EQ(watch_->readings(all.mark).readings.at(0).samples_size(), 0);
}

TEST_F(WatchTest, a_rank_that_ended_is_read_to_its_end_before_the_answer) {
  watching_.set_success_regex("all (done|well)");
  add({0, 1});
  const test::Appender good(log(0)), bad(log(1));
  good.write(line(1) + "all done");  // no line end: it will never arrive
  bad.write(std::string(3 << 20, 'x') +
            "\nTraceback (most recent call last):\n  File \"t.py\"\nValueError: bad shape\n");
  watch_->rank_ended(run_, RankNo(0), false);
  watch_->rank_ended(run_, RankNo(1), true);
  ASSERT_TRUE(eventually([&] {
    const std::scoped_lock lock(mutex_);
    return ends_.size() == 2;
  }));
  EXPECT_TRUE(ends_[0].success_seen);
  EXPECT_EQ(ends_[0].evidence, "");
  EXPECT_FALSE(ends_[1].success_seen);
  EXPECT_EQ(ends_[1].evidence, "ValueError: bad shape");
  EXPECT_EQ(watch_->logs().front().name.rank.value, 1u) << "failed ranks first";
}

TEST_F(WatchTest, a_log_ends_only_when_the_run_is_swept) {
  add({0, 1});
  const test::Appender rank(log(0));
  rank.write("hello\n");
  watch_->rank_ended(run_, RankNo(0), false);
  ASSERT_TRUE(eventually([&] {
    const std::scoped_lock lock(mutex_);
    return ends_.size() == 1;
  }));
  EXPECT_FALSE(watch_->logs().at(0).ended);
  rank.write("a child that outlived its rank\n");
  watch_->run_swept(run_);
  ASSERT_TRUE(eventually([&] { return watch_->logs().at(0).ended && watch_->logs().at(1).ended; }))
      << "rank 1 never had a log";
  watch_->controller_has({run_, RankNo(0)}, 0, 0, false);
  const auto piece = watch_->read({run_, RankNo(0)}, 0, 1000);
  ASSERT_TRUE(piece.has_value());
  EXPECT_EQ(piece->data, "hello\na child that outlived its rank\n");
  EXPECT_TRUE(piece->final);
  EXPECT_FALSE(watch_->logs_complete(run_));
  watch_->controller_has({run_, RankNo(0)}, 37, 37, true);
  watch_->controller_has({run_, RankNo(1)}, 0, 0, true);
  EXPECT_TRUE(watch_->logs_complete(run_));
  EXPECT_TRUE(watch_->logs().empty());
}

TEST_F(WatchTest, every_rank_has_a_success_file_of_its_own) {
  const auto file = [this](int rank) {
    return (run_dir_ / ("strategy-" + std::to_string(rank))).string();
  };
  const std::map<std::uint32_t, std::string> files{{0, file(0)}, {1, file(1)}};
  ASSERT_TRUE(watch_->add(run_, run_dir_, watching_, {0, 1, 2}, {}, files, {}).has_value());
  std::ofstream(file(1)) << "x";
  for (const std::uint32_t rank : {0, 1, 2}) watch_->rank_ended(run_, RankNo(rank), false);
  ASSERT_TRUE(eventually([&] {
    const std::scoped_lock lock(mutex_);
    return ends_.size() == 3;
  }));
  EXPECT_FALSE(ends_[0].success_seen);
  EXPECT_TRUE(ends_[1].success_seen);
  EXPECT_FALSE(ends_[2].success_seen) << "nothing was to be looked for";
}

TEST_F(WatchTest, progress_is_known_again_after_a_restart) {
  add({0});
  const test::Appender rank(log(0));
  rank.write(line(7));
  watch_->rank_ended(run_, RankNo(0), false);  // the watch remembers this
  ASSERT_TRUE(eventually([&] {
    const std::scoped_lock lock(mutex_);
    return ends_.size() == 1;
  }));
  watch_->stop();
  watch_.reset();
  start();
  add({0});
  EXPECT_EQ(watch_->readings(0).readings.at(0).ranks(0).step(), 7);
  EXPECT_EQ(watch_->readings(0).readings.at(0).samples_size(), 0);
}

TEST_F(WatchTest, a_full_disk_takes_the_oldest_unshipped_bytes_and_says_so) {
  watch_->stop();
  watch_.reset();
  options_.free_bytes = [](const std::filesystem::path&) { return (256ull << 20) - (400 << 10); };
  options_.blind_scan = 50ms;
  // All of it exists before the first read: what is not written yet cannot be given up.
  const test::Appender rank(log(0));
  for (int part = 0; part < 16; ++part)
    rank.write(std::string(65535, static_cast<char>('a' + part)) + "\n");
  start();
  add({0});
  ASSERT_TRUE(eventually([&] {
    const std::scoped_lock lock(mutex_);
    return !troubles_.empty();
  }));
  watch_->controller_has({run_, RankNo(0)}, 0, 0, false);
  const auto piece = watch_->read({run_, RankNo(0)}, 0, 1000);
  ASSERT_TRUE(piece.has_value());
  ASSERT_TRUE(piece->loss.has_value());
  EXPECT_EQ(piece->loss->reason, kHardCapReason);
  EXPECT_GE(piece->offset, 400u << 10);
}

TEST_F(WatchTest, unknown_words_are_refused) {
  watching_.set_layout("no-such-layout");
  watching_.set_save_dir("/x");
  EXPECT_FALSE(watch_->add(run_, run_dir_, watching_, {0}, {}, {}, {}).has_value());
  watching_.set_layout("none");
  watching_.set_success_regex("(");
  const auto added = watch_->add(run_, run_dir_, watching_, {0}, {}, {}, {});
  ASSERT_FALSE(added.has_value());
  EXPECT_NE(added.error().message.find("success.regex"), std::string::npos);
}

// Regression: a rank on a full disk could not even write why it ended. A status without a message
// counted as an error of its program.
TEST_F(WatchTest, a_rank_without_last_words_on_a_full_disk_is_reported_as_that) {
  watch_->stop();
  std::atomic<std::uint64_t> free = 1ull << 40;
  options_.free_bytes = [&](const std::filesystem::path&) { return free.load(); };
  start();
  add({0, 1, 2});
  const test::Appender silent(log(0)), telling(log(1)), before(log(2));
  silent.write("hello\n");
  telling.write("hello\nRuntimeError: of its own\n");
  before.write("hello\n");
  watch_->rank_ended(run_, RankNo(2), true);
  ASSERT_TRUE(comes(run_, [](const Reports& reports) { return reports.ends.contains(2); }));
  free = 100;
  watch_->rank_ended(run_, RankNo(0), true);
  watch_->rank_ended(run_, RankNo(1), true);
  ASSERT_TRUE(comes(run_, [](const Reports& reports) { return reports.ends.size() == 3; }));
  const Reports now = reports(run_);
  EXPECT_EQ(now.ends.at(0).evidence,
            "No space left on device: the disk of '" + (run_dir_ / "logs").string() +
                "' is full, so that the rank's log may end before it could say why");
  EXPECT_EQ(now.ends.at(0).evidence_kind, v1::EVIDENCE_KIND_CAUSE);
  EXPECT_EQ(now.ends.at(1).evidence, "RuntimeError: of its own");
  EXPECT_EQ(now.ends.at(2).evidence, "") << "there was room";
  watch_->stop();
}

// Regression: 48 ranks under `ulimit -n 64`: each log kept two descriptors open, none were left for
// anything else, and nothing progressed.
TEST_F(WatchTest, more_logs_than_may_be_open_are_all_read) {
  watch_->stop();
  options_.open_logs = 2;
  start();
  constexpr std::uint32_t kRanks = 20;
  std::vector<std::uint32_t> ranks;
  for (std::uint32_t rank = 0; rank < kRanks; ++rank) ranks.push_back(rank);
  add(ranks);
  for (int step = 1; step <= 3; ++step) {
    for (const std::uint32_t rank : ranks)
      test::Appender(log(static_cast<int>(rank))).write(line(step));
    ASSERT_TRUE(eventually([&] {
      const v1::AttemptReading now = reading(run_);
      return now.ranks_size() == kRanks &&
             std::ranges::all_of(now.ranks(),
                                 [&](const v1::RankReading& one) { return one.step() == step; });
    })) << step;
  }
  for (const std::uint32_t rank : ranks) {
    const auto piece = watch_->read({.run = run_, .rank = RankNo(rank)}, 0, 1 << 20);
    ASSERT_TRUE(piece) << piece.error().message;
    EXPECT_EQ(piece->data, line(1) + line(2) + line(3)) << rank;
    test::Appender(log(static_cast<int>(rank))).write("RuntimeError: x\n");
    watch_->rank_ended(run_, RankNo(rank), true);
  }
  ASSERT_TRUE(comes(run_, [](const Reports& reports) { return reports.ends.size() == kRanks; }));
  for (const auto& [rank, end] : reports(run_).ends)
    EXPECT_EQ(end.evidence, "RuntimeError: x") << rank;
  watch_->stop();  // nothing is being read
  std::size_t open = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    open += std::filesystem::read_symlink(entry.path(), gone)
                .string()
                .starts_with(run_dir_.string() + "/");
  }
  EXPECT_LE(open, 5U) << "two logs, each with its cursor file, and their directory";
  EXPECT_GE(open, 3U);
}

// A program that rotates its log: rank-0.log becomes rank-0.log.1, and a new rank-0.log begins.
TEST_F(WatchTest, a_log_that_is_renamed_and_begun_anew_continues) {
  add({0});
  {
    const test::Appender old(log(0));
    old.write(line(1));
    ASSERT_TRUE(eventually([&] { return reading(run_).ranks(0).step() == 1; }));
    std::filesystem::rename(log(0), log(0).string() + ".1");
    old.write(line(2));
  }
  test::Appender(log(0)).write(line(3));
  ASSERT_TRUE(eventually([&] { return reading(run_).ranks(0).step() == 3; }));
  EXPECT_EQ(reading(run_).samples_size(), 3);
  watch_->controller_has({run_, RankNo(0)}, 0, 0, false);
  std::string shipped;
  const std::string all = line(1) + line(2) + line(3);
  while (shipped.size() < all.size()) {
    const auto piece = watch_->read({run_, RankNo(0)}, shipped.size(), 1000);
    ASSERT_TRUE(piece && !piece->data.empty());
    EXPECT_FALSE(piece->loss.has_value());
    EXPECT_EQ(piece->offset, shipped.size());
    shipped += piece->data;
  }
  EXPECT_EQ(shipped, all);
}

TEST_F(WatchTest, checkpoints_are_seen_when_they_are_sealed) {
  watching_.set_layout("megatron");
  watching_.set_save_dir((dir_.path() / "save").string());
  watching_.set_world_size(1);
  std::filesystem::create_directories(dir_.path() / "save");
  add({0});
  write_shard(dir_.path() / "save" / "iter_0000010" / "mp_rank_00");
  std::ofstream(dir_.path() / "save" / "latest_checkpointed_iteration.txt") << "10";
  const auto sealed = [&] {
    const Readings all = watch_->readings(0);
    return all.readings.at(0).shards_size() == 1 && all.readings.at(0).shards(0).sealed();
  };
  ASSERT_TRUE(eventually(sealed));
  const Readings all = watch_->readings(0);
  EXPECT_EQ(all.readings.at(0).shards(0).step(), 10);
  EXPECT_TRUE(all.readings.at(0).shards(0).finished());
  {
    const std::scoped_lock lock(mutex_);
    EXPECT_GE(shards_, 1);
  }
  EXPECT_EQ(watch_->readings(all.mark).readings.at(0).shards_size(), 0) << "told once";
  write_shard(dir_.path() / "save" / "iter_0000020" / "mp_rank_00");
  ASSERT_TRUE(
      eventually([&] { return watch_->readings(all.mark).readings.at(0).shards_size() == 1; }));
  EXPECT_FALSE(watch_->readings(all.mark).readings.at(0).shards(0).sealed());
}

// Regression: a torch script saved step_20.pt, which no layout knows. After its failure it began at
// step 0, and no message had announced this.
TEST_F(WatchTest, a_file_of_no_checkpoint_that_the_layout_knows_is_reported) {
  const std::filesystem::path save = dir_.path() / "save";
  watching_.set_layout("megatron");
  watching_.set_save_dir(save.string());
  watching_.set_world_size(1);
  std::filesystem::create_directories(save);
  add({0});
  std::ofstream(save / "step_20.pt") << "weights";
  watch_->run_swept(run_);
  ASSERT_TRUE(comes(run_, [](const Reports& reports) { return reports.last_scans == 1; }));
  EXPECT_EQ(reading(run_).unknown_file(), "step_20.pt");
  write_checkpoint(save, 10);
  EXPECT_TRUE(eventually([&] { return reading(run_).unknown_file().empty(); }))
      << "one that it knows lies beside: the file is that program's own matter";
}

// Regression: for a training that had hung for an hour, `ps` showed step, loss and remaining time
// as if it still advanced.
TEST_F(WatchTest, the_age_of_the_last_step_is_reported) {
  add({0});
  test::Appender(log(0)).write("compiling\n");
  ASSERT_TRUE(eventually([&] { return reading(run_).ranks(0).log_bytes() > 0; }));
  EXPECT_FALSE(reading(run_).has_step_age()) << "no step yet";
  test::Appender(log(0)).write(line(1));
  ASSERT_TRUE(eventually([&] { return reading(run_).has_step_age(); }));
  test::Appender(log(0)).write("saving\n");
  EXPECT_TRUE(eventually([&] { return reading(run_).step_age().nanos() > 100'000'000; }))
      << "it grows, whatever else is printed";
  // After a restart of the agent, the age is that of the log's last byte.
  watch_->stop();
  std::filesystem::last_write_time(
      log(0), std::filesystem::file_time_type::clock::now() - std::chrono::hours(1));
  start();
  add({0});
  EXPECT_TRUE(eventually([&] { return reading(run_).step_age().seconds() >= 3600; }));
}

}  // namespace
}  // namespace muster::agent
