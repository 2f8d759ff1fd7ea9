#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <random>

#include "common/io/frames.h"
#include "tests/unit/agent_logs/log_file_ground.h"

namespace muster::agent {
namespace {

TEST_F(LogFileTest, nothing_is_there_yet) {
  restart();
  parse();
  connect();
  ship();
  EXPECT_EQ(end_, 0u);
  test::Appender(log_).write("hello\n");
  parse();
  ship();
  EXPECT_EQ(kept_, "hello\n");
}

TEST_F(LogFileTest, a_truncation_begins_a_new_segment_behind_all_that_was_seen) {
  const test::Appender rank(log_);
  restart();
  connect();
  rank.write("one\ntwo\n");
  parse();
  ship();
  rank.write("three\n");
  parse();  // read, not shipped
  rank.truncate();
  rank.write("four\n");
  parse();
  ship();
  EXPECT_EQ(kept_, "one\ntwo\nfour\n");
  EXPECT_EQ(gaps_, (std::vector<Gap>{{8, 14, kTruncatedReason}}));
  EXPECT_EQ(end_, 19u);
}

TEST_F(LogFileTest, a_truncated_log_that_grew_longer_than_it_was_is_recognised) {
  const test::Appender rank(log_);
  restart();
  connect();
  rank.write("line 1\n");
  parse();
  ship();
  rank.truncate();
  rank.write("line 2, much longer than the first\n");
  parse();
  ship();
  EXPECT_EQ(kept_, "line 1\nline 2, much longer than the first\n");
  EXPECT_EQ(gaps_, (std::vector<Gap>{{7, 7, kTruncatedReason}}));  // the lost amount is unknown
}

TEST_F(LogFileTest, truncated_while_no_agent_ran) {
  const test::Appender rank(log_);
  restart();
  connect();
  rank.write("before\n");
  parse();
  ship();
  file_.reset();
  rank.truncate();
  rank.write("after, longer\n");
  restart();
  parse();
  ship();  // the controller has not answered: nothing may be sent
  EXPECT_EQ(kept_, "before\n");
  connect();
  ship();
  EXPECT_EQ(kept_, "before\nafter, longer\n");
  EXPECT_EQ(gaps_, (std::vector<Gap>{{7, 7, kTruncatedReason}}));
}

TEST_F(LogFileTest, truncated_while_no_agent_ran_and_begun_with_the_same_bytes) {
  const test::Appender rank(log_);
  restart();
  connect();
  rank.write("banner\nstep 1\nstep 2\n");
  parse();
  ship();
  file_.reset();
  rank.truncate();
  rank.write("banner\n");
  restart();
  parse();
  connect();
  parse();
  ship();
  EXPECT_EQ(kept_, "banner\nstep 1\nstep 2\nbanner\n");
  EXPECT_EQ(gaps_.size(), 1u);
}

TEST_F(LogFileTest, a_restart_goes_on_where_the_controller_is) {
  const test::Appender rank(log_);
  restart();
  connect();
  rank.write(std::string(5000, 'a'));
  parse();
  ship();
  restart();
  rank.write(std::string(5000, 'b'));
  parse();
  connect();
  ship();
  EXPECT_EQ(kept_, std::string(5000, 'a') + std::string(5000, 'b'));
  EXPECT_TRUE(gaps_.empty());
}

TEST_F(LogFileTest, what_was_parsed_is_remembered_over_a_restart) {
  const test::Appender rank(log_);
  restart();
  rank.write("step 1\nunfin");
  parse();
  logs::v1::Parsed parsed;
  parsed.set_step(1);
  parsed.set_success_seen(true);
  ASSERT_TRUE(file_->remember(parsed, 5).has_value());
  restart();
  ASSERT_TRUE(file_->restored().has_value());
  EXPECT_EQ(file_->restored()->step(), 1);
  EXPECT_TRUE(file_->restored()->success_seen());
  rank.write("ished\n");
  char buffer[100];
  auto piece = file_->parse_next(buffer);
  ASSERT_TRUE(piece.has_value());
  EXPECT_EQ(piece->data, "unfinished\n");
}

std::uint64_t blocks(const std::filesystem::path& path) {
  struct stat now{};
  return ::stat(path.c_str(), &now) == 0 ? static_cast<std::uint64_t>(now.st_blocks) * 512 : 0;
}

TEST_F(LogFileTest, the_soft_cap_punches_only_what_the_controller_has_synced) {
  const test::Appender rank(log_);
  restart();
  connect();
  std::string truth;
  for (int line = 0; truth.size() < (1 << 20); ++line)
    truth += "line " + std::to_string(line) + "\n";
  rank.write(truth);
  parse();
  ship(64 << 10);
  EXPECT_EQ(file_->trim(64 << 10).value(), 0u);  // sent does not mean synced
  const std::uint64_t before = blocks(log_);
  connect();
  const std::uint64_t went = file_->trim(64 << 10).value();
  EXPECT_GT(went, 900u << 10);
  EXPECT_LE(blocks(log_) + went, before + 4096);
  rank.write("more\n");
  parse();
  ship();
  EXPECT_EQ(kept_, truth + "more\n");
  restart();
  parse();
  connect();
  rank.write("and more\n");
  parse();
  ship();
  EXPECT_EQ(kept_, truth + "more\nand more\n");
  EXPECT_TRUE(gaps_.empty());
}

// Under its other name it may be a file that has nothing to do with the job.
TEST_F(LogFileTest, no_hole_is_punched_into_a_file_with_a_second_name) {
  const test::Appender rank(log_);
  restart();
  connect();
  rank.write(std::string(1 << 20, 'x') + "\n");
  parse();
  ship();
  connect();
  std::filesystem::create_hard_link(log_, log_.string() + ".other");
  EXPECT_EQ(file_->trim(64 << 10).value(), 0U);
  std::filesystem::remove(log_.string() + ".other");
  EXPECT_GT(file_->trim(64 << 10).value(), 900U << 10);
}

TEST_F(LogFileTest, the_hard_cap_loses_the_oldest_and_says_so_even_after_a_restart) {
  const test::Appender rank(log_);
  restart();
  std::string truth;
  for (int line = 0; truth.size() < (256 << 10); ++line)
    truth += "line " + std::to_string(line) + "\n";
  rank.write(truth);
  parse();
  const std::uint64_t went = file_->give_up(100 << 10, 64 << 10).value();
  EXPECT_GE(went, 100u << 10);
  restart();
  parse();
  connect();
  ship(64 << 10);
  ASSERT_EQ(gaps_.size(), 1u);
  EXPECT_EQ(gaps_[0].reason, kHardCapReason);
  EXPECT_EQ(gaps_[0].from, 0u);
  EXPECT_EQ(kept_, truth.substr(gaps_[0].to));
}

// Regression: a later check freed a block of the newest bytes, because their end was rounded up.
TEST_F(LogFileTest, the_hard_cap_never_takes_the_newest) {
  const test::Appender rank(log_);
  restart();
  connect();
  rank.write(std::string(700'001, 'x'));
  parse();
  for (const std::uint64_t want : {400u << 10, 400u << 10, 1u})
    ASSERT_TRUE(file_->give_up(want, 64 << 10).has_value());
  EXPECT_GE(file_->stored_bytes(), 64u << 10);
  EXPECT_LT(file_->stored_bytes(), (64u << 10) + 4096);
}

TEST_F(LogFileTest, no_hole_is_punched_into_bytes_that_replaced_those_that_were_parsed) {
  const test::Appender rank(log_);
  restart();
  connect();
  rank.write(std::string(300'000, 'a'));
  parse();
  ship(64 << 10);
  connect();
  kept_.clear();
  rank.truncate();
  const std::string anew(300'000, 'b');
  rank.write(anew);
  EXPECT_EQ(file_->trim(0).value(), 0U);
  EXPECT_EQ(file_->give_up(100 << 10, 64 << 10).value(), 0U);
  parse();
  ship(64 << 10);
  EXPECT_EQ(kept_, anew);
}

TEST_F(LogFileTest, a_damaged_cursor_is_renamed) {
  const test::Appender rank(log_);
  restart();
  connect();
  rank.write("line\n");
  parse();
  ship();
  file_.reset();
  std::ofstream(cursor_, std::ios::binary | std::ios::trunc) << std::string(64, '\0');
  restart();
  parse();
  connect();
  rank.write("next\n");
  parse();
  ship();
  EXPECT_EQ(kept_, "line\nnext\n");
  EXPECT_TRUE(std::filesystem::exists(cursor_.string() + ".damaged"));
}

// Numbered lines, truncations, agents killed at any point, and a controller that gets the bytes.
// Only the disk survives a kill, and the cursor's last frame may be torn. Every line arrives whole
// and at most once. A missing line belongs to a segment that a truncation removed.
TEST_F(LogFileTest, numbered_lines_over_truncations_and_kills) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    std::filesystem::remove(log_);
    std::filesystem::remove(cursor_);
    end_ = 0;
    kept_.clear();
    gaps_.clear();
    std::mt19937 random(seed);
    const test::Appender rank(log_);
    restart();
    connect();
    int next = 0;
    std::vector<int> segment_of;
    int segment = 0;
    for (int round = 0; round < 120; ++round) {
      switch (random() % 8) {
        case 0:
        case 1:
        case 2:
        case 3: {
          std::string text;
          for (unsigned lines = random() % 40; lines > 0; --lines) {
            text += "[" + std::to_string(next++) + "]" + std::string(random() % 60, '.') + "\n";
            segment_of.push_back(segment);
          }
          rank.write(text);
          break;
        }
        case 4: parse(); break;
        case 5: ship(random() % 3 == 0 ? 50 : 4000); break;
        case 6:
          if (random() % 3 == 0) {
            rank.truncate();
            ++segment;
          }
          break;
        default: {
          file_.reset();
          // A frame that was being written.
          if (random() % 2 == 0 && std::filesystem::exists(cursor_)) {
            const std::string frame = io::encode_frame("a record that was never finished");
            // this cuts off the torn frame before it
            ASSERT_TRUE(io::FrameWriter::open(cursor_).has_value());
            std::ofstream(cursor_, std::ios::binary | std::ios::app)
                << frame.substr(0, 1 + random() % (frame.size() - 1));
          }
          restart();
          parse();
          if (random() % 2 == 0) connect();
        }
      }
    }
    restart();
    parse();
    connect();
    parse();
    ship(4000, true);
    // Lines as they arrived. The part of a line that a truncation cut is joined to the next line,
    // so this finds the last '[' of each.
    std::vector<int> seen;
    for (std::size_t at = 0; at < kept_.size();) {
      const std::size_t stop = kept_.find('\n', at);
      ASSERT_NE(stop, std::string::npos);
      const std::string line = kept_.substr(at, stop - at);
      ASSERT_NE(line.rfind('['), std::string::npos)
          << "at " << at << " of '" << kept_.substr(at > 200 ? at - 200 : 0, 300) << "'";
      seen.push_back(std::stoi(line.substr(line.rfind('[') + 1)));
      at = stop + 1;
    }
    for (std::size_t at = 1; at < seen.size(); ++at) {
      ASSERT_GT(seen[at], seen[at - 1]) << "doubled or out of order";
      if (seen[at] != seen[at - 1] + 1) {
        ASSERT_NE(segment_of[static_cast<std::size_t>(seen[at])],
                  segment_of[static_cast<std::size_t>(seen[at - 1])])
            << "lost without a truncation";
      }
    }
    for (std::size_t line = 0; line < segment_of.size(); ++line) {
      if (segment_of[line] == segment) {
        ASSERT_TRUE(std::ranges::binary_search(seen, static_cast<int>(line)))
            << "line " << line << " of the present segment";
      }
    }
  }
}

}  // namespace
}  // namespace muster::agent
