// The runner of starts: which steps run, in what order and where, which starts wait, which are
// refused, and with what sentence.
#include "agent/start/start_runner.h"

#include "tests/unit/agent_run/start_runner_ground.h"

namespace muster::agent {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

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

TEST_F(StartRunnerTest, NobodyHearsOfAStartThatWasAbandoned) {
  make(1, 1h);
  Outcome first = hang("a", StartStep::Check);
  Outcome second = run("b");
  on_loop([this] {
    runner_->abandon(*progress_.at("b"));  // first: the thread of "a" would make room for it
    runner_->abandon(*progress_.at("a"));
  });
  EXPECT_TRUE(is_dropped(second)) << "it waited";
  Outcome third = run("c");
  EXPECT_EQ(text_of(third), "started") << "the abandoned thread makes room";
  steps_->let_go();
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
  EXPECT_EQ(refused.error().step, "check") << "its first one";
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
