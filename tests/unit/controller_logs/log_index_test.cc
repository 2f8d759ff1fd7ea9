#include "controller/logs/log_index.h"

#include <gtest/gtest.h>

#include <fstream>

#include "common/io/frames.h"
#include "tests/unit/controller_logs/store_fixture.h"

namespace muster::logs {
namespace {

class LogIndexTest : public LogStoreTest {
 protected:
  static std::string read(const std::filesystem::path& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  static void write(const std::filesystem::path& path, std::string_view bytes) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
  }
};

// Regression: with 300 ranks and 256 open files, each append of each rank read its whole index,
// megabytes after a day, to find its end.
TEST_F(LogIndexTest, an_index_that_is_opened_again_is_not_read_again) {
  const std::filesystem::path path = dir_.path() / "index";
  auto index = LogIndex::load(path);
  ASSERT_TRUE(index.has_value());
  ASSERT_TRUE(index->add_gap({4, 10, "hard cap", {}}).has_value());
  index->close();
  const std::string before = read(path);
  write(path, std::string(before.size(), '\xff'));  // a reader would find it damaged
  ASSERT_TRUE(index->add_gap({20, 30, "hard cap", {}}).has_value());
  const std::string after = read(path);
  ASSERT_GT(after.size(), before.size());
  write(path, before + after.substr(before.size()));
  auto again = LogIndex::load(path);
  ASSERT_TRUE(again.has_value());
  ASSERT_EQ(again->gaps().size(), 2u);
  EXPECT_EQ(again->gaps()[1].from, 20u);
}

TEST_F(LogIndexTest, a_dead_writers_part_of_a_record_is_cut_off_before_the_next) {
  const std::filesystem::path path = dir_.path() / "index";
  ASSERT_TRUE(LogIndex::load(path)->add_gap({4, 10, "hard cap", {}}).has_value());
  write(path,
        read(path) + io::encode_frame("a record that was not written to its end").substr(0, 20));
  auto index = LogIndex::load(path);
  ASSERT_TRUE(index->add_gap({20, 30, "hard cap", {}}).has_value());
  EXPECT_EQ(LogIndex::load(path)->gaps().size(), 2u);
}

// Regression: a record each second made 2 MB for each rank and day, which each start of the
// controller read.
TEST_F(LogIndexTest, bytes_without_end_make_a_small_index) {
  const auto begin = std::chrono::steady_clock::now();
  const std::string piece(256 << 10, 'x');
  for (std::uint64_t at = 0; at < 16 << 20; at += piece.size()) append(at, piece);
  const auto took = std::chrono::steady_clock::now() - begin;
  const auto records = io::read_frames(file(".index"), 0);
  ASSERT_TRUE(records.has_value());
  EXPECT_GE(records->frames.size(), 1u);
  EXPECT_LE(records->frames.size(), 1u + static_cast<std::size_t>(took / kTimeStep));
}

// Regression: a power cut had turned the index's end to zeros. All of it was dropped, including the
// gaps: every offset after them moved, and the agent sent bytes that were already stored.
TEST_F(LogIndexTest, a_damaged_end_takes_nothing_that_stood_before_it) {
  append(0, "one\n");
  append(10, "two\n", Gap{4, 10, "hard cap", {}});
  store_.reset();
  const std::string sound = read(file(".index"));
  write(file(".index"), sound + std::string(100, '\0'));
  reopen();
  EXPECT_EQ(store_->state(key_)->end, 14u);
  EXPECT_EQ(whole(), "one\n<4-10 hard cap>two\n");
  EXPECT_EQ(read(file(".index")), sound);
  EXPECT_EQ(read(file(".index.damaged")), sound + std::string(100, '\0')) << "for a person's eyes";
  append(14, "", Gap{14, 20, "hard cap", {}});
  append(20, "three\n", Gap{14, 20, "hard cap", {}});
  reopen();
  EXPECT_EQ(whole(), "one\n<4-10 hard cap>two\n<14-20 hard cap>three\n");
}

// A sound frame that is no record: another program's.
TEST_F(LogIndexTest, so_does_a_record_that_makes_no_sense) {
  append(0, "one\n");
  append(10, "two\n", Gap{4, 10, "hard cap", {}});
  store_.reset();
  const std::string sound = read(file(".index"));
  write(file(".index"), sound + io::encode_frame("\xff\xff") + sound);
  reopen();
  EXPECT_EQ(whole(), "one\n<4-10 hard cap>two\n");
  EXPECT_EQ(read(file(".index")), sound);
}

}  // namespace
}  // namespace muster::logs
