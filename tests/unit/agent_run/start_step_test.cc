// The table of the steps of a start, and what is shown of a start that is at one of them.
#include "agent/start/start_step.h"

#include <gmock/gmock.h>

#include <set>

#include "agent/code/code_copy.h"
#include "agent/container/container_prepare.h"
#include "agent/launch/now_preparing.h"
#include "tests/unit/agent_run/full_start.h"

namespace muster::agent {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;

std::vector<std::string> words_of(const v1::NodeLaunch& order) {
  std::vector<std::string> words;
  for (const StartStepRow& row : kStartSteps)
    if (row.in_order(order)) words.emplace_back(row.word);
  return words;
}

TEST(StartStep, EveryStepHasItsOwnWordABoundAndASentence) {
  const TempDir dir;
  std::set<std::string_view> words;
  for (const v1::NodeLaunch& order : {v1::NodeLaunch(), FullStart(dir.path()).order()}) {
    words.clear();
    for (const StartStepRow& row : kStartSteps) {
      SCOPED_TRACE(row.word);
      EXPECT_FALSE(row.word.empty());
      EXPECT_TRUE(words.insert(row.word).second);
      EXPECT_EQ(parse_start_step(row.word), row.step);
      EXPECT_EQ(&row_of(row.step), &row);
      EXPECT_TRUE(row.bound == nullptr || row.bound(order) > Duration::zero());
      EXPECT_FALSE(row.sentence(order).empty());
      EXPECT_NE(row.run, nullptr);
    }
  }
  EXPECT_EQ(words.size(), kStartStepCount);
  EXPECT_FALSE(parse_start_step(""));
  EXPECT_FALSE(parse_start_step("Check"));
}

TEST(StartStep, AnOrderHasTheStepsThatItAsksFor) {
  const TempDir dir;
  EXPECT_THAT(words_of(v1::NodeLaunch()), ElementsAre("check", "files", "record", "spawn"));
  EXPECT_THAT(words_of(FullStart(dir.path()).order()),
              ElementsAre("check", "checkpoints", "directories", "inputs", "code", "files", "fetch",
                          "links", "container", "record", "secrets", "spawn"));
}

// Quick steps end before the controller's patience with a start does; slow ones after everything
// that ends them with a better sentence.
TEST(StartStep, BoundsFitWhatTheStepsDo) {
  v1::NodeLaunch order;
  order.mutable_setup()->mutable_timeout()->set_seconds(3 * 3600);
  for (const StartStepRow& row : kStartSteps) {
    EXPECT_EQ(row.place == StepPlace::Loop, row.step == StartStep::Spawn) << row.word;
    if (row.place == StepPlace::Loop || row.takes_long) continue;
    EXPECT_EQ(row.bound(v1::NodeLaunch()), Duration(50s)) << row.word;
    EXPECT_EQ(row.bound(order), Duration(10min)) << row.word << ": with a setup";
  }
  EXPECT_GT(row_of(StartStep::Code).bound(order), Duration(kCodeCopyTime));
  EXPECT_GT(row_of(StartStep::Fetch).bound(order), Duration(1h));
  EXPECT_GT(row_of(StartStep::Container).bound(order), Duration(2 * image_time(order)));
  EXPECT_GT(row_of(StartStep::Container).bound(v1::NodeLaunch()), Duration(1h));
}

TEST(StartStep, SentencesNameTheStartAndItsPaths) {
  const TempDir dir;
  const FullStart full(dir.path());
  const auto sentence = [&](StartStep step) { return row_of(step).sentence(full.order()); };
  EXPECT_EQ(sentence(StartStep::Check),
            "looking for the user, directories and scripts of job 'full' attempt 1 (working "
            "directory '" +
                dir.path().string() + "')");
  EXPECT_EQ(sentence(StartStep::Directories),
            "making the directories of job 'full' attempt 1 ('" + full.at("out") + "')");
  EXPECT_EQ(sentence(StartStep::Fetch),
            "fetching '" + full.at("out/fetched") + "' from node 'n2' for job 'full' attempt 1");
  EXPECT_EQ(sentence(StartStep::Record), "looking for the programs of job 'full' attempt 1");
}

TEST(StartProgress, ShowsTheStepAndWhatItDoes) {
  StartProgress progress;
  EXPECT_FALSE(progress.now().step);
  EXPECT_EQ(progress.now().text, "");
  progress.begin(StartStep::Container, "looking for what job 'x' mounts");
  std::string text = "2 of 7 layers";
  progress.set_text([&] { return text; });
  const BootTime since = progress.now().since;
  EXPECT_EQ(progress.now().step, StartStep::Container);
  EXPECT_EQ(progress.now().sentence, "looking for what job 'x' mounts");
  EXPECT_EQ(progress.now().text, "2 of 7 layers");
  text = "3 of 7 layers";
  EXPECT_EQ(progress.now().text, "3 of 7 layers");

  now_preparing("of no start");
  prepare_for(&progress);
  now_preparing("pulling image 'x'");
  prepare_for(nullptr);
  now_preparing("of no start");
  EXPECT_EQ(progress.now().sentence, "pulling image 'x'");
  EXPECT_EQ(progress.now().since, since) << "the bound counts on";
  while (system_clock().now().boot == since) std::this_thread::yield();
  progress.next_part("pulling image 'y'");
  EXPECT_GT(progress.now().since, since) << "the bound counts anew";

  EXPECT_EQ(progress.now().quick_before, Duration::zero());
  progress.begin(StartStep::Record, "looking for the programs", 5s);
  EXPECT_EQ(progress.now().quick_before, Duration(5s));
  EXPECT_EQ(progress.now().text, "") << "that was of the step before";
}

}  // namespace
}  // namespace muster::agent
