// The bytes before the parser's position, kept over a restart of the agent: they show that a log
// was truncated and replaced in the meantime.
#include "agent/logs/cursor_file.h"
#include "tests/unit/agent_logs/log_file_ground.h"

namespace muster::agent {
namespace {

// Regression: the new log began with the same 256 bytes, as programs do, and was already longer
// than the old one. Nothing showed that it was another log. The controller got the end of the new
// log appended to the beginning of the old one.
TEST_F(LogFileTest, truncated_while_no_agent_ran_begun_alike_and_grown_longer) {
  const std::string banner(1000, '=');
  for (const std::string unfinished : {"", "half a li"}) {
    SCOPED_TRACE(unfinished);
    std::filesystem::remove(log_);
    std::filesystem::remove(cursor_);
    end_ = 0;
    kept_.clear();
    gaps_.clear();
    const test::Appender rank(log_);
    restart();
    connect();
    const std::string before = banner + "\nstep 1 loss 2.5\n" + unfinished,
                      after = banner + "\nstep 1 loss 2.7\nstep 2 loss 2.6\nstep 3 loss 2.5\n";
    rank.write(before);
    parse();
    ship();
    ASSERT_TRUE(file_->remember({}, unfinished.size()).has_value());
    file_.reset();
    rank.truncate();
    rank.write(after);
    restart();
    parse();
    connect();
    parse();
    ship();
    EXPECT_EQ(kept_, before + after);
    EXPECT_EQ(gaps_, (std::vector<Gap>{{before.size(), before.size(), kTruncatedReason}}));
  }
}

TEST_F(LogFileTest, an_anchor_takes_no_log_that_goes_on_for_another) {
  const test::Appender rank(log_);
  restart();
  connect();
  std::string truth;
  for (int round = 0; round < 40; ++round) {
    const std::string more = "line " + std::to_string(round) + "\n" +
                             std::string(static_cast<std::size_t>(round % 7) * 30, '.') +
                             (round % 3 == 0 ? "\n" : "");
    rank.write(more);
    truth += more;
    parse();
    ship();
    ASSERT_TRUE(file_->remember({}, truth.size() - (truth.rfind('\n') + 1)).has_value());
    restart();
    parse();
    connect();
  }
  ship();
  EXPECT_EQ(kept_, truth);
  EXPECT_TRUE(gaps_.empty());
}

TEST_F(LogFileTest, a_cursor_of_before_anchors_is_read) {
  const test::Appender rank(log_);
  rank.write("step 1\nstep 2\n");
  {
    restart();
    parse();
    connect();
    ship();
    file_.reset();
    auto cursor = CursorFile::load(cursor_);
    ASSERT_TRUE(cursor.has_value());
    logs::v1::CursorRecord record;
    record.mutable_parsed()->set_position(7);
    record.mutable_parsed()->set_step(1);
    ASSERT_TRUE(cursor->append(record).has_value());
  }
  restart();
  ASSERT_TRUE(file_->restored().has_value());
  EXPECT_EQ(file_->restored()->anchor(), "");
  rank.write("step 3\n");
  char buffer[100];
  const auto piece = file_->parse_next(buffer);
  ASSERT_TRUE(piece.has_value());
  EXPECT_EQ(piece->data, "step 2\nstep 3\n");
  EXPECT_FALSE(piece->cut);
}

TEST_F(LogFileTest, an_anchor_that_no_agent_wrote_is_passed_over) {
  const test::Appender rank(log_);
  rank.write("step 1\nstep 2\n");
  {
    auto cursor = CursorFile::load(cursor_);
    ASSERT_TRUE(cursor.has_value());
    logs::v1::CursorRecord record;
    record.mutable_parsed()->set_position(7);
    record.mutable_parsed()->set_anchor(std::string(100'000, 'x'));
    ASSERT_TRUE(cursor->append(record).has_value());
  }
  restart();
  char buffer[100];
  const auto piece = file_->parse_next(buffer);
  ASSERT_TRUE(piece.has_value());
  EXPECT_EQ(piece->data, "step 2\n");
}

}  // namespace
}  // namespace muster::agent
