#include "agent/logs/success_files.h"

#include <future>

#include "tests/unit/agent_logs/subject_ground.h"

namespace muster::agent {
namespace {

using namespace std::chrono_literals;

class SuccessFilesTest : public SubjectTest {
 protected:
  void watch(SuccessFiles::Paths paths) {
    files_ = std::make_shared<SuccessFiles>(tools(), *run_, *this, std::move(paths), JobReach());
  }
  bool goes_on(RankEnding ending) { return files_->explain(ending); }
  [[nodiscard]] bool answers(std::size_t count) {
    return after_results([&] { return answered_.size() >= count; });
  }
  std::string file(int rank) { return (dir_.path() / ("done-" + std::to_string(rank))).string(); }

  std::shared_ptr<SuccessFiles> files_;
};

TEST_F(SuccessFilesTest, OnlyAnEndThatNeedsTheFileWaitsForIt) {
  watch({.own = {{0, file(0)}, {2, ""}}, .of_run = file(9)});
  EXPECT_TRUE(goes_on(ending_of(0, true))) << "it failed";
  RankEnding seen = ending_of(0, false);
  seen.answer.success_seen = true;
  EXPECT_TRUE(goes_on(seen));
  EXPECT_TRUE(goes_on(ending_of(2, false))) << "it has none";
  std::ofstream(file(9)) << "x";
  EXPECT_FALSE(goes_on(ending_of(0, false)));
  EXPECT_FALSE(goes_on(ending_of(1, false))) << "that of the run";
  ASSERT_TRUE(answers(2));
  EXPECT_FALSE(answered_[0].answer.success_seen);
  EXPECT_TRUE(answered_[1].answer.success_seen);
}

TEST_F(SuccessFilesTest, ARankThatEndsDuringACheckWaitsForTheNextOne) {
  std::promise<void> go;
  options_.file_there = [gate = go.get_future().share()](const std::string& path) {
    const bool there = std::filesystem::exists(path);
    gate.wait();
    return there;
  };
  watch({.own = {}, .of_run = file(0)});
  EXPECT_FALSE(goes_on(ending_of(0, false)));
  std::ofstream(file(0)) << "x";  // that check may have seen nothing
  EXPECT_FALSE(goes_on(ending_of(1, false)));
  go.set_value();
  ASSERT_TRUE(answers(2));
  EXPECT_EQ(answered_[0].rank, RankNo(0));
  EXPECT_EQ(answered_[1].rank, RankNo(1));
  EXPECT_TRUE(answered_[1].answer.success_seen);
}

TEST_F(SuccessFilesTest, AHangIsReportedWhenItIsDue) {
  std::promise<void> go;
  options_.file_there = [gate = go.get_future().share()](const std::string&) {
    gate.wait();
    return true;
  };
  watch({.own = {}, .of_run = file(0)});
  files_->pass(now());  // the first check finds out the file system
  const BootTime due = files_->next_due();
  ASSERT_LE(due, now() + options_.hang_after);
  EXPECT_TRUE(troubles_.empty());
  // Its thread may still be about to begin.
  ASSERT_TRUE(after_results([&] {
    files_->pass(files_->next_due());
    return !troubles_.empty();
  }));
  EXPECT_EQ(troubles_, std::vector<std::string>{
                           "looking for success file '" + file(0) +
                           "' for job 'job' attempt 1: no answer for 2000 ms; runs of that file "
                           "system wait for it, all else goes on; is its server there?"});
  EXPECT_EQ(files_->next_due(), BootTime::max());
  go.set_value();
  EXPECT_FALSE(goes_on(ending_of(0, false)));
  EXPECT_TRUE(answers(1));
}

TEST_F(SuccessFilesTest, TheResultForARunThatIsGoneIsDropped) {
  watch({.own = {}, .of_run = file(0)});
  EXPECT_FALSE(goes_on(ending_of(0, false)));
  files_.reset();
  ASSERT_TRUE(take_result());
  EXPECT_TRUE(answered_.empty());
}

}  // namespace
}  // namespace muster::agent
