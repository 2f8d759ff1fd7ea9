// A rank may do anything with its own log. What it puts there must not stop the thread that reads
// every job's logs.
#include <sys/stat.h>

#include <filesystem>

#include "tests/unit/agent_logs/log_file_ground.h"

namespace muster::agent {
namespace {

namespace fs = std::filesystem;

class LogReplaced : public LogFileTest {
 protected:
  // The rank has replaced its log with something else, and a restarted agent finds that.
  void read_again() {
    restart();
    connect();
    parse();
    ship(1000, true);
    auto last = file_->read(end_, 1000, true);
    ASSERT_TRUE(last.has_value()) << last.error().message;
    EXPECT_TRUE(last->final) << "its log is never whole, and its run directory never goes";
  }
  void one_line() {
    restart();
    connect();
    test::Appender(log_).write("one\n");
    parse();
    ship();
    ASSERT_TRUE(file_->remember({}, 0).has_value());
    fs::remove(log_);
  }
};

TEST_F(LogReplaced, by_a_pipe) {
  one_line();
  ASSERT_EQ(::mkfifo(log_.c_str(), 0600), 0);
  read_again();
  EXPECT_EQ(kept_, "one\n");
}

TEST_F(LogReplaced, by_a_link_to_another_file) {
  one_line();
  test::Appender(dir_.path() / "secret").write("not of this log\n");
  fs::create_symlink(dir_.path() / "secret", log_);
  read_again();
  EXPECT_EQ(kept_, "one\n");
}

TEST_F(LogReplaced, by_nothing) {
  one_line();
  read_again();
  EXPECT_EQ(kept_, "one\n");
}

}  // namespace
}  // namespace muster::agent
