#include "controller/journal/codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <tuple>
#include <vector>

#include "controller/core/journal_end/lost_end.h"
#include "muster/journal/v1/record.pb.h"
#include "tests/unit/journal/sample_events.h"

namespace muster::journal {
namespace {

using testing::HasSubstr;

// Every field of a kind as a tuple. A new field breaks this build; then add it to the codec, the
// record and sample_events.cc.
#define FIELDS(type, ...)                \
  auto fields(const core::type& whole) { \
    const auto& [__VA_ARGS__] = whole;   \
    return std::make_tuple(__VA_ARGS__); \
  }
FIELDS(ControllerStarted, a, b, c)
FIELDS(JournalEndLost, a, b)
FIELDS(NodeDeclaredDead, a, b, c)
FIELDS(NodeDrained, a, b, c, d, e)
FIELDS(NodeUndrained, a, b)
FIELDS(NodeLabelled, a, b, c)
FIELDS(NodeRemoved, a, b)
FIELDS(NodeRenamed, a, b, c)
FIELDS(SecretSet, a, b, c, d)
FIELDS(SecretRemoved, a, b, c)
FIELDS(StoreRemoved, a, b)
FIELDS(CancelRequested, a, b, c)
FIELDS(SavedBefore, a, b, c, d)
FIELDS(PinnedSecret, a, b)
FIELDS(NodeStartFailed, a, b, c, d, e, f, g, h, i, j, k, l, m)
FIELDS(RankExited, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t)
FIELDS(AuxiliaryExited, a, b, c, d, e, f, g, h, i, j)
FIELDS(PredecessorSucceeded, a, b, c, d)
FIELDS(OwnedShards, a, b)
FIELDS(ShardHolder, a, b, c)
FIELDS(NodeSwept, a, b, c, d, e, f, g, h)
FIELDS(FirstStep, a, b, c, d, e, f, g)
FIELDS(NodeClockSkewed, a, b, c, d, e, f, g)
FIELDS(OutputsUploaded, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o)
FIELDS(ScriptLaunched, a, b, c, d, e, f, g, h, i, j)
FIELDS(CheckpointCompleted, a, b, c, d, e, f)
FIELDS(CheckpointQuarantined, a, b, c, d)
FIELDS(AttemptBroke, a, b, c, d, e, f, g)
FIELDS(AttemptEnded, a, b, c, d, e, f, g)
FIELDS(CaughtUp, a, b, c)
FIELDS(AttemptNoted, a, b, c, d, e, f)
FIELDS(AttemptCompleted, a, b, c)
FIELDS(JobEnded, a, b, c)
FIELDS(LogsCollected, a, b, c)
FIELDS(JobArchived, a, b, c, d, e, f, g, h, i)
FIELDS(TombstoneDropped, a)
FIELDS(TokenCreated, a, b, c, d, e, f, g, h)
FIELDS(TokenRevoked, a, b)
FIELDS(CertificateIssued, a, b, c, d, e, f, g)
FIELDS(CertificateRevoked, a, b, c, d, e, f)
FIELDS(AuthorityChanged, a, b, c, d)
FIELDS(Verdict, a, b, c, d, e, f)
FIELDS(PlacedNode, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p)
FIELDS(ResumePoint, a, b, c, d, e)
#undef FIELDS
auto fields(const Lineage& whole) {
  const auto& [generation, id] = whole;
  return std::make_tuple(generation, id);
}
auto fields(const core::NodeRegistered& whole) {
  const auto& [node, instance, boot_id, inventory, version] = whole;
  return std::make_tuple(node, instance, boot_id, inventory.SerializeAsString(), version);
}
auto fields(const core::PinnedInput& whole) {
  const auto& [input, profile, secret] = whole;
  return std::make_tuple(input, profile.SerializeAsString(), secret);
}
auto fields(const core::PinnedOutput& whole) {
  const auto& [profile, secret] = whole;
  return std::make_tuple(profile.SerializeAsString(), secret);
}
auto fields(const core::AttemptPlaced& whole) {
  const auto& [job, attempt, nodes, master_port, resume, table_sha256, saved, secrets, inputs,
               output, logs_output] = whole;
  std::vector<decltype(fields(inputs.front()))> of_inputs;
  for (const core::PinnedInput& one : inputs) of_inputs.push_back(fields(one));
  return std::make_tuple(job, attempt, nodes, master_port, resume, table_sha256, saved, secrets,
                         of_inputs, output ? fields(*output) : fields(core::PinnedOutput()),
                         logs_output ? fields(*logs_output) : fields(core::PinnedOutput()));
}
auto fields(const core::StoreSet& whole) {
  const auto& [key, profile, actor] = whole;
  return std::make_tuple(key, profile.SerializeAsString(), actor);
}
auto fields(const core::NodeStarted& whole) {
  const auto& [job, attempt, node, pids, worker_pid, node_time, resolved, controller_time,
               instance] = whole;
  return std::make_tuple(job, attempt, node, pids, worker_pid, node_time,
                         resolved.SerializeAsString(), controller_time, instance);
}
auto fields(const core::JobSubmitted& whole) {
  const auto& [job, request_id, spec, resolved, spec_hash, owner] = whole;
  return std::make_tuple(job, request_id, spec.SerializeAsString(), resolved.SerializeAsString(),
                         spec_hash, owner);
}

template <class T>
bool all_set(const T& whole) {
  const auto is_set = [](const auto& field) { return field != std::decay_t<decltype(field)>{}; };
  return std::apply([&](const auto&... field) { return (is_set(field) && ...); }, fields(whole));
}

TEST(Codec, SamplesCoverEveryKindAndSetEveryField) {
  std::set<std::size_t> kinds;
  for (const core::Event& event : one_of_every_kind()) {
    kinds.insert(event.body.index());
    std::visit([](const auto& body) { EXPECT_TRUE(all_set(body)) << typeid(body).name(); },
               event.body);
    if (const auto* lost = std::get_if<core::JournalEndLost>(&event.body)) {
      EXPECT_TRUE(all_set(lost->lineage));
    }
    if (const auto* placed = std::get_if<core::AttemptPlaced>(&event.body)) {
      EXPECT_TRUE(all_set(placed->nodes.at(0)));
      EXPECT_TRUE(all_set(*placed->resume));
      EXPECT_TRUE(all_set(placed->saved.at(0)));
      EXPECT_TRUE(all_set(placed->secrets.at(0)));
      EXPECT_TRUE(all_set(placed->inputs.at(0)));
    }
    if (const auto* succeeded = std::get_if<core::PredecessorSucceeded>(&event.body)) {
      EXPECT_TRUE(all_set(*succeeded->checkpoint));
      EXPECT_TRUE(all_set(*succeeded->owned));
      EXPECT_TRUE(all_set(succeeded->owned->holders.at(0)));
    }
    if (const auto* over = std::get_if<core::AttemptEnded>(&event.body)) {
      EXPECT_TRUE(all_set(over->verdict));
    }
  }
  EXPECT_EQ(kinds.size(), std::variant_size_v<core::EventBody>);
}

TEST(Codec, EveryKindComesBackAsItWent) {
  for (const core::Event& event : one_of_every_kind()) {
    const Record record = encode(event);
    EXPECT_EQ(record.format, kFormatProto);
    SCOPED_TRACE(kind_name(record.type));
    const auto back = decode(record);
    ASSERT_TRUE(back) << back.error().message;
    EXPECT_EQ(back->at, event.at);
    ASSERT_EQ(back->body.index(), event.body.index());
    std::visit(
        [&](const auto& body) {
          using Kind = std::decay_t<decltype(body)>;
          EXPECT_EQ(fields(std::get<Kind>(back->body)), fields(body));
        },
        event.body);
  }
}

TEST(Codec, WhatIsAbsentStaysAbsent) {
  const auto back =
      decode(encode({.at = {},
                     .body = core::AttemptPlaced{
                         .job = JobId("j"), .attempt = AttemptNo(1), .nodes = {}, .resume = {}}}));
  ASSERT_TRUE(back);
  EXPECT_FALSE(std::get<core::AttemptPlaced>(back->body).resume);
  const auto ended = decode(encode(
      {.at = {},
       .body = core::JobEnded{
           .job = JobId("j"), .outcome = core::Outcome::Succeeded, .verdict = core::Verdict{}}}));
  ASSERT_TRUE(ended);
  ASSERT_TRUE(std::get<core::JobEnded>(ended->body).verdict);
  // no rank, which is not rank 0
  EXPECT_EQ(*std::get<core::JobEnded>(ended->body).verdict, core::Verdict{});
}

// Step 0 is a step, and no step has no field.
TEST(Codec, NoBestStepIsNotStepZero) {
  for (const std::int64_t step : {-1, 0}) {
    const auto completed =
        core::AttemptCompleted{.job = JobId("j"), .attempt = AttemptNo(1), .best_step = step};
    const auto ended =
        core::AttemptEnded{.job = JobId("j"), .attempt = AttemptNo(1), .best_step = step};
    const Record well = encode({.at = {}, .body = completed});
    const Record broken = encode({.at = {}, .body = ended});
    v1::Record row;
    ASSERT_TRUE(row.ParseFromString(well.payload));
    EXPECT_EQ(row.attempt_completed().has_best_step(), step == 0);
    ASSERT_TRUE(row.ParseFromString(broken.payload));
    EXPECT_EQ(row.attempt_ended().has_best_step(), step == 0);
    EXPECT_EQ(std::get<core::AttemptCompleted>(decode(well)->body).best_step, step);
    EXPECT_EQ(std::get<core::AttemptEnded>(decode(broken)->body).best_step, step);
  }
}

TEST(Codec, EveryStartFailureComesBackAsItWent) {
  using enum core::StartFailure;
  for (const core::StartFailure why : {Gone, Launch, Port, Disk, Node, Checkpoint, Inputs}) {
    const auto back =
        decode(encode({.at = {}, .body = core::NodeStartFailed{.job = JobId("j"), .why = why}}));
    ASSERT_TRUE(back) << back.error().message;
    EXPECT_EQ(std::get<core::NodeStartFailed>(back->body).why, why);
  }
}

TEST(Codec, EveryReasonOfASweepComesBackAsItWent) {
  using enum core::SweptWhy;
  for (const core::SweptWhy why : {Ended, Stopped, Orphaned, WorkerDied, DiskRefusedWrites,
                                   Rebooted, NeverStarted, ClaimLost}) {
    const auto back =
        decode(encode({.at = {}, .body = core::NodeSwept{.job = JobId("j"), .why = why}}));
    ASSERT_TRUE(back) << back.error().message;
    EXPECT_EQ(std::get<core::NodeSwept>(back->body).why, why);
  }
}

TEST(Codec, EveryKindOfEvidenceComesBackAsItWent) {
  using enum core::EvidenceKind;
  for (const core::EvidenceKind kind : {Unknown, Cause, Consequence}) {
    const auto back = decode(encode(
        {.at = {},
         .body = core::RankExited{.job = JobId("j"), .evidence = "x", .evidence_kind = kind}}));
    ASSERT_TRUE(back) << back.error().message;
    EXPECT_EQ(std::get<core::RankExited>(back->body).evidence_kind, kind);
  }
}

TEST(Codec, TypeNumbersAreForEver) {
  // The numbers of released kinds. Add at the end; after a change of a line here, existing journals
  // no longer replay.
  const std::vector<std::pair<std::uint32_t, std::string_view>> released = {
      {10, "controller_started"},
      {11, "journal_end_lost"},
      {12, "node_registered"},
      {13, "node_declared_dead"},
      {14, "job_submitted"},
      {15, "cancel_requested"},
      {16, "predecessor_succeeded"},
      {17, "attempt_placed"},
      {18, "agent_fact"},
      {19, "checkpoint_completed"},
      {20, "checkpoint_quarantined"},
      {21, "caught_up"},
      {22, "attempt_noted"},
      {23, "attempt_broke"},
      {24, "attempt_completed"},
      {25, "attempt_ended"},
      {26, "job_ended"},
      {27, "logs_collected"},
      {28, "job_archived"},
      {29, "tombstone_dropped"},
      {30, "token_created"},
      {31, "token_revoked"},
      {32, "certificate_issued"},
      {33, "certificate_revoked"},
      {34, "authority_changed"},
      {40, "node_drained"},
      {41, "node_undrained"},
      {42, "node_labelled"},
      {43, "node_removed"},
      {44, "node_renamed"}};
  for (const auto& [number, name] : released) EXPECT_EQ(kind_name(number), name);
  EXPECT_EQ(kind_name(1), "");  // at_ns is no kind
  EXPECT_EQ(kind_name(9), "");
  EXPECT_EQ(kind_name(35), "");
}

TEST(Codec, RefusesWhatANewerVersionWrote) {
  Record record = encode(started(1));
  record.format = 2;
  auto back = decode(record);
  ASSERT_FALSE(back);
  EXPECT_EQ(back.error().code, ErrorCode::Unsupported);
  EXPECT_THAT(back.error().message, HasSubstr("format is 2"));

  record = encode(started(1));
  record.type = 99;
  back = decode(record);
  ASSERT_FALSE(back);
  EXPECT_EQ(back.error().code, ErrorCode::Unsupported);
  EXPECT_THAT(back.error().message, HasSubstr("kind 99"));

  // Field 200 of the record, and field 100 inside a job's spec.
  record = encode(started(1));
  record.payload += std::string("\xc0\x0c\x01", 3);
  back = decode(record);
  ASSERT_FALSE(back);
  EXPECT_EQ(back.error().code, ErrorCode::Unsupported);
  v1::Record deep;
  ASSERT_TRUE(deep.ParseFromString(encode(submitted("j", "n")).payload));
  auto* spec = deep.mutable_job_submitted()->mutable_spec();
  spec->GetReflection()->MutableUnknownFields(spec)->AddVarint(100, 1);
  back = decode({.format = 1, .type = 14, .payload = deep.SerializeAsString()});
  ASSERT_FALSE(back);
  EXPECT_THAT(back.error().message, HasSubstr("'job_submitted.spec: field 100'"));

  v1::Record lineage;
  ASSERT_TRUE(lineage.ParseFromString(encode(end_lost(1)).payload));
  auto* inner = lineage.mutable_journal_end_lost()->mutable_lineage();
  inner->GetReflection()->MutableUnknownFields(inner)->AddVarint(100, 1);
  back = decode({.format = 1, .type = 11, .payload = lineage.SerializeAsString()});
  ASSERT_FALSE(back);
  EXPECT_THAT(back.error().message, HasSubstr("'journal_end_lost.lineage: field 100'"));

  v1::Record outcome;
  outcome.mutable_job_ended()->set_outcome(static_cast<v1::Outcome>(9));
  back = decode({.format = 1, .type = 26, .payload = outcome.SerializeAsString()});
  ASSERT_FALSE(back);
  EXPECT_EQ(back.error().code, ErrorCode::Unsupported);
  EXPECT_THAT(back.error().message, HasSubstr("job_ended.outcome: value 9"));

  v1::Record kind;
  kind.mutable_agent_fact()->mutable_fact()->mutable_exited()->set_evidence_kind(
      static_cast<muster::v1::EvidenceKind>(9));
  back = decode({.format = 1, .type = 18, .payload = kind.SerializeAsString()});
  ASSERT_FALSE(back);
  EXPECT_EQ(back.error().code, ErrorCode::Unsupported);
  EXPECT_THAT(back.error().message, HasSubstr("fact.exited.evidence_kind: value 9"));
  kind.mutable_agent_fact()->mutable_fact()->mutable_start_failed()->set_why(
      static_cast<muster::v1::StartFailure>(99));
  back = decode({.format = 1, .type = 18, .payload = kind.SerializeAsString()});
  ASSERT_FALSE(back);
  EXPECT_EQ(back.error().code, ErrorCode::Unsupported);
  EXPECT_THAT(back.error().message, HasSubstr("fact.start_failed.why: value 99"));
  kind.mutable_agent_fact()->mutable_fact()->mutable_swept()->set_why(
      static_cast<muster::v1::SweptWhy>(99));
  back = decode({.format = 1, .type = 18, .payload = kind.SerializeAsString()});
  ASSERT_FALSE(back);
  EXPECT_EQ(back.error().code, ErrorCode::Unsupported);
  EXPECT_THAT(back.error().message, HasSubstr("fact.swept.why: value 99"));
  // Zero is never written.
  kind.mutable_agent_fact()->mutable_fact()->mutable_swept()->clear_why();
  back = decode({.format = 1, .type = 18, .payload = kind.SerializeAsString()});
  ASSERT_FALSE(back);
  EXPECT_THAT(back.error().message, HasSubstr("reason of a sweep 0"));
  // Another kind of fact.
  auto* fact = kind.mutable_agent_fact()->mutable_fact();
  fact->clear_what();
  fact->GetReflection()->MutableUnknownFields(fact)->AddLengthDelimited(99, "");
  back = decode({.format = 1, .type = 18, .payload = kind.SerializeAsString()});
  ASSERT_FALSE(back);
  EXPECT_EQ(back.error().code, ErrorCode::Unsupported);
}

TEST(Codec, RefusesWhatNobodyWrote) {
  Record record = encode(started(1));
  record.payload.pop_back();
  EXPECT_EQ(decode(record).error().code, ErrorCode::DataLoss);
  record = encode(started(1));
  record.type = 11;
  EXPECT_EQ(decode(record).error().code, ErrorCode::DataLoss);
  v1::Record port;
  port.mutable_attempt_placed()->set_master_port(65'536);
  EXPECT_EQ(decode({.format = 1, .type = 17, .payload = port.SerializeAsString()}).error().code,
            ErrorCode::DataLoss);
  v1::Record fact;
  fact.mutable_agent_fact()->mutable_fact()->set_job_id("j");
  EXPECT_EQ(decode({.format = 1, .type = 18, .payload = fact.SerializeAsString()}).error().code,
            ErrorCode::DataLoss);
  v1::Record hccl;
  hccl.mutable_attempt_placed()->add_nodes()->set_hccl_port(65'536);
  EXPECT_EQ(decode({.format = 1, .type = 17, .payload = hccl.SerializeAsString()}).error().code,
            ErrorCode::DataLoss);
}

// Every agent would refuse such a lineage, and no job could have an attempt after so many.
TEST(Codec, RefusesALossOfTheEndThatNobodyAccepted) {
  const auto refusal = [](std::uint64_t generation, const std::string& id, std::uint32_t skipped) {
    v1::Record record;
    auto& lost = *record.mutable_journal_end_lost();
    lost.mutable_lineage()->set_generation(generation);
    lost.mutable_lineage()->set_id(id);
    lost.set_attempts_skipped(skipped);
    const auto back = decode({.format = 1, .type = 11, .payload = record.SerializeAsString()});
    if (back) return std::string();
    EXPECT_EQ(back.error().code, ErrorCode::DataLoss);
    return back.error().message;
  };
  for (const std::string& id : {std::string("a"), std::string("0z-"), std::string(64, 'f')})
    EXPECT_EQ(refusal(1, id, core::kAttemptReportedMax), "");
  EXPECT_THAT(refusal(1, "id", core::kAttemptReportedMax + 1),
              HasSubstr("it holds 1000000001 skipped attempts, which cannot be"));
  EXPECT_THAT(refusal(0, "", 7), HasSubstr("a new lineage of generation 0"));
  EXPECT_NE(refusal(0, "id", 7), "");
  for (const std::string& id : {std::string(), std::string("A"), std::string("a b"),
                                std::string("a\nb"), std::string(65, 'f')})
    EXPECT_THAT(refusal(1, id, 7), HasSubstr("a lineage of generation 1 with a malformed id"));

  v1::Record absent;
  absent.mutable_journal_end_lost()->set_attempts_skipped(7);
  EXPECT_EQ(decode({.format = 1, .type = 11, .payload = absent.SerializeAsString()}).error().code,
            ErrorCode::DataLoss);
}

}  // namespace
}  // namespace muster::journal
