// The series of a job that trains for weeks: bounded on the disk and in an answer, and no log waits
// while it is read.
#include "controller/logs/series_file.h"

#include <cmath>
#include <fstream>
#include <iterator>
#include <limits>

#include "tests/unit/controller_logs/store_fixture.h"

namespace muster::logs {
namespace {

class SeriesTest : public testing::Test {
 protected:
  static std::vector<SeriesPoint> steps(std::uint32_t attempt, std::int64_t first,
                                        std::int64_t last) {
    std::vector<SeriesPoint> points;
    for (std::int64_t step = first; step <= last; ++step)
      points.push_back({WallTime(std::chrono::seconds(1'000'000 + step)), AttemptNo(attempt), step,
                        static_cast<double>(step), true});
    return points;
  }
  [[nodiscard]] std::vector<SeriesPoint> read(std::size_t most = kSeriesPointsMost) const {
    return SeriesFile::Reading::of(path_)->points(most).value();
  }
  [[nodiscard]] std::filesystem::path made() const { return dir_.path() / kSeriesNew; }
  test::TempDir dir_;
  const std::filesystem::path path_ = dir_.path() / "series";
};

TEST_F(SeriesTest, an_answer_is_spread_evenly_with_the_first_and_the_last) {
  SeriesFile file = SeriesFile::open(path_).value();
  std::int64_t there = 0;
  for (const std::int64_t count : {1, 2, 9, 10, 11, 19, 20, 21, 39, 40, 41, 1'000, 12'345}) {
    ASSERT_TRUE(file.add(steps(1, there + 1, count)));
    there = count;
    const auto points = read(10);
    ASSERT_EQ(points.size(), static_cast<std::size_t>(std::min<std::int64_t>(count, 10))) << count;
    EXPECT_EQ(points.front().step, 1);
    EXPECT_EQ(points.back().step, count);
    for (std::size_t i = 1; i < points.size(); ++i) {
      const std::int64_t apart = points[i].step - points[i - 1].step;
      EXPECT_GT(apart, 0);
      EXPECT_LE(apart, count / 10 * 2 + 2) << count;
    }
  }
}

// Regression: a job's file grew with every step, outside of any quota.
TEST_F(SeriesTest, the_file_is_thinned_and_keeps_its_ends) {
  constexpr std::uint64_t kMost = 64 << 10;
  {
    SeriesFile file = SeriesFile::open(path_, kMost).value();
    ASSERT_TRUE(file.add(steps(1, 1, 77)));
    for (std::int64_t step = 1; step <= 20'000; ++step) ASSERT_TRUE(file.add(steps(2, step, step)));
    EXPECT_LE(std::filesystem::file_size(path_), kMost);
    EXPECT_FALSE(std::filesystem::exists(made()));
  }
  const auto points = read();
  ASSERT_GT(points.size(), 500u);
  EXPECT_EQ(points.front().step, 1);
  EXPECT_EQ(points.back().step, 20'000);
  std::map<AttemptNo, std::int64_t> last;
  for (const SeriesPoint& point : points) {
    EXPECT_GT(point.step, last[point.attempt]);
    last[point.attempt] = point.step;
  }
  EXPECT_EQ(last, (std::map<AttemptNo, std::int64_t>{{AttemptNo(1), 77}, {AttemptNo(2), 20'000}}));
  SeriesFile again = SeriesFile::open(path_, kMost).value();
  ASSERT_TRUE(again.add(steps(1, 70, 77)));
  EXPECT_EQ(read().size(), points.size()) << "each attempt's last step is still known";
}

// Regression: "Series points were lost" was logged for points that were stored; only the thinning
// had failed.
TEST_F(SeriesTest, points_stay_where_thinning_fails) {
  SeriesFile file = SeriesFile::open(path_, 4 << 10).value();
  std::filesystem::create_directories(made() / "in its way");
  Result<void> added;
  std::int64_t step = 0;
  while (added && step < 20'000) {
    ++step;
    added = file.add(steps(1, step, step));
  }
  ASSERT_FALSE(added);
  EXPECT_NE(added.error().message.find("which has its new points and grows longer than it should"),
            std::string::npos)
      << added.error().message;
  EXPECT_EQ(read().back().step, step);
}

// However long a file is, one thinning is enough.
TEST_F(SeriesTest, a_file_that_is_far_too_long_is_thinned_at_once) {
  {
    ASSERT_TRUE(SeriesFile::open(path_)->add(steps(1, 1, 50'000)));
  }
  ASSERT_GT(std::filesystem::file_size(path_), 1u << 20);
  SeriesFile file = SeriesFile::open(path_, 64 << 10).value();
  ASSERT_TRUE(file.add(steps(1, 50'001, 50'001)));
  EXPECT_LE(std::filesystem::file_size(path_), 64u << 10);
  EXPECT_EQ(read().back().step, 50'001);
}

// What a kill leaves: before the rename, the old file and any beginning of the new one; after it,
// only the new one.
TEST_F(SeriesTest, killed_at_any_moment_it_is_whole) {
  constexpr std::uint64_t kMost = 16 << 10;
  const std::filesystem::path old = dir_.path() / "old";
  {
    SeriesFile file = SeriesFile::open(path_).value();
    for (std::int64_t step = 1; step <= 600; ++step) ASSERT_TRUE(file.add(steps(1, step, step)));
    std::filesystem::copy_file(path_, old);
  }
  ASSERT_TRUE(SeriesFile::open(path_, kMost)->add(steps(1, 601, 601)));
  ASSERT_LE(std::filesystem::file_size(path_), kMost);
  std::ifstream thinned(path_, std::ios::binary);
  const std::string bytes(std::istreambuf_iterator<char>(thinned), {});
  for (std::size_t written = 0; written <= bytes.size();
       written +=
       written + 97 < bytes.size() ? 97 : std::max<std::size_t>(1, bytes.size() - written)) {
    std::filesystem::copy_file(old, path_, std::filesystem::copy_options::overwrite_existing);
    std::ofstream(made(), std::ios::binary) << bytes.substr(0, written);
    ASSERT_EQ(read().size(), 600u) << written;
    SeriesFile file = SeriesFile::open(path_, kMost).value();
    EXPECT_FALSE(std::filesystem::exists(made())) << written;
    ASSERT_TRUE(file.add(steps(1, 601, 601)));
    EXPECT_EQ(read().front().step, 1);
    EXPECT_EQ(read().back().step, 601);
    EXPECT_FALSE(std::filesystem::exists(made())) << written;
  }
}

TEST_F(SeriesTest, a_reading_stays_what_it_was) {
  SeriesFile file = SeriesFile::open(path_, 16 << 10).value();
  ASSERT_TRUE(file.add(steps(1, 1, 300)));
  const auto before = SeriesFile::Reading::of(path_);
  ASSERT_TRUE(before);
  for (std::int64_t step = 301; step <= 3'000; ++step) ASSERT_TRUE(file.add(steps(1, step, step)));
  std::filesystem::remove(path_);
  const auto points = before->points(1'000);
  ASSERT_TRUE(points);
  ASSERT_EQ(points->size(), 300u);
  EXPECT_EQ(points->back().step, 300);
  EXPECT_TRUE(read().empty());
}

// A list of many jobs reads each one's last point.
TEST_F(SeriesTest, the_last_point_is_found_at_the_end) {
  const auto last = [&] { return SeriesFile::Reading::of(path_)->last().value(); };
  EXPECT_FALSE(last());
  SeriesFile file = SeriesFile::open(path_).value();
  for (std::int64_t step = 1; step <= 2'000; ++step) {
    ASSERT_TRUE(file.add(steps(1, step, step)));
    if (step % 97 == 0) {
      ASSERT_EQ(last()->step, step);
    }
  }
  ASSERT_TRUE(file.add(steps(2, 1, 20'000))) << "one frame, longer than what is looked at";
  EXPECT_EQ(last()->step, 20'000);
  EXPECT_EQ(last()->attempt, AttemptNo(2));
  ASSERT_TRUE(file.add({{.at = {},
                         .attempt = AttemptNo(2),
                         .step = 20'001,
                         .loss = std::numeric_limits<double>::quiet_NaN()}}));
  EXPECT_TRUE(std::isnan(last()->loss));
  EXPECT_FALSE(last()->has_loss);
  ASSERT_TRUE(file.add({{.at = {}, .attempt = AttemptNo(2), .step = 20'002}}));
  EXPECT_FALSE(last()->has_loss);
  EXPECT_EQ(last()->loss, 0) << "none was reported: that is not NaN";
  ASSERT_TRUE(
      file.add({{.at = {}, .attempt = AttemptNo(2), .step = 20'003, .loss = 0, .has_loss = true}}));
  EXPECT_TRUE(last()->has_loss) << "of 0";
  std::ofstream(path_, std::ios::binary | std::ios::app) << std::string(40, '\0');
  EXPECT_EQ(last()->step, 20'003) << "behind it is damage";
}

TEST_F(SeriesTest, damage_ends_it_and_the_next_points_go_behind_what_is_sound) {
  {
    ASSERT_TRUE(SeriesFile::open(path_)->add(steps(1, 1, 3)));
  }
  std::ofstream(path_, std::ios::binary | std::ios::app) << std::string(40, '\0');
  EXPECT_EQ(read().size(), 3u) << "reading changes nothing";
  ASSERT_TRUE(SeriesFile::open(path_)->add(steps(1, 4, 4)));
  EXPECT_EQ(read().size(), 4u);
}

// A directory in which a thinning was killed is a job's directory like any other: it is removed
// with the job.
TEST_F(LogStoreTest, a_killed_thinning_leaves_a_jobs_folder) {
  ASSERT_TRUE(store_->add_points(key_.job, {SeriesPoint{{}, AttemptNo(1), 1, 1, true}}));
  std::ofstream(root() / "job" / kSeriesNew) << "half";
  EXPECT_EQ(store_->jobs(), std::vector{key_.job});
}

}  // namespace
}  // namespace muster::logs
