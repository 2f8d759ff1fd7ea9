// A log that its program renames and begins anew, as log rotation does.
#include <sys/stat.h>

#include <filesystem>
#include <random>

#include "agent/logs/rank_reader.h"
#include "tests/unit/agent_logs/log_file_ground.h"

namespace muster::agent {
namespace {

namespace fs = std::filesystem;

class LogRotated : public LogFileTest {
 protected:
  // The program renames its log, and writes this to the new one.
  void rotate(const std::string& text = {}) {
    rename_log();
    test::Appender(log_).write(text);
  }
  void rename_log() {
    fs::rename(log_, dir_.path() / ("rank-0.log." + std::to_string(++renamed_)));
  }
  void write(const std::string& text) {
    test::Appender(log_).write(text);
    truth_ += text;
  }
  // The agent was not restarted, and reads and ships what there is.
  void go_on() {
    parse();
    ship();
  }
  [[nodiscard]] int open_files() {
    int count = 0;
    for (const auto& entry : fs::directory_iterator("/proc/self/fd")) {
      std::error_code gone;
      count += fs::read_symlink(entry.path(), gone)
                   .string()
                   .starts_with((dir_.path() / "rank-0.log.").string());
    }
    return count;
  }
  using Gaps = std::vector<Gap>;

  int renamed_ = 0;
  std::string truth_;
};

TEST_F(LogRotated, what_was_not_read_of_the_old_file_is_read_and_nothing_is_lost) {
  restart();
  connect();
  write("one\n");
  go_on();
  {
    const test::Appender old(log_);
    rename_log();
    old.write("two\n");
    go_on();  // the name is free for a moment
    old.write("three\n");
  }
  test::Appender(log_).write("four\n");
  go_on();
  EXPECT_EQ(kept_, "one\ntwo\nthree\nfour\n");
  EXPECT_EQ(gaps_, Gaps());
  EXPECT_EQ(end_, kept_.size());
}

TEST_F(LogRotated, what_was_not_shipped_of_old_files_is_shipped_and_then_they_are_closed) {
  restart();
  connect();
  for (const char* text : {"one\n", "two\n", "three\n"}) {
    write(text);
    parse();
    rename_log();
  }
  write("four\n");
  parse();
  EXPECT_EQ(open_files(), 3);
  const auto piece = file_->read(0, 1000, false);
  ASSERT_TRUE(piece.has_value());
  EXPECT_EQ(piece->data, "one\n") << "bytes of one segment";
  EXPECT_FALSE(piece->final);
  ship(2);
  EXPECT_EQ(kept_, truth_);
  EXPECT_EQ(gaps_, Gaps());
  file_->controller_has(8, 8);
  EXPECT_EQ(open_files(), 1);
  connect();
  EXPECT_EQ(open_files(), 0);
}

TEST_F(LogRotated, the_first_piece_of_a_new_file_is_marked) {
  restart();
  write("one\nunfin");
  parse();
  rotate("two\n");
  char buffer[100];
  auto piece = file_->parse_next(buffer);
  ASSERT_TRUE(piece.has_value());
  EXPECT_EQ(piece->data, "two\n");
  EXPECT_TRUE(piece->new_file);
  EXPECT_FALSE(piece->cut);
  test::Appender(log_).write("more\n");
  piece = file_->parse_next(buffer);
  ASSERT_TRUE(piece.has_value());
  EXPECT_FALSE(piece->new_file);
}

TEST_F(LogRotated, the_last_line_of_the_old_file_counts_without_its_end) {
  v1::Watching watching;
  watching.set_grammar("none");
  watching.set_success_regex("all done$");
  restart();
  RankReader reader(std::shared_ptr<LogFile>(std::move(file_)), *Patterns::make(watching));
  write("all do");
  char buffer[100];
  ASSERT_TRUE(reader.read(buffer, [] {}).at_end);
  write("ne");
  rotate(" and more\n");
  ASSERT_TRUE(reader.read(buffer, [] {}).at_end);
  EXPECT_TRUE(reader.success_seen());
}

TEST_F(LogRotated, after_a_restart_the_bytes_of_the_old_file_are_a_loss_with_their_number) {
  restart();
  connect();
  write("one\n");
  go_on();
  write("two\n");
  parse();
  rotate("three\n");
  parse();
  ASSERT_TRUE(file_->remember({}, 0).has_value());
  restart();
  parse();
  connect();
  ship();
  EXPECT_EQ(kept_, "one\nthree\n");
  EXPECT_EQ(gaps_, (Gaps{{4, 8, kReplacedReason}}));
}

TEST_F(LogRotated, after_a_restart_nothing_is_a_loss_if_the_old_file_was_shipped) {
  restart();
  connect();
  write("one\n");
  go_on();
  rotate("two\n");
  go_on();
  restart();
  test::Appender(log_).write("three\n");
  parse();
  connect();
  ship();
  EXPECT_EQ(kept_, "one\ntwo\nthree\n");
  EXPECT_EQ(gaps_, Gaps());
}

TEST_F(LogRotated, while_no_agent_ran_it_is_a_loss_of_unknown_length) {
  restart();
  connect();
  write("one\n");
  go_on();
  file_.reset();
  rotate("two, longer\n");
  restart();
  parse();
  ship();
  EXPECT_EQ(kept_, "one\n") << "the controller has not answered";
  connect();
  ship();
  EXPECT_EQ(kept_, "one\ntwo, longer\n");
  EXPECT_EQ(gaps_, (Gaps{{4, 4, kReplacedReason}}));
}

TEST_F(LogRotated, before_the_controller_answers_old_files_wait_for_their_base) {
  restart();
  connect();
  write("before\n");
  go_on();
  file_.reset();
  test::Appender(log_).truncate();
  test::Appender(log_).write("after\n");
  restart();
  parse();
  rotate("next\n");
  parse();
  ship();
  EXPECT_EQ(kept_, "before\n");
  connect();
  ship();
  EXPECT_EQ(kept_, "before\nafter\nnext\n");
  EXPECT_EQ(gaps_, (Gaps{{7, 7, kTruncatedReason}}));
}

// The budget of descriptors has none for this log: each read opens the file by its name.
TEST_F(LogRotated, without_a_descriptor_the_old_file_is_a_loss) {
  budget_ = std::make_shared<io::DescriptorBudget>(0);
  restart();
  connect();
  write("one\n");
  go_on();
  write("two\n");
  parse();
  rotate("three\n");
  go_on();
  EXPECT_EQ(kept_, "one\nthree\n");
  EXPECT_EQ(gaps_, (Gaps{{4, 8, kReplacedReason}}));
}

TEST_F(LogRotated, beyond_the_budget_the_old_file_is_read_but_not_kept) {
  budget_ = std::make_shared<io::DescriptorBudget>(1);
  restart();
  connect();
  write("one\n");
  go_on();
  write("two\n");
  rotate("three\n");
  go_on();
  EXPECT_EQ(open_files(), 0);
  EXPECT_EQ(kept_, "one\nthree\n");
  EXPECT_EQ(gaps_, (Gaps{{4, 8, kReplacedReason}}));
  file_.reset();
  EXPECT_TRUE(budget_->take()) << "given back once";
  EXPECT_FALSE(budget_->take());
}

TEST_F(LogRotated, of_many_old_files_the_oldest_are_closed) {
  budget_ = std::make_shared<io::DescriptorBudget>(100);
  restart();
  connect();
  const std::size_t files = RenamedFiles::kMost + 2;
  for (std::size_t i = 0; i < files; ++i) {
    write("line\n");
    parse();
    rename_log();
  }
  write("last\n");
  go_on();
  EXPECT_EQ(gaps_, (Gaps{{0, 10, kReplacedReason}}));
  EXPECT_EQ(kept_, truth_.substr(10));
  file_.reset();
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(budget_->take()) << i;
}

TEST_F(LogRotated, an_old_file_that_the_program_empties_is_a_loss) {
  restart();
  connect();
  write("one\n");
  parse();
  rotate("two\n");
  parse();
  fs::resize_file(dir_.path() / "rank-0.log.1", 0);
  ship();
  EXPECT_EQ(kept_, "two\n");
  EXPECT_EQ(gaps_, (Gaps{{0, 4, kReplacedReason}}));
  EXPECT_EQ(open_files(), 0);
}

// Only the agent's descriptor keeps a deleted file on the disk.
TEST_F(LogRotated, a_deleted_file_is_given_up_when_the_disk_is_full) {
  restart();
  connect();
  write(std::string(256 << 10, 'x'));
  parse();
  fs::remove(log_);
  write("new\n");
  parse();
  EXPECT_GE(file_->stored_bytes(), 256U << 10);
  EXPECT_GE(file_->give_up(1, 64 << 10).value(), 256U << 10);
  EXPECT_LE(file_->stored_bytes(), 4U);
  ship();
  EXPECT_EQ(kept_, "new\n");
  EXPECT_EQ(gaps_, (Gaps{{0, 256 << 10, kReplacedReason}}));
}

TEST_F(LogRotated, no_hole_is_punched_into_another_file) {
  restart();
  connect();
  write(std::string(300'000, 'a'));
  parse();
  rename_log();
  EXPECT_EQ(file_->give_up(100 << 10, 64 << 10).value(), 0U) << "no file has the name";
  write(std::string(300'000, 'b'));
  EXPECT_EQ(file_->give_up(100 << 10, 64 << 10).value(), 0U);
  parse();
  ship(64 << 10);
  EXPECT_EQ(kept_, truth_);
  EXPECT_EQ(gaps_, Gaps());
}

// Any order of writes, reads, ships and rotations, as long as each file is seen once.
TEST_F(LogRotated, numbered_lines_over_rotations) {
  for (unsigned seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    fs::remove(log_);
    fs::remove(cursor_);
    end_ = 0;
    kept_.clear();
    truth_.clear();
    std::mt19937 random(seed);
    restart();
    connect();
    int line = 0;
    std::size_t unsynced = 0;  // rotations
    write("");
    for (int round = 0; round < 200; ++round) {
      switch (random() % 6) {
        case 0:
        case 1:
          for (unsigned lines = random() % 20; lines > 0; --lines)
            write("[" + std::to_string(line++) + "]" + std::string(random() % 60, '.') + "\n");
          break;
        case 2: parse(); break;
        case 3: ship(random() % 2 == 0 ? 50 : 4000); break;
        case 4:
          ship();
          connect();
          unsynced = 0;
          break;
        default:
          if (++unsynced > RenamedFiles::kMost) break;
          parse();
          write("[" + std::to_string(line++) + "]\n");
          rotate();
          break;
      }
    }
    parse();
    ship(4000, true);
    ASSERT_EQ(kept_, truth_);
    ASSERT_EQ(gaps_, Gaps());
  }
}

}  // namespace
}  // namespace muster::agent
