#include "controller/api/convert.h"

#include <gtest/gtest.h>

#include "controller/api/event_text.h"
#include "controller/core/core.h"

namespace muster::controller {
namespace {

WallTime at(int second) { return WallTime(std::chrono::seconds(second)); }

// One job whose first attempt breaks and whose second one catches up, made by the fold itself.
class ConvertTest : public testing::Test {
 protected:
  ConvertTest() {
    v1::JobSpec spec;
    spec.set_name("one");
    spec.set_output_dir("/out/one");
    row(core::JobSubmitted{.job = job_, .spec = spec});
    place(1, std::nullopt);
    row(core::NodeStarted{.job = job_, .attempt = AttemptNo(1), .node = node_, .pids = {7}});
    row(core::CheckpointCompleted{
        .job = job_, .attempt = AttemptNo(1), .step = 100, .path = "/c", .bytes = 5, .shards = 2});
    row(core::RankExited{.job = job_,
                         .attempt = AttemptNo(1),
                         .node = node_,
                         .rank = RankNo(0),
                         .code = -1,
                         .signal = 9,
                         .evidence = "Killed",
                         .node_time = at(1),
                         .controller_time = at(1)});
    row(core::AttemptBroke{.job = job_,
                           .attempt = AttemptNo(1),
                           .cause = "rank 0",
                           .fault_time = at(1),
                           .detected_at = at(1)});
    row(core::NodeSwept{.job = job_, .attempt = AttemptNo(1), .node = node_});
    row(core::AttemptEnded{.job = job_,
                           .attempt = AttemptNo(1),
                           .verdict = {.cls = core::FailureClass::Signal,
                                       .node = node_,
                                       .rank = RankNo(0),
                                       .reason = "killed by signal 9"},
                           .charged = true,
                           .best_step = 120});
    place(2, core::ResumePoint{.attempt = AttemptNo(1), .step = 100, .path = "/c"});
  }
  void row(core::EventBody body) {
    const journal::Row made{
        .index = JournalIndex(++index_),
        .event = {.at = at(static_cast<int>(100 + index_)), .body = std::move(body)}};
    core::apply(ledger_, made.index, made.event);
    events_.push_back(describe(made, ledger_));
  }
  void place(std::uint32_t attempt, std::optional<core::ResumePoint> resume) {
    row(core::AttemptPlaced{.job = job_,
                            .attempt = AttemptNo(attempt),
                            .nodes = {{.node = node_,
                                       .address = "127.0.0.1",
                                       .devices = {0},
                                       .first_rank = RankNo(0),
                                       .rank_count = 1,
                                       .interface = "lo",
                                       .physical_ids = {4},
                                       .device_ips = {"192.168.0.4"}}},
                            .master_port = 20'000,
                            .resume = std::move(resume),
                            .table_sha256 = "abc"});
  }
  const JobId job_{"0000000000001"};
  const NodeName node_{"n1"};
  core::Ledger ledger_;
  core::Presence presence_;
  std::uint64_t index_ = 0;
  std::vector<v1::Event> events_;
};

// The last heartbeat may arrive before the last lines, and a restarted controller has received no
// heartbeat.
TEST_F(ConvertTest, TheLastStepIsTheOneThatExitsTell) {
  core::AttemptRecord& last = ledger_.jobs.at(job_).attempts.back();
  core::RankExited exit;
  exit.step = exit.total = 200;
  last.parts.front().exits[RankNo(1)] = exit;
  v1::Job shown = to_v1(ledger_.jobs.at(job_), presence_, "/cluster", Detail::Full);
  EXPECT_EQ(shown.progress().attempt(), last.number.value);
  EXPECT_EQ(shown.progress().step(), 200);
  EXPECT_EQ(shown.progress().total(), 200);
  EXPECT_EQ(shown.progress().reporting_rank(), 1u);
  core::RankSeen& seen = presence_.attempts[{job_, last.number}].ranks[RankNo(0)];
  seen = {.step = 160, .total = 200, .loss = 1.5, .has_loss = true};
  shown = to_v1(ledger_.jobs.at(job_), presence_, "/cluster", Detail::Full);
  EXPECT_EQ(shown.progress().step(), 200);
  EXPECT_FALSE(shown.progress().has_loss()) << "that of step 160";
  seen.step = 200;
  EXPECT_EQ(to_v1(ledger_.jobs.at(job_), presence_, "/cluster", Detail::Full).progress().loss(),
            1.5);
  seen = {.step = -1};
  last.parts.front().exits[RankNo(1)].step = 0;
  shown = to_v1(ledger_.jobs.at(job_), presence_, "/cluster", Detail::Full);
  EXPECT_TRUE(shown.progress().has_step()) << "step 0, as the exit has it";
  EXPECT_EQ(shown.progress().reporting_rank(), 1u);
  last.parts.front().exits.clear();
  EXPECT_FALSE(
      to_v1(ledger_.jobs.at(job_), presence_, "/cluster", Detail::Full).progress().has_step());
}

TEST_F(ConvertTest, AJobIsShownWithItsIncident) {
  core::AttemptSeen& seen = presence_.attempts[{job_, AttemptNo(2)}];
  seen.ranks[RankNo(0)] = {.step = -1};
  seen.ranks[RankNo(1)] = {.step = 105, .total = 200, .loss = 1.5, .has_loss = true};
  presence_.attempts[{job_, AttemptNo(1)}].ranks[RankNo(0)] = {.step = 120};
  presence_.attempts[{JobId("0000000000002"), AttemptNo(1)}].ranks[RankNo(0)] = {.step = 1};
  const v1::Job full = to_v1(ledger_.jobs.at(job_), presence_, "/cluster", Detail::Full);
  EXPECT_EQ(full.phase(), v1::JOB_PHASE_LAUNCHING);
  EXPECT_EQ(full.attempt(), 2u);
  EXPECT_EQ(full.restarts(), 1u);
  EXPECT_EQ(full.attempts_size(), 2);
  EXPECT_EQ(full.output_dir(), "/out/one");
  EXPECT_EQ(full.attempts(1).table_sha256(), "abc");
  EXPECT_EQ(full.attempts(1).nodes(0).interface(), "lo");
  ASSERT_EQ(full.attempts(1).nodes(0).physical_ids_size(), 1);
  EXPECT_EQ(full.attempts(1).nodes(0).physical_ids(0), 4u);
  ASSERT_EQ(full.attempts(1).nodes(0).device_ips_size(), 1);
  EXPECT_EQ(full.attempts(1).nodes(0).device_ips(0), "192.168.0.4");
  EXPECT_EQ(full.verdict().reason(), "killed by signal 9");
  // The newest attempt with a heartbeat, and its lowest rank that prints steps.
  EXPECT_EQ(full.progress().attempt(), 2u);
  EXPECT_EQ(full.progress().step(), 105);
  EXPECT_EQ(full.progress().reporting_rank(), 1u);
  ASSERT_EQ(full.incidents_size(), 1);
  const v1::Incident& incident = full.incidents(0);
  EXPECT_EQ(incident.fault().seconds(), 1);
  EXPECT_TRUE(incident.has_swept());
  EXPECT_TRUE(incident.has_placed());
  EXPECT_FALSE(incident.has_started());
  EXPECT_FALSE(incident.has_caught_up());
  EXPECT_EQ(incident.resumed_from(), 100);
  EXPECT_TRUE(full.verdict().has_rank()) << "rank 0";
  const v1::Job listed = to_v1(ledger_.jobs.at(job_), presence_, "/cluster", Detail::List);
  EXPECT_EQ(listed.attempts_size(), 1);
  EXPECT_EQ(listed.attempts(0).number(), 2u);
  EXPECT_EQ(listed.checkpoints_size(), 0);
}

// Regression: eighteen jobs had a megabyte of environment each, and nobody could list jobs any
// more.
TEST_F(ConvertTest, AListShowsOfTheSpecWhatItsRowNeeds) {
  core::JobRecord job = ledger_.jobs.at(job_);
  job.spec.set_engine("torch");
  job.spec.mutable_recovery()->set_max_restarts(7);
  (*job.spec.mutable_runtime()->mutable_env())["BIG"] = std::string(960 << 10, 'x');
  job.attempts.back().parts.front().exits[RankNo(0)].evidence = std::string(1'000, 'e');
  const v1::Job listed = to_v1(job, presence_, "/cluster", Detail::List);
  EXPECT_EQ(listed.spec().name(), "one");
  EXPECT_EQ(listed.spec().engine(), "torch");
  EXPECT_EQ(listed.spec().recovery().max_restarts(), 7u);
  EXPECT_EQ(listed.attempts(0).nodes_size(), 1);
  EXPECT_LT(listed.ByteSizeLong(), 1'000u);
  const v1::Job full = to_v1(job, presence_, "/cluster", Detail::Full);
  EXPECT_GT(full.ByteSizeLong(), 960u << 10);
  EXPECT_EQ(full.attempts(1).exits_size(), 1);
}

TEST_F(ConvertTest, CheckpointsComeInPagesNewestFirst) {
  core::JobRecord job = ledger_.jobs.at(job_);
  const core::CheckpointRecord one = job.checkpoints.front();
  for (std::int64_t step = 101; step < 2'600; ++step) {
    job.checkpoints.push_back(one);
    job.checkpoints.back().step = step;
  }
  std::int64_t below = 2'600;
  std::vector<int> sizes;
  std::uint32_t before = 0;
  do {
    v1::GetJobResponse page;
    fill(page, job, presence_, "/cluster", before);
    EXPECT_EQ(page.checkpoints_total(), 2'500u);
    sizes.push_back(page.job().checkpoints_size());
    ASSERT_GT(sizes.back(), 0);
    EXPECT_EQ(page.job().checkpoints(sizes.back() - 1).step(), below - 1) << "the pages meet";
    below = page.job().checkpoints(0).step();
    before = page.checkpoints_first();
  } while (before != 0);
  EXPECT_EQ(sizes, (std::vector<int>{1'000, 1'000, 500}));
  EXPECT_EQ(below, 100);
}

TEST_F(ConvertTest, TheIncidentIsClosedByTheAttemptThatCaughtUp) {
  row(core::NodeStarted{.job = job_, .attempt = AttemptNo(2), .node = node_, .pids = {8}});
  row(core::FirstStep{.job = job_, .attempt = AttemptNo(2), .node = node_, .step = 101});
  row(core::CaughtUp{.job = job_, .attempt = AttemptNo(2), .step = 120});
  const v1::Job full = to_v1(ledger_.jobs.at(job_), presence_, "/cluster", Detail::Full);
  ASSERT_EQ(full.incidents_size(), 1);
  EXPECT_TRUE(full.incidents(0).has_started());
  EXPECT_TRUE(full.incidents(0).has_first_step());
  EXPECT_TRUE(full.incidents(0).has_caught_up());
}

// Regression: its timeline showed "first step" and "caught up" as if the training had resumed.
TEST_F(ConvertTest, AnAttemptThatDidNotGoOnFromWhereItWasToSaysSo) {
  row(core::NodeStarted{.job = job_, .attempt = AttemptNo(2), .node = node_, .pids = {8}});
  row(core::FirstStep{.job = job_, .attempt = AttemptNo(2), .node = node_, .step = 2});
  EXPECT_EQ(events_.back().type(), "first-step");
  EXPECT_EQ(events_.back().text(),
            "attempt 2 did not go on from step 100: began at 2; the program has to load what is in "
            "${resume.dir} (MUSTER_RESUME_DIR)");
  row(core::CaughtUp{.job = job_, .attempt = AttemptNo(2), .step = 120});
  EXPECT_EQ(events_.back().text(), "step 120 reached again, trained anew from step 2 on");
  const v1::Job full = to_v1(ledger_.jobs.at(job_), presence_, "/cluster", Detail::Full);
  EXPECT_EQ(full.incidents(0).began_at(), 2);
  EXPECT_EQ(full.attempts(1).first_step(), 2);
  EXPECT_FALSE(full.attempts(0).has_first_step());
}

TEST_F(ConvertTest, NotesAreEventsAndAPartOfTheirAttempt) {
  row(core::AttemptNoted{.job = job_,
                         .attempt = AttemptNo(2),
                         .note = core::Note::LossNotFinite,
                         .node = node_,
                         .step = 7});
  EXPECT_EQ(events_.back().type(), "loss-not-finite");
  EXPECT_EQ(events_.back().text(), "the loss is not a number (NaN or infinite) at step 7");
  row(core::AttemptNoted{.job = job_,
                         .attempt = AttemptNo(2),
                         .note = core::Note::UnknownFiles,
                         .node = node_,
                         .text = "step_20.pt"});
  EXPECT_EQ(events_.back().type(), "unknown-files");
  EXPECT_EQ(events_.back().text(),
            "'step_20.pt' is in ${save.dir}, and nothing that checkpoint.layout knows: no "
            "attempt goes on from it");
  const v1::Job full = to_v1(ledger_.jobs.at(job_), presence_, "/cluster", Detail::Full);
  EXPECT_EQ(full.attempts(1).unknown_file(), "step_20.pt");
  EXPECT_EQ(full.attempts(0).unknown_file(), "");
}

// Regression: a script with one directory for --save and --load was run again, and began with
// random weights. The only sign was a line in the script's log.
TEST_F(ConvertTest, AScriptsLaunchNamesTheEarlierJobThatItBeginsWithout) {
  core::JobRecord& job = ledger_.jobs.at(job_);
  core::AttemptRecord& last = job.attempts.back();
  last.saved = {{.named_dir = "/data/none", .job = JobId("0000000000003"), .path = "", .step = 0},
                {.named_dir = "/data/ckpt",
                 .job = JobId("0000000000002"),
                 .path = "/out/2/iter_20",
                 .step = 20}};
  const auto launched = [&](const char* save) {
    row(core::ScriptLaunched{.job = job_,
                             .attempt = AttemptNo(2),
                             .node = node_,
                             .first_rank = 0,
                             .ranks = 1,
                             .save = save});
    EXPECT_EQ(events_.back().type(), "script-launched");
    return events_.back().text();
  };
  const std::string plain =
      "the script would save in '/data/ckpt'; muster has it save in a directory of attempt 2's own";
  EXPECT_EQ(launched("/data/ckpt"), plain) << "it was given a checkpoint of its own job";
  last.resume.reset();
  EXPECT_EQ(launched("/data/ckpt"),
            plain +
                ". Job 0000000000002 would have saved there, too: a launch with this directory in "
                "both --save and --load begins without that job's checkpoints; to go on from them "
                "write start: {from: 'job:0000000000002', as: resume}");
  for (const char* other : {"/data/none", "/data/other"})
    EXPECT_EQ(launched(other).find("would have saved there"), std::string::npos) << other;
  job.spec.mutable_start()->set_from("job:0000000000004");
  EXPECT_EQ(launched("/data/ckpt"), plain) << "the spec says where to start";
}

TEST_F(ConvertTest, AStartThatFailedNamesItsStep) {
  core::NodeStartFailed failed{.job = job_,
                               .attempt = AttemptNo(2),
                               .node = node_,
                               .why = core::StartFailure::Launch,
                               .text = "git: patch failed"};
  row(failed);
  EXPECT_EQ(events_.back().type(), "node-start-failed");
  EXPECT_EQ(events_.back().text(), "node 'n1' could not start (launch): git: patch failed")
      << "an agent that does not know the step";
  failed.step = "code";
  row(failed);
  EXPECT_EQ(events_.back().text(),
            "node 'n1' could not start (launch) in step 'code': git: patch failed");
  for (const Detail detail : {Detail::Full, Detail::List}) {
    const v1::Job shown = to_v1(ledger_.jobs.at(job_), presence_, "/cluster", detail);
    EXPECT_EQ(shown.attempts().rbegin()->nodes(0).failed_start_step(), "code");
  }
  const v1::Job full = to_v1(ledger_.jobs.at(job_), presence_, "/cluster", Detail::Full);
  EXPECT_EQ(full.attempts(0).nodes(0).failed_start_step(), "") << "it started";
}

TEST_F(ConvertTest, AnEndWhoseSuccessIsUnknownSaysSo) {
  core::RankExited exited{.job = job_, .attempt = AttemptNo(2), .node = node_, .rank = RankNo(0)};
  exited.success_unknown = true;
  row(exited);
  EXPECT_EQ(
      events_.back().text(),
      "rank 0 on node 'n1' ended with status 0, and whether it had success could not be read");
}

TEST_F(ConvertTest, EventsSayTheirSentenceAndThePhaseAfterThem) {
  EXPECT_EQ(events_[0].type(), "job-submitted");
  EXPECT_EQ(events_[0].phase(), v1::JOB_PHASE_QUEUED);
  EXPECT_EQ(events_[1].type(), "attempt-placed");
  EXPECT_EQ(events_[1].text(),
            "attempt 1 placed: 1 rank on n1; from the beginning; rank table abc");
  EXPECT_EQ(events_[1].phase(), v1::JOB_PHASE_LAUNCHING);
  EXPECT_FALSE(events_[1].has_rank());
  EXPECT_EQ(events_[4].type(), "rank-exited");
  EXPECT_TRUE(events_[4].has_rank());
  EXPECT_EQ(events_[4].rank(), 0u);
  EXPECT_EQ(events_[4].node(), "n1");
  EXPECT_NE(events_[4].text().find("Killed"), std::string::npos);
  EXPECT_EQ(events_[7].type(), "attempt-ended");
  EXPECT_EQ(events_[8].text(),
            "attempt 2 placed: 1 rank on n1; resumes from step 100; rank table abc");
  for (const v1::Event& event : events_) {
    EXPECT_EQ(event.job_name(), "one");
    EXPECT_GT(event.index(), 0u);
  }
}

}  // namespace
}  // namespace muster::controller
