// The block that `muster run` and `muster watch` draw, row by row.
#include "client/render/live_view.h"

#include <gtest/gtest.h>

namespace muster::render {
namespace {

using namespace std::chrono_literals;

const WallTime kSubmitted{std::chrono::hours(24 * 365)};

google::protobuf::Timestamp stamp_at(Duration after) {
  google::protobuf::Timestamp stamp;
  const auto all = (kSubmitted + after).time_since_epoch();
  const auto seconds = std::chrono::floor<std::chrono::seconds>(all);
  stamp.set_seconds(seconds.count());
  stamp.set_nanos(static_cast<std::int32_t>((all - seconds).count()));
  return stamp;
}

v1::Progress reading_of(std::uint32_t attempt, std::int64_t step, double loss) {
  v1::Progress one;
  one.set_attempt(attempt);
  one.set_step(step);
  one.set_total(300);
  one.set_loss(loss);
  return one;
}

v1::Job job_in(v1::JobPhase phase, std::uint32_t attempt) {
  v1::Job one;
  one.mutable_spec()->set_name("gpt");
  one.set_phase(phase);
  one.set_attempt(attempt);
  *one.mutable_submitted_at() = stamp_at(0s);
  for (std::uint32_t number = 1; number <= attempt; ++number) {
    v1::Attempt& made = *one.add_attempts();
    made.set_number(number);
    for (const char* name : {"n0", "n1"}) {
      v1::NodePlacement& node = *made.add_nodes();
      node.set_node(name);
      node.set_rank_count(2);
    }
  }
  return one;
}

class LiveViewTest : public testing::Test {
 protected:
  [[nodiscard]] std::vector<std::string> rows(Duration now, std::size_t width = 80) const {
    return view_.lines({}, width, kSubmitted + now);
  }
  void check_widths(Duration now) const {
    for (std::size_t width = 20; width <= 200; ++width) {
      for (const std::string& row : rows(now, width)) EXPECT_LE(display_width(row), width) << row;
    }
  }
  LiveView view_;
};

TEST_F(LiveViewTest, SaysHowItStands) {
  v1::Job running = job_in(v1::JOB_PHASE_RUNNING, 1);
  v1::Checkpoint& saved = *running.add_checkpoints();
  saved.set_step(140);
  *saved.mutable_at() = stamp_at(66s);
  v1::Checkpoint& quarantined = *running.add_checkpoints();
  quarantined.set_step(150);
  quarantined.set_quarantined(true);
  view_.set_job(running);
  view_.set_progress(reading_of(1, 100, 4.8121), kSubmitted + 60s);
  view_.set_progress(reading_of(1, 152, 2.3145), kSubmitted + 70s);
  EXPECT_EQ(
      rows(72500ms),
      (std::vector<std::string>{
          "gpt  running  attempt 1  4 ranks on n0 n1  1m12s",
          "████████████████████▎░░░░░░░░░░░░░░░░░░░  152/300  50%  5.2 steps/s  ETA 28s",
          "loss 2.3145  █▁  from 4.8121", "checkpoint of step 140, 6s ago  last step 2s ago"}));
  EXPECT_EQ(rows(72500ms, 40),
            (std::vector<std::string>{"gpt  running  attempt 1", "4 ranks on n0 n1  1m12s",
                                      "█████████████▏░░░░░░░░░░░░  152/300  50%",
                                      "5.2 steps/s  ETA 28s", "loss 2.3145  █▁  from 4.8121",
                                      "checkpoint of step 140, 6s ago", "last step 2s ago"}));
  check_widths(72500ms);
}

// Regression: the step, the rate and the remaining time of the broken attempt stayed on the screen
// while nothing ran.
TEST_F(LiveViewTest, ARestartTakesThePlaceOfStaleNumbers) {
  view_.set_job(job_in(v1::JOB_PHASE_RUNNING, 1));
  view_.set_progress(reading_of(1, 20, 4.0), kSubmitted + 10s);
  view_.set_progress(reading_of(1, 35, 3.0), kSubmitted + 20s);

  v1::Job broken = job_in(v1::JOB_PHASE_DRAINING, 1);
  broken.set_restarts(1);
  *broken.mutable_progress() = reading_of(1, 35, 3.0);
  v1::Incident& incident = *broken.add_incidents();
  incident.set_attempt(1);
  *incident.mutable_detected() = stamp_at(21s);
  view_.set_job(broken);
  EXPECT_EQ(rows(22200ms),
            (std::vector<std::string>{"gpt  draining  attempt 1  1 restart  4 ranks on n0 n1  22s",
                                      "restarting, 1.2s", "loss  █▁  from 4.0000"}));

  v1::Job placed = job_in(v1::JOB_PHASE_LAUNCHING, 2);
  placed.set_restarts(1);
  *placed.mutable_progress() = reading_of(1, 35, 3.0);
  *placed.add_incidents() = incident;
  *placed.mutable_incidents(0)->mutable_placed() = stamp_at(22s);
  placed.mutable_incidents(0)->set_resumed_from(20);
  view_.set_job(placed);
  view_.set_progress(reading_of(1, 36, 2.9), kSubmitted + 22s);  // a late report
  EXPECT_EQ(rows(24s)[1], "restarting, from step 20, 3.0s");
  EXPECT_EQ(rows(24s).size(), 3) << "nor how long ago its last step was";
  check_widths(24s);

  view_.set_phase(v1::JOB_PHASE_RUNNING, 2);
  EXPECT_EQ(rows(25s)[1], "restarting, from step 20, 4.0s") << "until a step is there";
  view_.set_progress(reading_of(2, 21, 3.9), kSubmitted + 26s);
  EXPECT_TRUE(rows(26s)[1].ends_with("  21/300  7%")) << rows(26s)[1];
  EXPECT_EQ(rows(26s)[2].substr(0, 11), "loss 3.9000");
  placed.mutable_incidents(0)->clear_resumed_from();
  LiveView other;
  other.set_job(placed);
  EXPECT_EQ(other.lines({}, 80, kSubmitted + 24s)[1], "restarting, from the beginning, 3.0s");
}

TEST_F(LiveViewTest, NoRateWhereNothingSteps) {
  view_.set_job(job_in(v1::JOB_PHASE_RUNNING, 1));
  view_.set_progress(reading_of(1, 20, 4.0), kSubmitted + 10s);
  view_.set_progress(reading_of(1, 35, 3.0), kSubmitted + 20s);
  EXPECT_NE(rows(25s)[1].find("1.5 steps/s"), std::string::npos);
  const auto stalled = rows(120s);
  EXPECT_TRUE(stalled[1].ends_with("  35/300  11%")) << stalled[1];
  EXPECT_EQ(stalled.back(), "last step 1m40s ago");
}

TEST_F(LiveViewTest, ALossThatIsNoNumber) {
  view_.set_job(job_in(v1::JOB_PHASE_RUNNING, 1));
  view_.set_progress(reading_of(1, 20, 4.0), kSubmitted + 10s);
  v1::Progress gone = reading_of(1, 21, 0);
  gone.clear_loss();
  gone.set_loss_not_finite(true);
  view_.set_progress(gone, kSubmitted + 11s);
  EXPECT_TRUE(rows(12s)[2].starts_with("loss NaN  ")) << rows(12s)[2];
}

// A user who begins to watch a job that has not stepped for an hour must not see that it stepped
// just now.
TEST_F(LiveViewTest, TheFirstReadingMayBeOld) {
  view_.set_job(job_in(v1::JOB_PHASE_RUNNING, 1));
  v1::Progress old = reading_of(1, 35, 3.0);
  old.set_step_seconds(0.5);
  *old.mutable_at() = stamp_at(10s);
  view_.set_progress(old, kSubmitted + 3700s);
  EXPECT_EQ(rows(3700s).back(), "last step 1h01m ago");
  EXPECT_EQ(rows(3700s)[1].find("steps/s"), std::string::npos);
}

TEST_F(LiveViewTest, BeforeTheFirstStepAndBehindTheLast) {
  view_.set_job(job_in(v1::JOB_PHASE_QUEUED, 0));
  EXPECT_EQ(rows(5s), (std::vector<std::string>{"gpt  queued  5s", "no step yet"}));
  v1::Job ended = job_in(v1::JOB_PHASE_SUCCEEDED, 1);
  *ended.mutable_progress() = reading_of(1, 300, 1.5);
  *ended.mutable_ended_at() = stamp_at(90s);
  v1::Checkpoint& saved = *ended.add_checkpoints();
  saved.set_step(300);
  view_.set_job(ended);
  view_.set_progress(ended.progress(), kSubmitted + 100s);
  const auto shown = rows(100s);
  EXPECT_EQ(shown[0], "gpt  succeeded  attempt 1  4 ranks on n0 n1  1m30s");
  EXPECT_TRUE(shown[1].ends_with("  300/300  100%"));
  EXPECT_EQ(shown[3], "checkpoint of step 300");
}

}  // namespace
}  // namespace muster::render
