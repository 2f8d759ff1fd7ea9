#include "agent/core/outbox.h"

#include <gtest/gtest.h>

namespace muster::agent {
namespace {

const RunKey kRun{JobId("0123456789abc"), AttemptNo(1)};

v1::Fact started() {
  v1::Fact fact;
  fact.mutable_started();
  return fact;
}
v1::Fact exited(std::uint32_t rank, int code, bool stop_requested = false) {
  v1::Fact fact;
  fact.mutable_exited()->set_rank(rank);
  fact.mutable_exited()->set_code(code);
  fact.mutable_exited()->set_stop_requested(stop_requested);
  return fact;
}
v1::Fact swept() {
  v1::Fact fact;
  fact.mutable_swept();
  return fact;
}
const Outbox::Ready kAll = [](const v1::RankExited&) { return true; };

TEST(Outbox, EachFactOnceAConnection) {
  Outbox outbox;
  EXPECT_TRUE(outbox.gather(kRun, {started()}, kAll));
  EXPECT_EQ(outbox.take().sequence(), 1U);
  EXPECT_FALSE(outbox.gather(kRun, {started()}, kAll));
  EXPECT_TRUE(outbox.empty());
  outbox.gather(kRun, {started(), exited(0, 1), exited(1, 1)}, kAll);
  const auto facts = outbox.take();
  EXPECT_EQ(facts.facts_size(), 2);
  EXPECT_EQ(facts.sequence(), 3U);
  outbox.reconnected();
  outbox.gather(kRun, {started(), exited(0, 1), exited(1, 1)}, kAll);
  const auto again = outbox.take();
  EXPECT_EQ(again.facts_size(), 3) << "after a reconnect everything is told again";
  EXPECT_EQ(again.sequence(), 3U);
}

TEST(Outbox, EachUploadIsAFactOfItsOwn) {
  Outbox outbox;
  const auto uploaded = [](std::optional<std::int64_t> step, bool seal) {
    v1::Fact fact;
    if (step) fact.mutable_outputs_uploaded()->set_step(*step);
    fact.mutable_outputs_uploaded()->set_seal(seal);
    return fact;
  };
  v1::Fact logs;
  logs.mutable_outputs_uploaded()->set_logs(true);
  const std::vector<v1::Fact> all = {uploaded(100, false), uploaded(100, true),
                                     uploaded(200, false), uploaded({}, false), logs};
  outbox.gather(kRun, all, kAll);
  EXPECT_EQ(outbox.take().facts_size(), 5);
  outbox.gather(kRun, all, kAll);
  EXPECT_TRUE(outbox.empty());
}

TEST(Outbox, OnlyWellAndStoppedExitsMayBeGathered) {
  Outbox outbox;
  EXPECT_FALSE(outbox.gather(kRun, {exited(0, 0), exited(1, 15, true)}, kAll));
  EXPECT_FALSE(outbox.empty());
  EXPECT_TRUE(outbox.gather(kRun, {exited(0, 0), exited(1, 15, true), exited(2, 1)}, kAll))
      << "a bad one takes the others along";
  EXPECT_EQ(outbox.take().facts_size(), 3);
  EXPECT_TRUE(outbox.gather(kRun, {swept()}, kAll));
  outbox.take();
  EXPECT_FALSE(outbox.gather(RunKey{kRun.first, AttemptNo(2)}, {exited(0, 0)}, kAll))
      << "urgency ends with the message";
}

// Regression: after a reconnect, all facts are sent again. On a node with many runs they were
// longer than a message may be, and each of these messages ended the stream.
TEST(Outbox, WhatIsLongerThanAMessageGoesInSeveral) {
  Outbox outbox;
  std::vector<v1::Fact> many;
  for (std::uint32_t rank = 0; rank < 20; ++rank) {
    many.push_back(exited(rank, 1));
    many.back().mutable_exited()->set_evidence(std::string(1U << 20U, 'e'));
  }
  EXPECT_TRUE(outbox.gather(kRun, many, kAll));
  std::uint32_t rank = 0;
  while (!outbox.empty()) {
    const v1::Facts facts = outbox.take();
    EXPECT_LT(facts.ByteSizeLong(), Outbox::kMessageBytes + (1U << 20U) + 1'000);
    for (const v1::Fact& fact : facts.facts()) EXPECT_EQ(fact.exited().rank(), rank++);
    EXPECT_EQ(facts.sequence(), rank) << "of the last one in it";
  }
  EXPECT_EQ(rank, 20U);
  EXPECT_FALSE(outbox.gather(kRun, many, kAll));
}

TEST(Outbox, AnExitThatWaitsHoldsOnlyTheSweep) {
  Outbox outbox;
  const Outbox::Ready not_one = [](const v1::RankExited& exit) { return exit.rank() != 1; };
  outbox.gather(kRun, {started(), exited(0, 1), exited(1, 1), exited(2, 1), swept()}, not_one);
  const auto first = outbox.take();
  ASSERT_EQ(first.facts_size(), 3);
  EXPECT_EQ(first.facts(2).exited().rank(), 2U);
  outbox.gather(kRun, {started(), exited(0, 1), exited(1, 1), exited(2, 1), swept()}, kAll);
  const auto second = outbox.take();
  ASSERT_EQ(second.facts_size(), 2);
  EXPECT_EQ(second.facts(0).exited().rank(), 1U);
  EXPECT_TRUE(second.facts(1).has_swept());
}

TEST(Outbox, ASweepWaitsForTheLastScanAlone) {
  Outbox outbox;
  outbox.gather(kRun, {started(), exited(0, 1), swept()}, kAll, false);
  EXPECT_EQ(outbox.take().facts_size(), 2);
  outbox.gather(kRun, {started(), exited(0, 1), swept()}, kAll, true);
  const auto last = outbox.take();
  ASSERT_EQ(last.facts_size(), 1);
  EXPECT_TRUE(last.facts(0).has_swept());
}

// The controller takes no outputs of a run whose sweep it does not know, and they are told once a
// connection.
TEST(Outbox, OutputsWaitForTheSweep) {
  Outbox outbox;
  v1::Fact checkpoint, all;
  checkpoint.mutable_outputs_uploaded()->set_step(3);
  all.mutable_outputs_uploaded();
  outbox.gather(kRun, {checkpoint, swept(), all}, kAll, false);
  EXPECT_EQ(outbox.take().facts_size(), 1);
  outbox.gather(kRun, {checkpoint, swept(), all}, kAll, true);
  const auto facts = outbox.take();
  ASSERT_EQ(facts.facts_size(), 2);
  EXPECT_TRUE(facts.facts(0).has_swept());
  EXPECT_TRUE(facts.facts(1).has_outputs_uploaded());
}

TEST(Outbox, EachAuxiliariesEndOnceAndAtOnce) {
  const auto ended = [](const std::string& name) {
    v1::Fact fact;
    fact.mutable_auxiliary_exited()->set_name(name);
    return fact;
  };
  Outbox outbox;
  EXPECT_TRUE(outbox.gather(kRun, {ended("scheduler")}, kAll)) << "it breaks the attempt";
  EXPECT_EQ(outbox.take().facts_size(), 1);
  EXPECT_TRUE(outbox.gather(kRun, {ended("scheduler"), ended("other")}, kAll));
  const auto second = outbox.take();
  ASSERT_EQ(second.facts_size(), 1);
  EXPECT_EQ(second.facts(0).auxiliary_exited().name(), "other");
}

TEST(Outbox, ForgottenRunLeavesNothing) {
  Outbox outbox;
  outbox.gather(kRun, {started()}, kAll);
  outbox.take();
  outbox.forget(kRun);
  outbox.gather(kRun, {started()}, kAll);
  EXPECT_FALSE(outbox.empty());
}

}  // namespace
}  // namespace muster::agent
