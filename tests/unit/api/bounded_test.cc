// Nothing that is stored makes an answer unreadable. 4 MiB is what a gRPC client accepts by
// default, and run, watch, show and ckpt all begin with GetJob.
#include "controller/api/bounded.h"

#include <gtest/gtest.h>

#include "common/base/utf8.h"
#include "controller/api/convert.h"
#include "controller/api/event_text.h"
#include "controller/api/job_page.h"
#include "muster/v1/node_service.pb.h"

namespace muster::controller {
namespace {

constexpr std::size_t kClientTakes = 4 << 20;
constexpr std::uint32_t kNodes = 128, kRanksANode = 8;

NodeName node_name(std::uint32_t node) {
  return NodeName("machine-" + std::to_string(1000 + node));
}

// All ranks ended badly, each with a line of evidence; rank 77 was the first.
core::AttemptRecord large_attempt(std::uint32_t number) {
  core::AttemptRecord attempt;
  attempt.number = AttemptNo(number);
  attempt.broke_at = attempt.ended_at = WallTime(std::chrono::seconds(number));
  attempt.verdict = core::Verdict{.cls = core::FailureClass::Signal,
                                  .node = node_name(9),
                                  .rank = RankNo(77),
                                  .reason = "killed " + std::to_string(number),
                                  .evidence = "x"};
  for (std::uint32_t node = 0; node < kNodes; ++node) {
    core::NodePart part;
    part.placed = {.node = node_name(node),
                   .boot_id = BootId("5f0c3a9e-0000-4000-8000-000000000000"),
                   .instance = InstanceId("instance-of-some-length"),
                   .address = "10.0.0.1",
                   .devices = {0, 1, 2, 3, 4, 5, 6, 7},
                   .first_rank = RankNo(node * kRanksANode),
                   .rank_count = kRanksANode};
    part.placed.device_ips.assign(8, "192.168.100.100");
    if (node == 9)
      part.start_failed = core::NodeStartFailed{.node = part.placed.node, .step = "directories"};
    for (std::uint32_t i = 0; i < kRanksANode; ++i) {
      const RankNo rank(node * kRanksANode + i);
      part.exits[rank] = {.node = part.placed.node,
                          .rank = rank,
                          .code = -1,
                          .signal = 9,
                          .stop_requested = rank.value > 100,
                          .evidence = std::string(1'024, 'e')};
      part.exits[rank].controller_time =
          WallTime(std::chrono::seconds(rank.value == 77 ? 1 : 5 + rank.value));
    }
    attempt.parts.push_back(std::move(part));
  }
  return attempt;
}

core::JobRecord large_job(std::uint32_t attempts) {
  core::JobRecord job;
  job.id = JobId("0000000000001");
  job.spec.set_name("large");
  job.spec.set_output_dir("/out");
  for (std::uint32_t i = 1; i <= attempts; ++i) job.attempts.push_back(large_attempt(i));
  return job;
}

v1::GetJobResponse answer(const core::JobRecord& job) {
  v1::GetJobResponse response;
  fill(response, job, core::Presence(), "/cluster", 0);
  return response;
}

// Regression: 1,024 ranks and 60 restarts were 70 MiB, and nobody could show or follow the job any
// more.
TEST(Bounded, AJobOfManyRanksAndAttemptsStaysReadable) {
  core::JobRecord job = large_job(60);
  (*job.spec.mutable_runtime()->mutable_env())["BIG"] = std::string((1 << 20) - 200, 'x');
  for (int i = 0; i < 1'500; ++i)
    job.checkpoints.push_back(
        {.attempt = AttemptNo(1), .step = i, .path = "/out/" + std::string(600, 'p')});
  const v1::GetJobResponse response = answer(job);
  const v1::Job& shown = response.job();
  EXPECT_LT(response.ByteSizeLong(), kClientTakes);
  EXPECT_EQ(shown.attempt(), 60u);
  EXPECT_EQ(shown.restarts(), 59u);
  ASSERT_EQ(shown.attempts_size(), 60);
  ASSERT_EQ(shown.incidents_size(), 60);
  EXPECT_EQ(shown.attempts(59).exits_size(), 1'024) << "the newest is whole";
  EXPECT_EQ(shown.attempts(59).nodes(3).device_ips_size(), 8);
  const v1::Attempt& oldest = shown.attempts(0);
  EXPECT_EQ(oldest.number(), 1u);
  EXPECT_EQ(oldest.verdict().reason(), "killed 1");
  ASSERT_EQ(oldest.exits_size(), 4);
  EXPECT_EQ(oldest.exits(0).rank(), 77u) << "the verdict's";
  EXPECT_EQ(oldest.exits(1).rank(), 0u) << "then the first";
  ASSERT_EQ(oldest.nodes_size(), static_cast<int>(kNodes)) << "what show prints of it";
  EXPECT_EQ(oldest.nodes(127).node(), node_name(127).str());
  EXPECT_EQ(oldest.nodes(127).first_rank(), 1'016u);
  EXPECT_EQ(oldest.nodes(9).failed_start_step(), "directories");
  EXPECT_TRUE(oldest.nodes(0).boot_id().empty()) << "the mark of a brief one";
  EXPECT_EQ(shown.incidents(0).attempt(), 1u);
  EXPECT_EQ(shown.verdict().reason(), "killed 60");
  EXPECT_EQ(response.checkpoints_total(), 1'500u);
  EXPECT_GT(shown.checkpoints_size(), 300);
  EXPECT_EQ(response.checkpoints_first(),
            1'500u - static_cast<std::uint32_t>(shown.checkpoints_size()));
  EXPECT_EQ(shown.checkpoints(shown.checkpoints_size() - 1).step(), 1'499);
}

TEST(Bounded, AnAttemptThatFitsIsWhole) {
  const v1::GetJobResponse response = answer(large_job(1));
  ASSERT_EQ(response.job().attempts_size(), 1);
  ASSERT_EQ(response.job().attempts(0).exits_size(), 1'024);
  for (int i = 0; i < 1'024; ++i)
    EXPECT_EQ(response.job().attempts(0).exits(i).rank(), static_cast<std::uint32_t>(i));
  EXPECT_FALSE(response.job().attempts(0).nodes(0).boot_id().empty());
}

TEST(Bounded, ThousandsOfAttemptsAreShownByTheirNewest) {
  core::JobRecord job = large_job(1);
  core::AttemptRecord small = job.attempts.front();
  small.parts.clear();
  for (std::uint32_t i = 2; i <= 20'000; ++i) {
    small.number = AttemptNo(i);
    small.verdict->reason = std::string(i % 2 == 0 ? 3'000 : 10, 'r');
    job.attempts.push_back(small);
  }
  const v1::GetJobResponse response = answer(job);
  EXPECT_LT(response.ByteSizeLong(), kClientTakes);
  EXPECT_EQ(response.job().attempt(), 20'000u);
  EXPECT_GT(response.job().attempts_size(), 100);
  EXPECT_LE(response.job().attempts_size(), 1'000);
  EXPECT_EQ(response.job().attempts(response.job().attempts_size() - 1).number(), 20'000u);
  EXPECT_EQ(response.job().attempts(0).number(),
            20'001u - static_cast<std::uint32_t>(response.job().attempts_size()))
      << "without a gap";
}

// Regression: a reason of 12 MiB was accepted. Afterwards nobody could read any list of jobs, the
// job, or its events.
TEST(Bounded, WhatAnOldJournalHoldsIsShownCut) {
  core::JobRecord job = large_job(2);
  job.phase = core::JobPhase::Cancelled;
  job.verdict = core::Verdict{.cls = core::FailureClass::Operator,
                              .reason = "cancelled: " + std::string(12 << 20, 'r')};
  job.attempts.back().verdict = job.verdict;
  JobPage page(10);
  page.add(to_v1(job, core::Presence(), "/cluster", Detail::List));
  v1::ListJobsResponse listed;
  page.fill(listed);
  EXPECT_LT(listed.ByteSizeLong(), 1u << 20);
  EXPECT_EQ(listed.jobs(0).verdict().reason().size(), kShownBytesMost);
  EXPECT_TRUE(listed.jobs(0).verdict().reason().starts_with("cancelled: rrr"));
  EXPECT_TRUE(listed.jobs(0).verdict().reason().ends_with("r..."));
  EXPECT_LT(answer(job).ByteSizeLong(), kClientTakes);
  const core::Ledger ledger;
  for (const core::EventBody& body :
       {core::EventBody(core::CancelRequested{.job = job.id, .reason = std::string(12 << 20, 'r')}),
        core::EventBody(
            core::NodeDeclaredDead{.node = node_name(1), .reason = std::string(12 << 20, 'r')}),
        core::EventBody(core::JobEnded{
            .job = job.id, .outcome = core::Outcome::Cancelled, .verdict = job.verdict})}) {
    const v1::Event event =
        describe(journal::Row{.index = JournalIndex(1), .event = {.at = {}, .body = body}}, ledger);
    EXPECT_LT(event.ByteSizeLong(), 4'096u) << event.type();
    EXPECT_GT(event.ByteSizeLong(), 2'000u) << event.type();
  }
}

TEST(Bounded, ARowOfAListHasItsNodesAsFarAsTheyFit) {
  core::JobRecord job = large_job(1);
  EXPECT_EQ(to_v1(job, core::Presence(), "/c", Detail::List).attempts(0).nodes(0).devices_size(),
            8);
  core::NodePart part = job.attempts[0].parts[0];
  part.placed.device_ips.assign(1'024, "192.168.100.100");
  job.attempts[0].parts.assign(500, part);
  const v1::Job names = to_v1(job, core::Presence(), "/c", Detail::List);
  EXPECT_EQ(names.attempts(0).nodes_size(), 500);
  EXPECT_EQ(names.attempts(0).nodes(499).device_ips_size(), 0);
  part.placed.device_ips.clear();
  part.exits.clear();
  job.attempts[0].parts.assign(65'536, part);
  const v1::Job some = to_v1(job, core::Presence(), "/c", Detail::List);
  EXPECT_GT(some.attempts(0).nodes_size(), 1'000);
  EXPECT_LT(some.ByteSizeLong(), 1u << 20);
}

TEST(Bounded, ABriefNodeKeepsWhatAListShows) {
  v1::Node node;
  node.set_name("n1");
  node.mutable_inventory()->set_address("10.0.0.1");
  (*node.mutable_inventory()->mutable_labels())["big"] = std::string(1 << 20, 'x');
  node.mutable_inventory()->add_findings(std::string(1 << 20, 'x'));
  v1::Device& device = *node.mutable_inventory()->add_devices();
  device.set_id(3);
  device.set_type("ascend910b");
  device.set_model(std::string(1 << 20, 'x'));
  v1::DeviceReading& reading = *node.add_readings();
  reading.set_id(3);
  reading.set_health(v1::DEVICE_HEALTH_BAD);
  reading.set_health_text(std::string(1 << 20, 'x'));
  for (int i = 0; i < 1'000; ++i) reading.add_occupants()->set_pid(7);
  EXPECT_LT(shrink(node, NodeDetail::Brief), 200u);
  EXPECT_EQ(node.inventory().devices(0).type(), "ascend910b");
  EXPECT_EQ(node.readings(0).health(), v1::DEVICE_HEALTH_BAD);
  EXPECT_EQ(node.readings(0).occupants_size(), 1);
  v1::Node least = node;
  EXPECT_LT(shrink(node, NodeDetail::WithoutReadings), 100u);
  EXPECT_EQ(node.inventory().devices(0).type(), "ascend910b");
  EXPECT_LT(shrink(least, NodeDetail::Least), 50u);
  EXPECT_EQ(least.name(), "n1");
}

TEST(Bounded, TwoThousandNodesOf16DevicesAreListedWithTheirReadings) {
  v1::Node node;
  node.set_name("rack-17-node-03.cluster");
  node.set_instance(std::string(32, 'i'));
  node.set_boot_id(std::string(36, 'b'));
  node.set_version("1.2.3");
  node.mutable_last_heard()->set_seconds(1'800'000'000);
  node.mutable_last_heard()->set_nanos(999'999'999);
  node.mutable_inventory()->set_address("192.168.100.100");
  node.mutable_inventory()->set_hostname("rack-17-node-03");
  node.mutable_inventory()->set_memory_bytes(std::uint64_t{2} << 40);
  for (std::uint32_t id = 0; id < 16; ++id) {
    v1::Device& device = *node.mutable_inventory()->add_devices();
    device.set_id(id);
    device.set_type("ascend910_93");
    device.set_model(std::string(200, 'm'));
    v1::DeviceReading& reading = *node.add_readings();
    reading.set_id(id);
    reading.set_health(v1::DEVICE_HEALTH_OK);
    reading.set_memory_used_bytes(std::uint64_t{65'000} << 20U);
    reading.add_occupants()->set_pid(4'000'000);
    v1::DeviceUse& use = *node.add_uses();
    use.set_device(id);
    use.set_job_id(std::string(13, 'j'));
    use.set_job_name("llama-70b-pretraining");
    use.set_attempt(3);
  }
  v1::ListNodesResponse answer;
  for (int i = 0; i < 2'000; ++i) {
    *answer.add_nodes() = node;
    shrink(*answer.mutable_nodes(i), NodeDetail::Brief);
  }
  EXPECT_LT(answer.ByteSizeLong(), 3u << 20);
}

// An agent's list of runs is its own claim, and may have a million entries.
TEST(Bounded, AttemptsOfANodeThatNobodyKnowsAreSomeOfThem) {
  core::NodeRecord node{.name = NodeName("n1")};
  core::Presence presence;
  for (std::uint32_t attempt = 1; attempt <= 10'000; ++attempt)
    presence.nodes[node.name].unknown_runs.insert(
        {JobId(std::string(500, 'j')), AttemptNo(attempt)});
  const v1::Node shown = to_v1(node, core::Ledger(), presence, BootTime(), std::chrono::seconds(3));
  EXPECT_EQ(shown.unknown_attempts_size(), 256);
  EXPECT_LT(shown.ByteSizeLong(), 32u << 10);
}

// After an accepted loss of the journal's end, the next attempt is number 1,293,161.
TEST(Bounded, RestartsAreCountedAndNotReadFromANumber) {
  core::JobRecord job = large_job(2);
  job.attempts.back().number = AttemptNo(1'293'161);
  EXPECT_EQ(to_v1(job, core::Presence(), "/c", Detail::List).restarts(), 1u);
  EXPECT_EQ(to_v1(job, core::Presence(), "/c", Detail::List).attempt(), 1'293'161u);
  job.attempts.clear();
  EXPECT_EQ(to_v1(job, core::Presence(), "/c", Detail::List).restarts(), 0u);
}

TEST(Bounded, ReasonsAreALineOfText) {
  EXPECT_TRUE(check_reason("", "cancelling job 'x'"));
  EXPECT_TRUE(check_reason(std::string(1'024, 'r'), "cancelling job 'x'"));
  EXPECT_TRUE(check_reason("\xe6\xad\xa5 spare", "cancelling job 'x'"));
  for (const auto& [reason, why] :
       {std::pair<std::string, std::string>(std::string(1'025, 'r'),
                                            "reason has 1025 bytes, at most 1024"),
        {"\xff", "reason is not UTF-8 text"},
        {"a\xc2\x9b", "reason has control characters in it; write it in one line"},
        {"a\nb", "reason has control characters in it; write it in one line"}}) {
    const auto checked = check_reason(reason, "cancelling job 'x'");
    ASSERT_FALSE(checked);
    EXPECT_EQ(checked.error().code, ErrorCode::InvalidArgument);
    EXPECT_EQ(checked.error().message, "cancelling job 'x': " + why);
  }
}

TEST(Bounded, NoCharacterIsCutInTwo) {
  const std::string text = "ab\xe6\xad\xa5\xe6\xad\xa5\xe6\xad\xa5";
  for (std::size_t most = 4; most < text.size(); ++most) {
    const std::string cut = bounded(text, most);
    EXPECT_LE(cut.size(), most);
    EXPECT_TRUE(is_utf8(cut)) << most;
    EXPECT_TRUE(cut.ends_with("..."));
  }
  EXPECT_EQ(bounded(text, text.size()), text);
}

}  // namespace
}  // namespace muster::controller
