// Threads of starts: how many there are, which starts wait, which are refused, and with what
// sentence.
#include "agent/start/start_prepare.h"

#include <gtest/gtest.h>

#include <future>
#include <mutex>
#include <optional>
#include <vector>

namespace muster::agent {
namespace {

using namespace std::chrono_literals;

class StartThreadsTest : public ::testing::Test {
 protected:
  ~StartThreadsTest() override {
    let_go();
    on_loop([this] { threads_.reset(); });
    loop_.stop();
  }
  void make(std::size_t most, Duration patience) {
    on_loop([&] { threads_.emplace(loop_, most, patience); });
  }
  void on_loop(const std::function<void()>& task) {
    std::promise<void> done;
    loop_.post("test", [&] {
      task();
      done.set_value();
    });
    done.get_future().wait();
  }
  using Outcome = std::shared_ptr<std::promise<StartPrepared>>;
  // The result of a start with this work.
  std::future<StartPrepared> run(std::function<StartPrepared()> work) {
    const auto outcome = std::make_shared<std::promise<StartPrepared>>();
    on_loop([&] {
      threads_->run(std::move(work),
                    [outcome](StartPrepared prepared) { outcome->set_value(std::move(prepared)); });
    });
    return outcome->get_future();
  }
  // Hangs until let_go(), after it has announced its work.
  std::future<StartPrepared> hang(const std::string& what) {
    const auto announced = std::make_shared<std::promise<void>>();
    auto future = run([announced, what, back = back_]() -> StartPrepared {
      now_preparing(what);
      announced->set_value();
      back.wait();
      return rundir::v1::Launch();
    });
    announced->get_future().wait();
    return future;
  }
  void let_go() {
    if (!std::exchange(gone_, true)) go_.set_value();
  }
  static StartPrepared named(const std::string& name) {
    rundir::v1::Launch launch;
    launch.set_process_tag(name);
    return launch;
  }
  static std::string name_of(std::future<StartPrepared>& future) {
    if (future.wait_for(20s) != std::future_status::ready) return "no answer";
    const StartPrepared prepared = future.get();
    return prepared ? prepared->process_tag() : "refused: " + prepared.error().text;
  }

  async::Loop loop_{"test-starts"};
  std::optional<StartThreads> threads_;
  std::promise<void> go_;
  std::shared_future<void> back_ = go_.get_future().share();
  bool gone_ = false;
};

// Regression: a job whose file system hung was started again and again, and each try left another
// thread.
TEST_F(StartThreadsTest, BeyondTheBoundAStartIsTheNodesFaultAndSaysWhatHangs) {
  make(2, 0s);
  auto first = hang("making the directories of job 'a' attempt 1 ('/mnt/dead/out')");
  auto second = hang("looking for the programs of job 'b' attempt 7");
  auto third = run([] { return named("third"); });
  ASSERT_EQ(third.wait_for(20s), std::future_status::ready);
  const StartPrepared refused = third.get();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().why, v1::START_FAILURE_NODE);
  const std::string& text = refused.error().text;
  EXPECT_EQ(text.find("preparing the start: all 2 threads for starts are blocked on this node, the "
                      "longest for "),
            0U)
      << text;
  EXPECT_NE(text.find(" s in making the directories of job 'a' attempt 1 ('/mnt/dead/out'); is "
                      "that file system there?"),
            std::string::npos)
      << text;
  let_go();
  EXPECT_EQ(name_of(first), "");
  EXPECT_EQ(name_of(second), "");
  auto fourth = run([] { return named("fourth"); });
  EXPECT_EQ(name_of(fourth), "fourth") << "the threads have come back";
}

// Many starts at once are not refused.
TEST_F(StartThreadsTest, OneThatComesWhileAllAreBusyWaitsItsTurn) {
  make(1, 1h);
  auto first = hang("its work");
  std::vector<std::future<StartPrepared>> others;
  for (int at = 0; at < 5; ++at) others.push_back(run([at] { return named(std::to_string(at)); }));
  EXPECT_EQ(others[0].wait_for(0s), std::future_status::timeout);
  let_go();
  EXPECT_EQ(name_of(first), "");
  for (int at = 0; at < 5; ++at)
    EXPECT_EQ(name_of(others[static_cast<std::size_t>(at)]), std::to_string(at));
}

TEST_F(StartThreadsTest, ThoseThatWaitAreRefusedWhenTheLastThreadIsBlockedAsWell) {
  make(1, 1ms);
  auto first = hang("reading '/mnt/dead'");
  auto second = run([] { return named("second"); });
  EXPECT_EQ(
      name_of(second).find("refused: preparing the start: all 1 threads for starts are blocked"),
      0U);
  EXPECT_EQ(first.wait_for(0s), std::future_status::timeout)
      << "it hangs on, and nobody waits for it";
}

TEST_F(StartThreadsTest, NobodyIsNotifiedAfterTheClose) {
  make(1, 1h);
  auto first = hang("its work");
  auto second = run([] { return named("second"); });
  on_loop([this] { threads_->close(); });
  let_go();
  const auto broken = [](std::future<StartPrepared>& future) {
    try {
      (void)future.get();
    } catch (const std::future_error& error) {
      return error.code() == std::future_errc::broken_promise;
    }
    return false;
  };
  EXPECT_TRUE(broken(first));
  EXPECT_TRUE(broken(second));
}

}  // namespace
}  // namespace muster::agent
