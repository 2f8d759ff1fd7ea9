// The runner of starts: which steps run, in what order and where, which starts wait, which are
// refused, and with what sentence.
#include "agent/start/start_runner.h"

#include <gmock/gmock.h>

#include <condition_variable>
#include <future>
#include <optional>
#include <set>

#include "tests/unit/agent_run/support.h"

namespace muster::agent {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::StartsWith;

constexpr const char* kNothing = "no answer";

// What the steps have done. Threads of starts share it, and may outlive the test.
struct Steps {
  using Name = std::pair<std::string, StartStep>;

  void before(const std::string& job, StartStep step) {
    std::unique_lock lock(mutex);
    begun.emplace_back(job, step);
    changed.notify_all();
    changed.wait(lock, [&] { return gone || !hangs.contains({job, step}); });
  }
  void after(const std::string& job, StartStep step) {
    const std::lock_guard lock(mutex);
    done.emplace_back(job, step);
  }
  bool wait_for(const std::string& job, StartStep step) {
    std::unique_lock lock(mutex);
    return changed.wait_for(
        lock, 20s, [&] { return std::ranges::find(begun, Name(job, step)) != begun.end(); });
  }
  void let_go() {
    const std::lock_guard lock(mutex);
    gone = true;
    changed.notify_all();
  }
  std::vector<std::string> of(const std::string& job, const std::vector<Name>& all) {
    const std::lock_guard lock(mutex);
    std::vector<std::string> words;
    for (const auto& [whose, step] : all)
      if (whose == job) words.emplace_back(row_of(step).word);
    return words;
  }

  std::mutex mutex;
  std::condition_variable changed;
  std::set<Name> hangs;
  std::vector<Name> begun, done;
  bool gone = false;
};

class StartRunnerTest : public ::testing::Test {
 protected:
  using Outcome = std::future<StepResult>;

  ~StartRunnerTest() override {
    on_loop([this] { runner_.reset(); });
    steps_->let_go();
    loop_.stop();
  }
  void make(std::size_t most, Duration patience,
            std::function<Duration(StartStep, const v1::NodeLaunch&)> bound = {}) {
    const auto hook = [this](void (Steps::*call)(const std::string&, StartStep)) {
      return [steps = steps_, call](const RunKey& run, StartStep step) {
        ((*steps).*call)(run.first.str(), step);
      };
    };
    on_loop([&] {
      runner_.emplace(loop_, StartRunner::Options{.most = most,
                                                  .patience = patience,
                                                  .before_step = hook(&Steps::before),
                                                  .after_step = hook(&Steps::after),
                                                  .bound = std::move(bound)});
    });
  }
  void on_loop(const std::function<void()>& task) {
    std::promise<void> done;
    loop_.post("test", [&] {
      task();
      done.set_value();
    });
    done.get_future().wait();
  }
  [[nodiscard]] v1::NodeLaunch order(const std::string& job) const {
    v1::NodeLaunch order;
    order.set_job_name(job);
    order.set_attempt(1);
    order.add_make_dirs((dir_.path() / job).string());
    return order;
  }
  Outcome run(const v1::NodeLaunch& order) {
    const auto outcome = std::make_shared<std::promise<StepResult>>();
    on_loop([&] {
      StartWork work{.order = order,
                     .node = {.state_dir = dir_.path()},
                     .layout = rundir::RunLayout(dir_.path() / "run"),
                     .context = {.run = {JobId(order.job_name()), AttemptNo(1)}},
                     .spawn = [this](StartWork&) -> StepResult {
                       EXPECT_TRUE(loop_.on_this());
                       return {};
                     }};
      progress_[order.job_name()] = work.progress;
      runner_->run(std::move(work), {.begun = {}, .ended = [this, outcome](StepResult result) {
                                       EXPECT_TRUE(loop_.on_this());
                                       outcome->set_value(std::move(result));
                                     }});
    });
    return outcome->get_future();
  }
  Outcome run(const std::string& job) { return run(order(job)); }
  // It hangs at this step when this returns.
  Outcome hang(const std::string& job, StartStep step) {
    {
      const std::lock_guard lock(steps_->mutex);
      steps_->hangs.emplace(job, step);
    }
    Outcome outcome = run(job);
    EXPECT_TRUE(steps_->wait_for(job, step));
    return outcome;
  }
  static std::string text_of(Outcome& outcome) {
    if (outcome.wait_for(20s) != std::future_status::ready) return kNothing;
    const StepResult result = outcome.get();
    return result ? "started" : "refused: " + result.error().text;
  }
  static bool is_open(const Outcome& outcome) {
    return outcome.wait_for(0s) == std::future_status::timeout;
  }
  // True: its calls were destroyed without a result.
  static bool is_dropped(Outcome& outcome) {
    try {
      (void)outcome.get();
    } catch (const std::future_error& error) {
      return error.code() == std::future_errc::broken_promise;
    }
    return false;
  }
  std::vector<std::string> begun(const std::string& job) { return steps_->of(job, steps_->begun); }
  std::vector<std::string> done(const std::string& job) { return steps_->of(job, steps_->done); }

  const TempDir dir_;
  async::Loop loop_{"test-starts"};
  const std::shared_ptr<Steps> steps_ = std::make_shared<Steps>();
  std::optional<StartRunner> runner_;
  std::map<std::string, std::shared_ptr<StartProgress>> progress_;
};

TEST_F(StartRunnerTest, RunsTheStepsOfTheOrderInTheirOrder) {
  make(1, 1h);
  v1::NodeLaunch wanted = order("a");
  wanted.mutable_resume()->set_dir((dir_.path() / "resume").string());
  wanted.mutable_resume()->set_layout("none");
  Outcome whole = run(wanted);
  EXPECT_EQ(text_of(whole), "started");
  EXPECT_THAT(begun("a"), ElementsAre("check", "directories", "files", "links", "record", "spawn"));
  EXPECT_EQ(done("a"), begun("a"));
  EXPECT_TRUE(std::filesystem::is_directory(dir_.path() / "a"));

  wanted = v1::NodeLaunch();
  wanted.set_job_name("b");
  Outcome least = run(wanted);
  EXPECT_EQ(text_of(least), "started");
  EXPECT_THAT(begun("b"), ElementsAre("check", "files", "record", "spawn"));
}

TEST_F(StartRunnerTest, AStepThatFailsIsTheLastOneAndIsNamed) {
  make(1, 1h);
  v1::NodeLaunch wanted = order("a");
  const std::string file = dir_.write("file", "").string();
  wanted.add_make_dirs(file);
  Outcome outcome = run(wanted);
  ASSERT_EQ(outcome.wait_for(20s), std::future_status::ready);
  const StepResult result = outcome.get();
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().why, v1::START_FAILURE_LAUNCH);
  EXPECT_EQ(result.error().step, "directories");
  EXPECT_EQ(result.error().text, "making directory '" + file + "': a file of that name is there");
  EXPECT_THAT(begun("a"), ElementsAre("check", "directories"));
  EXPECT_THAT(done("a"), ElementsAre("check"));
}

TEST_F(StartRunnerTest, AStepBeyondItsBoundIsRefusedAndItsThreadIsAbandoned) {
  make(1, 1h, [](StartStep step, const v1::NodeLaunch& of) {
    return step == StartStep::Files && of.job_name() == "a" ? Duration(1ms) : Duration(1h);
  });
  Outcome hanging = hang("a", StartStep::Files);
  ASSERT_EQ(hanging.wait_for(20s), std::future_status::ready);
  const StepResult result = hanging.get();
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().why, v1::START_FAILURE_NODE);
  EXPECT_EQ(result.error().step, "files");
  EXPECT_THAT(result.error().text,
              MatchesRegex("preparing the start: step 'files' is not done after [0-9]+ s of "
                           "writing the files of job 'a' attempt 1; is that file system there.*"));
  Outcome next = run("b");
  on_loop([] {});
  EXPECT_TRUE(is_open(next)) << "the abandoned thread counts until it returns";
  EXPECT_THAT(begun("b"), ElementsAre());
  steps_->let_go();
  EXPECT_EQ(text_of(next), "started");
  EXPECT_THAT(begun("a"), ElementsAre("check", "directories", "files"))
      << "it begins no further step, and its result is dropped";
}

// The bound of the step before does not count.
TEST_F(StartRunnerTest, AShortBoundAfterALongOneIsNoticed) {
  make(1, 1h, [](StartStep step, const v1::NodeLaunch&) {
    return step == StartStep::Record ? Duration(1ms) : Duration(1h);
  });
  Outcome outcome = hang("a", StartStep::Record);
  EXPECT_THAT(text_of(outcome), HasSubstr("step 'record' is not done after "));
}

TEST_F(StartRunnerTest, NobodyHearsOfAStartThatWasAbandoned) {
  make(1, 1h);
  Outcome first = hang("a", StartStep::Check);
  Outcome second = run("b");
  on_loop([this] {
    runner_->abandon(*progress_.at("a"));
    runner_->abandon(*progress_.at("b"));
  });
  EXPECT_TRUE(is_dropped(second)) << "it waited";
  Outcome third = run("c");
  steps_->let_go();
  EXPECT_EQ(text_of(third), "started");
  EXPECT_TRUE(is_dropped(first));
  EXPECT_THAT(begun("a"), ElementsAre("check"));
  EXPECT_THAT(begun("b"), ElementsAre());
}

// Regression: a job whose file system hung was started again and again, and each try left another
// thread.
TEST_F(StartRunnerTest, BeyondTheBoundAStartIsTheNodesFaultAndSaysWhatHangs) {
  make(2, 0s);
  Outcome first = hang("a", StartStep::Directories);
  Outcome second = hang("b", StartStep::Record);
  Outcome third = run("c");
  ASSERT_EQ(third.wait_for(20s), std::future_status::ready);
  const StepResult refused = third.get();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().why, v1::START_FAILURE_NODE);
  EXPECT_EQ(refused.error().step, "") << "it has begun none";
  const std::string& text = refused.error().text;
  EXPECT_THAT(text, StartsWith("preparing the start: all 2 threads for starts are blocked on this "
                               "node, the longest for "));
  EXPECT_THAT(text, HasSubstr(" s in making the directories of job 'a' attempt 1 ('" +
                              (dir_.path() / "a").string() + "'); is that file system there?"));
  steps_->let_go();
  EXPECT_EQ(text_of(first), "started");
  EXPECT_EQ(text_of(second), "started");
  Outcome fourth = run("d");
  EXPECT_EQ(text_of(fourth), "started") << "the threads have come back";
}

// Many starts at once are not refused.
TEST_F(StartRunnerTest, OneThatComesWhileAllAreBusyWaitsItsTurn) {
  make(1, 1h);
  Outcome first = hang("a", StartStep::Check);
  std::vector<Outcome> others;
  for (const char* job : {"b", "c", "d", "e", "f"}) others.push_back(run(std::string(job)));
  EXPECT_TRUE(is_open(others[0]));
  steps_->let_go();
  EXPECT_EQ(text_of(first), "started");
  for (Outcome& outcome : others) EXPECT_EQ(text_of(outcome), "started");
  std::vector<std::string> checked;
  for (const auto& [job, step] : steps_->begun)
    if (step == StartStep::Check) checked.push_back(job);
  EXPECT_THAT(checked, ElementsAre("a", "b", "c", "d", "e", "f"));
}

TEST_F(StartRunnerTest, ThoseThatWaitAreRefusedWhenTheLastThreadIsBlockedAsWell) {
  make(1, 1ms);
  Outcome first = hang("a", StartStep::Check);
  Outcome second = run("b");
  EXPECT_THAT(text_of(second), StartsWith("refused: preparing the start: all 1 threads for starts "
                                          "are blocked"));
  EXPECT_TRUE(is_open(first)) << "it hangs on, and nobody waits for it";
}

TEST_F(StartRunnerTest, NobodyIsNotifiedAfterTheClose) {
  make(1, 1h);
  Outcome first = hang("a", StartStep::Check);
  Outcome second = run("b");
  on_loop([this] { runner_->close(); });
  steps_->let_go();
  EXPECT_TRUE(is_dropped(first));
  EXPECT_TRUE(is_dropped(second));
}

}  // namespace
}  // namespace muster::agent
