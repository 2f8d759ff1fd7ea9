// Regression: one job with a name of sixty characters pushed phase, step and loss of every job over
// the edge of an 80-column terminal. Every row began with the eight characters that all ids of a
// day share.
#include "client/render/job_table.h"

#include <gmock/gmock.h>

#include <sstream>

namespace muster::render {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

constexpr int kNow = 1'800'000'000;
const WallTime kNowWall{std::chrono::seconds(kNow)};

v1::Job job(const std::string& name, const std::string& id, v1::JobPhase phase) {
  v1::Job made;
  made.set_id(id);
  made.mutable_spec()->set_name(name);
  made.mutable_spec()->set_engine("torch");
  made.set_phase(phase);
  made.mutable_submitted_at()->set_seconds(kNow - 7200);
  return made;
}
v1::Job running(const std::string& name, const std::string& id) {
  v1::Job made = job(name, id, v1::JOB_PHASE_RUNNING);
  made.set_attempt(1);
  v1::Attempt& attempt = *made.add_attempts();
  attempt.set_number(1);
  attempt.mutable_running_at()->set_seconds(kNow - 125);
  v1::Progress& progress = *made.mutable_progress();
  progress.set_attempt(1);
  progress.set_step(30);
  progress.set_total(100);
  progress.set_loss(2.5);
  return made;
}
std::vector<std::string> lines(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> out;
  for (std::string line; std::getline(stream, line);) out.push_back(line);
  return out;
}

TEST(JobTable, ALongNameGivesWayToTheFigures) {
  const std::string name(60, 'n');
  for (const std::size_t width : {40U, 80U, 100U, 120U}) {
    for (const std::string& line :
         lines(jobs_text({running(name, "01kd0000000ab"), running("b", "01kd0000000cd")}, false, {},
                         width, kNowWall))) {
      EXPECT_LE(display_width(line), width);
      if (!line.starts_with("NAME")) {
        EXPECT_THAT(line, HasSubstr("running  30/100  2.5000")) << width;
      }
    }
  }
  EXPECT_THAT(jobs_text({running(name, "01kd0000000ab")}, false, {}, 0, kNowWall), HasSubstr(name))
      << "a pipe gets all of it";
  EXPECT_THAT(jobs_text({running("b", "01kd0000000ab")}, false, {}, 80, kNowWall),
              ContainsRegex("\nb +0000ab +running"))
      << "and a short one is not cut";
}

TEST(JobTable, IdsAreShownByTheirEnd) {
  EXPECT_THAT(short_ids({"01kd5sme4p7aa", "01kd5sme4p8bb"}),
              testing::ElementsAre("e4p7aa", "e4p8bb"));
  EXPECT_THAT(short_ids({"01kd5sme4p7aa", "01kd5swe4p7aa"}),
              testing::ElementsAre("me4p7aa", "we4p7aa"))
      << "longer where two are alike";
  EXPECT_THAT(short_ids({"j1", "j2"}), testing::ElementsAre("j1", "j2"));
  EXPECT_THAT(short_ids({}), testing::IsEmpty());
  EXPECT_THAT(short_ids({"job-\xe2\x80\xae-of-another-kind"}),
              testing::ElementsAre("job-\xe2\x80\xae-of-another-kind"));
}

TEST(JobTable, WhyAJobWaitsStandsBehindIt) {
  v1::Job waits = job("waits", "01kd0000000ab", v1::JOB_PHASE_QUEUED);
  waits.set_waits_for("need 2 nodes with 8 devices, 1 fit");
  v1::Job behind = job("then", "01kd0000000cd", v1::JOB_PHASE_QUEUED);
  behind.mutable_resolved()->add_after("01kd0000000ab");
  behind.set_waits_for("waits for job 'waits'");
  v1::Job failed = job("broke", "01kd0000000ef", v1::JOB_PHASE_FAILED);
  failed.mutable_verdict()->set_reason("rank 3 ended with status 1");
  const auto shown = lines(
      jobs_text({behind, waits, running("runs", "01kd0000000gh"), failed}, false, {}, 0, kNowWall));
  ASSERT_EQ(shown.size(), 5U);
  EXPECT_THAT(shown[0], ContainsRegex("AGE +REASON$"));
  EXPECT_THAT(shown[1], ContainsRegex("then +0000cd +queued .* behind waits$"));
  EXPECT_THAT(shown[2], ContainsRegex("waits .* need 2 nodes with 8 devices, 1 fit$"));
  EXPECT_THAT(shown[3], ContainsRegex("runs .* 2m05s +0 +2h00m +-$"));
  EXPECT_THAT(shown[4], ContainsRegex("broke .* rank 3 ended with status 1$"));
  EXPECT_THAT(jobs_text({running("runs", "01kd0000000gh")}, false, {}, 0, kNowWall),
              Not(HasSubstr("REASON")))
      << "no column of nothing";
}

// Regression: a training that had hung for an hour was shown with its remaining time, as if it
// still advanced.
TEST(JobTable, HowLongNothingHasSteppedIsShown) {
  v1::Job one = running("runs", "01kd0000000gh");
  one.mutable_progress()->set_step_seconds(0.5);
  one.mutable_progress()->mutable_at()->set_seconds(kNow - 3);
  EXPECT_THAT(jobs_text({one}, false, {}, 0, kNowWall), ContainsRegex("2.5000 +35s +2m05s"));
  EXPECT_THAT(jobs_text({one}, false, {}, 0, kNowWall), Not(HasSubstr("REASON")));
  EXPECT_THAT(jobs_text({one}, true, {}, 0, kNowWall), ContainsRegex("SINCE(.|\n)* 3.0s "));
  one.mutable_progress()->mutable_at()->set_seconds(kNow - 100);
  EXPECT_THAT(jobs_text({one}, false, {}, 0, kNowWall),
              ContainsRegex("2.5000 +- +2m05s .* last step 1m40s ago"));
  one.mutable_progress()->clear_loss();
  one.mutable_progress()->set_loss_not_finite(true);
  EXPECT_THAT(jobs_text({one}, false, {}, 0, kNowWall), ContainsRegex("30/100 +NaN +-"));
}

TEST(JobTable, OwnersAreShownWhereThereAreSeveral) {
  v1::Job one = running("one", "01kd0000000gh"), two = running("two", "01kd0000000gk");
  one.set_owner("alice");
  two.set_owner("alice");
  EXPECT_THAT(jobs_text({one, two}, false, {}, 0, kNowWall), Not(HasSubstr("alice")));
  EXPECT_THAT(jobs_text({one, two}, true, {}, 0, kNowWall), ContainsRegex("OWNER(.|\n)* alice "));
  two.set_owner("bob\x1b[2J");
  EXPECT_THAT(jobs_text({one, two}, false, {}, 0, kNowWall), ContainsRegex("OWNER(.|\n)* alice"));
  EXPECT_THAT(jobs_text({one, two}, false, {}, 0, kNowWall), Not(HasSubstr("\x1b")));
}

TEST(JobTable, WideShowsWholeIdsLabelsAndDescription) {
  v1::Job one = running("runs", "01kd0000000gh");
  one.mutable_spec()->set_description("a sentence");
  (*one.mutable_spec()->mutable_labels())["team"] = "llm";
  (*one.mutable_spec()->mutable_labels())["phase"] = "sft";
  const std::string shown = jobs_text({one}, true, {}, 0, kNowWall);
  EXPECT_THAT(shown, HasSubstr("01kd0000000gh"));
  EXPECT_THAT(shown, HasSubstr("phase=sft,team=llm  a sentence"));
}

// What a rank or a submitter wrote must not control the terminal.
TEST(JobTable, HostileTextsAreHarmless) {
  v1::Job one = job("waits", "01kd0000000ab", v1::JOB_PHASE_QUEUED);
  one.set_waits_for("\x1b[2J");
  one.mutable_spec()->set_description("\x1b]0;x\a");
  EXPECT_THAT(jobs_text({one}, true, {}, 0, kNowWall), Not(HasSubstr("\x1b")));
}

}  // namespace
}  // namespace muster::render
