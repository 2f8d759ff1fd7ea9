// A log whose name leads to another file: when the new file continues the log, and what is lost.
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>

#include "agent/logs/rank_reader.h"
#include "tests/unit/agent_logs/log_file_ground.h"

namespace muster::agent {
namespace {

namespace fs = std::filesystem;

// While it lives, this process can open no file.
class NoDescriptor {
 public:
  NoDescriptor() {
    if (::getrlimit(RLIMIT_NOFILE, &before_) != 0) std::abort();
    const int next = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    ::close(next);
    rlimit none = before_;
    none.rlim_cur = static_cast<rlim_t>(next);
    if (::setrlimit(RLIMIT_NOFILE, &none) != 0) std::abort();
  }
  ~NoDescriptor() { (void)::setrlimit(RLIMIT_NOFILE, &before_); }
  NoDescriptor(const NoDescriptor&) = delete;
  NoDescriptor& operator=(const NoDescriptor&) = delete;

 private:
  rlimit before_{};
};

class LogRenamed : public LogFileTest {
 protected:
  using Gaps = std::vector<Gap>;
  // As logrotate does it, with `create`: nobody writes to the new file.
  void rename_log() {
    fs::rename(log_, dir_.path() / ("rank-0.log." + std::to_string(++renamed_)));
  }
  void rotate(const std::string& text = {}) {
    rename_log();
    test::Appender(log_).write(text);
  }
  void go_on() {
    parse();
    ship();
  }
  // The log is truncated while no agent runs, so its base waits for the controller.
  void begin_with_unknown_base(std::shared_ptr<io::DescriptorBudget> budget = {}) {
    budget_ = std::move(budget);
    restart();
    connect();
    test::Appender(log_).write("before\n");
    go_on();
    file_.reset();
    test::Appender(log_).truncate();
    test::Appender(log_).write("after\n");
    restart();
    parse();
  }
  int renamed_ = 0;
};

TEST_F(LogRenamed, a_rank_that_goes_on_writing_to_its_old_file_loses_nothing) {
  std::optional<test::Appender> rank(std::in_place, log_);
  restart();
  connect();
  rank->write("one\n");
  go_on();
  rotate("another's\n");
  for (const char* text : {"two\n", "three\n"}) {
    go_on();
    rank->write(text);
  }
  go_on();
  EXPECT_EQ(kept_, "one\ntwo\nthree\n");
  EXPECT_EQ(file_->extent().segment, 0U) << "the old file is still the log";
  rank.reset();
  go_on();
  EXPECT_EQ(kept_, "one\ntwo\nthree\nanother's\n");
  EXPECT_EQ(gaps_, Gaps());
}

TEST_F(LogRenamed, a_rank_that_opens_its_log_anew_is_followed) {
  std::optional<test::Appender> rank(std::in_place, log_);
  restart();
  connect();
  rank->write("one\n");
  go_on();
  rename_log();
  rank->write("two\n");
  go_on();
  rank.emplace(log_);
  rank->write("three\n");
  go_on();
  EXPECT_EQ(kept_, "one\ntwo\nthree\n");
  EXPECT_EQ(file_->extent().segment, 1U);
  EXPECT_EQ(gaps_, Gaps());
}

TEST_F(LogRenamed, after_the_sweep_nobody_is_waited_for) {
  const test::Appender stranger(log_);
  restart();
  connect();
  stranger.write("one\n");
  go_on();
  rotate("two\n");
  go_on();
  EXPECT_EQ(kept_, "one\n");
  file_->writers_gone();
  go_on();
  EXPECT_EQ(kept_, "one\ntwo\n");
  EXPECT_EQ(gaps_, Gaps());
}

TEST_F(LogRenamed, an_agent_that_starts_anew_finds_the_log_by_its_name) {
  const test::Appender rank(log_);
  restart();
  connect();
  rank.write("one\n");
  go_on();
  rotate("new\n");
  rank.write("two\n");
  file_.reset();
  restart();
  parse();
  connect();
  ship();
  EXPECT_EQ(kept_, "one\nnew\n");
  EXPECT_EQ(gaps_, (Gaps{{4, 4, kReplacedReason}}));
}

TEST_F(LogRenamed, a_new_file_that_cannot_be_opened_keeps_the_old_one) {
  restart();
  connect();
  test::Appender(log_).write("one\n");
  go_on();
  test::Appender(log_).write("two\n");
  rotate("three\n");
  {
    const NoDescriptor none;
    char buffer[100];
    for (const char* text : {"two\n", ""}) {
      auto piece = file_->parse_next(buffer);
      ASSERT_TRUE(piece.has_value()) << piece.error().message;
      EXPECT_EQ(piece->data, text);
      EXPECT_TRUE(piece->at_end);
      ASSERT_TRUE(piece->trouble.has_value());
      EXPECT_EQ(piece->trouble->message, "opening the file that has replaced log '" +
                                             log_.string() + "': Too many open files");
    }
    ship();
    EXPECT_EQ(kept_, "one\ntwo\n");
  }
  go_on();
  EXPECT_EQ(kept_, "one\ntwo\nthree\n");
  EXPECT_EQ(gaps_, Gaps());
}

TEST_F(LogRenamed, a_program_that_renames_without_end_gets_one_round) {
  v1::Watching watching;
  watching.set_grammar("none");
  restart();
  RankReader reader(std::shared_ptr<LogFile>(std::move(file_)), *Patterns::make(watching));
  test::Appender(log_).write("line\n");
  char buffer[100];
  EXPECT_TRUE(reader.read(buffer, [] {}).at_end);
  rotate("line\n");
  int pieces = 0;
  const RankReader::Round round = reader.read(buffer, [&] {
    ASSERT_LT(++pieces, 100);
    rotate("line\n");
  });
  EXPECT_FALSE(round.at_end) << "others get their turn before it is read on";
  EXPECT_EQ(renamed_, RankReader::kRoundFiles + 1);
  EXPECT_TRUE(reader.read(buffer, [] {}).at_end);
}

TEST_F(LogRenamed, one_call_begins_at_most_one_file) {
  restart();
  test::Appender(log_).write("one\n");
  parse();
  rotate();
  char buffer[100];
  auto piece = file_->parse_next(buffer);
  ASSERT_TRUE(piece.has_value());
  EXPECT_TRUE(piece->replaced && piece->new_file);
  EXPECT_FALSE(piece->at_end) << "the name may lead to the next file already";
  rotate("two\n");
  piece = file_->parse_next(buffer);
  ASSERT_TRUE(piece.has_value());
  EXPECT_EQ(piece->data, "two\n");
  EXPECT_TRUE(piece->replaced);
  EXPECT_FALSE(piece->new_file) << "nothing was in the file before";
  EXPECT_EQ(file_->extent().segment, 1U);
}

TEST_F(LogRenamed, an_empty_file_does_not_hide_the_loss_before_it) {
  restart();
  connect();
  test::Appender(log_).write("one\n");
  go_on();
  file_.reset();
  rotate();
  restart();
  parse();
  rotate();
  parse();
  rotate("two\n");
  parse();
  connect();
  ship();
  EXPECT_EQ(kept_, "one\ntwo\n");
  EXPECT_EQ(gaps_, (Gaps{{4, 4, kReplacedReason}}));
}

TEST_F(LogRenamed, a_file_of_unknown_base_that_was_given_up_is_a_loss_with_its_number) {
  begin_with_unknown_base(std::make_shared<io::DescriptorBudget>(1));
  rotate("next\n");
  parse();
  connect();
  ship();
  EXPECT_EQ(kept_, "before\nnext\n");
  EXPECT_EQ(gaps_, (Gaps{{7, 13, kReplacedReason}}));
}

TEST_F(LogRenamed, of_many_files_of_unknown_base_the_lost_ones_are_one_loss) {
  begin_with_unknown_base();
  std::string truth = "before\n";
  for (std::size_t i = 0; i < RenamedFiles::kMost + 1; ++i) {
    rotate("line\n");
    parse();
    if (i > 0) truth += "line\n";
  }
  rotate("last\n");
  parse();
  connect();
  ship();
  EXPECT_EQ(kept_, truth + "last\n");
  EXPECT_EQ(gaps_, (Gaps{{7, 18, kReplacedReason}}));
}

TEST_F(LogRenamed, a_restart_before_the_base_is_known_is_a_loss) {
  begin_with_unknown_base();
  rotate("next\n");
  parse();
  ASSERT_TRUE(file_->remember({}, 0).has_value());
  restart();
  parse();
  connect();
  ship();
  EXPECT_EQ(kept_, "before\nnext\n");
  EXPECT_EQ(gaps_, (Gaps{{7, 7, kReplacedReason}}));
}

TEST_F(LogRenamed, an_old_file_whose_end_was_changed_is_not_shipped) {
  restart();
  connect();
  test::Appender(log_).write(std::string(1000, 'a'));
  parse();
  rotate("new\n");
  parse();
  std::fstream(dir_.path() / "rank-0.log.1", std::ios::in | std::ios::out).seekp(990) << "b";
  ship();
  EXPECT_EQ(kept_, "new\n");
  EXPECT_EQ(gaps_, (Gaps{{0, 1000, kReplacedReason}}));
}

TEST_F(LogRenamed, the_last_bytes_may_begin_in_the_file_before) {
  restart();
  connect();
  test::Appender(log_).write("first\nValueError: x");
  parse();
  rotate("more\n");
  parse();
  EXPECT_EQ(file_->tail(1000).value(), "first\nValueError: x\nmore\n");
  EXPECT_EQ(file_->tail(7).value(), " x\nmore\n");
  ship();
  connect();
  EXPECT_EQ(file_->tail(1000).value(), "more\n") << "the controller has the old file";
}

}  // namespace
}  // namespace muster::agent
