// Regression: a training that had hung for an hour was shown with its rate and its remaining time.
// A loss that was not a number was not shown at all.
#include "client/render/progress_text.h"

#include <gtest/gtest.h>

#include "client/render/text.h"

namespace muster::render {
namespace {

google::protobuf::Timestamp second(std::int64_t seconds) {
  google::protobuf::Timestamp made;
  made.set_seconds(seconds);
  return made;
}
WallTime moment(std::int64_t seconds) { return WallTime(std::chrono::seconds(seconds)); }

// Attempt 1 runs since 1000; step 20 of 40, at 1100, half a second for each step.
v1::Job stepping_job() {
  v1::Job job;
  job.set_phase(v1::JOB_PHASE_RUNNING);
  job.set_attempt(1);
  v1::Attempt& attempt = *job.add_attempts();
  attempt.set_number(1);
  *attempt.mutable_running_at() = second(1000);
  v1::Progress& progress = *job.mutable_progress();
  progress.set_attempt(1);
  progress.set_step(20);
  progress.set_total(40);
  progress.set_loss(2.5);
  progress.set_step_seconds(0.5);
  *progress.mutable_at() = second(1100);
  return job;
}

TEST(ProgressText, NoRateAndNoTimeLeftWhileNothingSteps) {
  const v1::Job job = stepping_job();
  EXPECT_TRUE(is_stepping(job, moment(1101)));
  EXPECT_EQ(eta_text(job, moment(1101)), "10s");
  EXPECT_EQ(step_age(job, moment(1160)), Duration(std::chrono::seconds(60)));
  EXPECT_FALSE(is_stepping(job, moment(1160)));
  EXPECT_EQ(eta_text(job, moment(1160)), "-");
  v1::Job slow = job;
  slow.mutable_progress()->set_step_seconds(60);
  EXPECT_TRUE(is_stepping(slow, moment(1160))) << "a step takes as long";
  v1::Job draining = job;
  draining.set_phase(v1::JOB_PHASE_DRAINING);
  EXPECT_FALSE(is_stepping(draining, moment(1101)));
  v1::Job unknown = job;
  unknown.mutable_progress()->clear_at();
  EXPECT_FALSE(step_age(unknown, moment(1101)));
  EXPECT_FALSE(is_stepping(unknown, moment(1101)));
  EXPECT_EQ(step_age(job, moment(1000)), Duration::zero()) << "another machine's clock";
}

TEST(ProgressText, WhatAnEarlierAttemptDidIsNotThisOnes) {
  v1::Job job = stepping_job();
  job.set_attempt(2);
  EXPECT_FALSE(step_age(job, moment(1101)));
  EXPECT_FALSE(is_stepping(job, moment(1101)));
  EXPECT_EQ(eta_text(job, moment(1101)), "-");
}

TEST(ProgressText, AStepsTimeIsTheMeanOfTheStepsThatWereMade) {
  v1::Job job = stepping_job();
  job.mutable_progress()->set_step_seconds(0);
  EXPECT_EQ(step_seconds(job), 5);
  job.mutable_attempts(0)->mutable_resume()->set_step(10);
  EXPECT_EQ(step_seconds(job), 10) << "it went on from step 10";
  job.mutable_attempts(0)->set_first_step(1);
  EXPECT_TRUE(went_back(job.attempts(0)));
  EXPECT_EQ(step_seconds(job), 5) << "it did not";
  job.mutable_attempts(0)->set_first_step(11);
  EXPECT_FALSE(went_back(job.attempts(0)));
}

TEST(ProgressText, ALossThatIsNoNumberIsShownAsThat) {
  v1::Progress progress = stepping_job().progress();
  EXPECT_EQ(step_text(progress), "20/40");
  EXPECT_EQ(loss_text(progress), "2.5000");
  EXPECT_EQ(loss_text(progress, 6), "2.500000");
  progress.clear_loss();
  EXPECT_EQ(loss_text(progress), "-");
  progress.set_loss_not_finite(true);
  EXPECT_EQ(loss_text(progress), "NaN");
  EXPECT_EQ(step_text(v1::Progress()), "-");
}

}  // namespace
}  // namespace muster::render
