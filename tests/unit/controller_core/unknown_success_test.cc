// A success sign that an agent could not read, because a file system hangs. Regression: such an end
// counted as one without success, and the same "user error" twice ended a sound job.
#include "controller/core/recovery/unknown_success.h"

#include <gtest/gtest.h>

#include "tests/unit/controller_core/small_world.h"

namespace muster::core {
namespace {

constexpr const char* kFileUnknown =
    "rank 2 on node 'n1' ended with status 0, but its agent could not find out within 10 s whether "
    "success.file '/dead/done' is there: does its file system answer?";

enum class Answer : std::uint8_t { Missing, Seen, Unknown };

// Two nodes with two ranks each.
struct Ended : SmallWorld {
  explicit Ended(const v1::SuccessSpec& success) {
    node("n0", 2);
    node("n1", 2);
    v1::JobSpec train = spec("train", 2, 2);
    *train.mutable_success() = success;
    submit("j1", train);
  }
  // Every rank ends with status 0.
  void ends(std::uint32_t attempt, const std::vector<Answer>& answers) {
    for (std::uint32_t rank = 0; rank < answers.size(); ++rank) {
      v1::Fact what = fact("j1", attempt);
      what.mutable_exited()->set_rank(rank);
      what.mutable_exited()->set_success_seen(answers[rank] == Answer::Seen);
      what.mutable_exited()->set_success_unknown(answers[rank] == Answer::Unknown);
      report(rank < 2 ? "n0" : "n1", std::move(what));
    }
    swept("j1", attempt, "n0");
    swept("j1", attempt, "n1");
  }
  const AttemptRecord& attempt(std::uint32_t number) {
    return *job("j1").attempt(AttemptNo(number));
  }
};

v1::SuccessSpec file(const std::string& path) {
  v1::SuccessSpec success;
  success.set_file(path);
  return success;
}
v1::SuccessSpec regex(const std::string& pattern) {
  v1::SuccessSpec success;
  success.set_regex(pattern);
  return success;
}
v1::SuccessSpec rank_file(const std::string& path) {
  v1::SuccessSpec success;
  success.set_rank_file(path);
  return success;
}
v1::SuccessSpec last_step() {
  v1::SuccessSpec success;
  success.set_last_step(true);
  return success;
}

TEST(UnknownSuccess, IsTheNodesFaultAndTheJobGoesOn) {
  Ended world(file("/dead/done"));
  for (std::uint32_t attempt = 1; attempt <= 2; ++attempt) {
    world.ends(attempt, {Answer::Missing, Answer::Missing, Answer::Unknown, Answer::Unknown});
    const Verdict verdict = *world.attempt(attempt).verdict;
    EXPECT_EQ(verdict.cls, FailureClass::Node);
    EXPECT_EQ(verdict.node, NodeName("n1"));
    EXPECT_EQ(verdict.rank, RankNo(2));
    EXPECT_EQ(verdict.reason, kFileUnknown);
    EXPECT_EQ(world.attempt(attempt).broke_cause, kFileUnknown);
    EXPECT_FALSE(is_final(world.job("j1").phase)) << "also after the same end twice";
  }
  EXPECT_GE(world.job("j1").attempts.size(), 3U);
}

TEST(UnknownSuccess, OneRankWithSuccessDecides) {
  Ended world(file("/dead/done"));
  world.ends(1, {Answer::Unknown, Answer::Seen, Answer::Unknown, Answer::Unknown});
  EXPECT_EQ(world.job("j1").phase, JobPhase::Succeeded);
}

// An older agent never reports it.
TEST(UnknownSuccess, WithoutItAMissingSuccessIsTheUsersError) {
  Ended world(file("/dead/done"));
  world.ends(1, {Answer::Missing, Answer::Missing, Answer::Missing, Answer::Missing});
  EXPECT_EQ(world.attempt(1).verdict->cls, FailureClass::UserError);
}

TEST(UnknownSuccess, TheReasonNamesWhatIsWanted) {
  const std::string begin =
      "rank 0 on node 'n0' ended with status 0, but its agent could not find out within 10 s "
      "whether ";
  const std::string end = ": does its file system answer?";
  for (const auto& [success, wanted] : std::vector<std::pair<v1::SuccessSpec, std::string>>{
           {regex("done"), "a line of its log matches success.regex 'done'"},
           {rank_file("of_${rank}"), "its success.rank_file 'of_0' is there"},
           {last_step(), "the training reached its last step"}}) {
    Ended world(success);
    world.ends(1, {Answer::Unknown, Answer::Unknown, Answer::Unknown, Answer::Unknown});
    EXPECT_EQ(world.attempt(1).verdict->reason, begin + wanted + end);
    EXPECT_EQ(world.attempt(1).verdict->cls, FailureClass::Node);
  }
}

TEST(UnknownSuccess, OfRankFilesOneThatIsKnownToBeMissingDecides) {
  Ended world(rank_file("of_${rank}"));
  world.ends(1, {Answer::Seen, Answer::Unknown, Answer::Seen, Answer::Missing});
  EXPECT_EQ(world.attempt(1).verdict->cls, FailureClass::UserError);
  EXPECT_EQ(world.attempt(1).verdict->reason,
            "every rank ended with status 0, but rank 3 on node 'n1' has not written 'of_3'");
  Ended other(rank_file("of_${rank}"));
  other.ends(1, {Answer::Seen, Answer::Unknown, Answer::Seen, Answer::Seen});
  EXPECT_EQ(other.attempt(1).verdict->cls, FailureClass::Node);
  EXPECT_EQ(other.attempt(1).verdict->rank, RankNo(1));
}

// A complete checkpoint of the last step shows the end without any log.
TEST(UnknownSuccess, DoesNotMatterIfSomethingElseShowsTheLastStep) {
  Ended world(last_step());
  world.accept(
      {.events = {CheckpointCompleted{.job = JobId("j1"), .attempt = AttemptNo(1), .step = 100}}});
  v1::Fact what = world.fact("j1", 1);
  what.mutable_exited()->set_rank(0);
  what.mutable_exited()->set_step(100);
  what.mutable_exited()->set_total(100);
  world.report("n0", std::move(what));
  world.ends(1, {Answer::Missing, Answer::Unknown, Answer::Unknown, Answer::Unknown});
  EXPECT_EQ(world.job("j1").phase, JobPhase::Succeeded);
}

// What an agent says of a rank that failed, or that had success, is not believed.
TEST(UnknownSuccess, IsOnlyOfAnEndThatIsGoodAndHasNoSuccess) {
  Ended world(file("/dead/done"));
  for (const bool failed : {false, true}) {
    v1::Fact what = world.fact("j1", 1);
    what.mutable_exited()->set_rank(failed ? 1 : 0);
    what.mutable_exited()->set_code(failed ? 1 : 0);
    what.mutable_exited()->set_success_seen(!failed);
    what.mutable_exited()->set_success_unknown(true);
    world.report("n0", std::move(what));
  }
  for (const auto& [rank, exit] : world.attempt(1).parts.front().exits)
    EXPECT_FALSE(exit.success_unknown) << rank.value;
}

}  // namespace
}  // namespace muster::core
