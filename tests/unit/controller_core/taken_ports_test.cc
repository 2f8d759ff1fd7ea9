// Starts that fail because another program uses a port: which of them are charged to a job, and
// what is reported to its user.
#include <gmock/gmock.h>

#include "controller/core/recovery/start_failures.h"
#include "tests/unit/controller_core/small_world.h"

namespace muster::core {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

struct TakenPortsTest : SmallWorld {
  explicit TakenPortsTest(std::uint32_t fixed_port = 0) {
    node("n0", 1);
    v1::JobSpec once = spec("train", 1, 1);
    once.mutable_recovery()->set_max_restarts(0);
    once.mutable_network()->set_master_port(fixed_port);
    submit("j1", once);
  }
  void lose_start() {
    const std::uint32_t number = job("j1").current()->number.value;
    v1::Fact what = fact("j1", number);
    what.mutable_start_failed()->set_why(v1::START_FAILURE_PORT);
    what.mutable_start_failed()->set_text("port taken");
    report("n0", std::move(what));
    swept("j1", number, "n0", v1::SWEPT_WHY_NEVER_STARTED);
  }
};

// Regression: a job of two ranks with max_restarts 0 ended because a browser used port 20000 at
// that moment.
TEST(TakenPorts, OfMustersOwnChoiceAreTriedAgainWithoutAChargeUpToALimit) {
  TakenPortsTest world;
  const std::uint32_t most = world.limits.taken_ports_max;
  std::set<std::uint16_t> ports;
  for (std::uint32_t start = 1; start <= most; ++start) {
    ports.insert(world.job("j1").current()->master_port);
    world.lose_start();
    const AttemptRecord& lost = world.job("j1").attempts[start - 1];
    EXPECT_FALSE(lost.charged) << start;
    EXPECT_THAT(lost.verdict->reason, EndsWith("port taken")) << start;
    ASSERT_EQ(world.job("j1").phase, JobPhase::Launching) << start << ": at once";
  }
  EXPECT_EQ(ports.size(), most) << "another one each time";
  EXPECT_EQ(world.job("j1").attempts_without_progress, 0U);
  world.lose_start();
  const JobRecord& job = world.job("j1");
  EXPECT_EQ(job.phase, JobPhase::Failed);
  EXPECT_TRUE(job.attempts.back().charged);
  EXPECT_THAT(job.verdict->reason,
              HasSubstr("9 starts in a row were lost to ports of 20000-29999 that others had taken "
                        "(20000, 20001, 20002, 20003, 20004, 20005, 20006, 20007, 20008), of which "
                        "the first 8 cost nothing"));
}

TEST(TakenPorts, ThatTheSpecFixesAreCharged) {
  TakenPortsTest world(29'500);
  world.lose_start();
  EXPECT_EQ(world.job("j1").phase, JobPhase::Failed);
  EXPECT_TRUE(world.job("j1").attempts[0].charged);
  EXPECT_THAT(world.job("j1").verdict->reason, Not(HasSubstr("in a row were lost")));
}

TEST(TakenPorts, TheRowEndsWithAnAttemptThatFailedOtherwise) {
  TakenPortsTest world;
  JobRecord job = world.job("j1");
  const auto add = [&](std::optional<StartFailure> why) {
    AttemptRecord attempt = job.attempts.front();
    attempt.number = AttemptNo(static_cast<std::uint32_t>(job.attempts.size() + 1));
    if (why) attempt.parts[0].start_failed = NodeStartFailed{.node = NodeName("n0"), .why = *why};
    job.attempts.push_back(attempt);
  };
  for (const auto why : {std::optional(StartFailure::Port), std::optional<StartFailure>(),
                         std::optional(StartFailure::Port), std::optional(StartFailure::Port)})
    add(why);
  EXPECT_EQ(lost_to_ports(job, job.attempts[4]), 2U);
  EXPECT_EQ(lost_to_ports(job, job.attempts[3]), 1U);
  EXPECT_EQ(lost_to_ports(job, job.attempts[2]), 0U);
  EXPECT_EQ(lost_to_ports(job, job.attempts[1]), 1U);
  add(StartFailure::Disk);
  EXPECT_EQ(lost_to_ports(job, job.attempts[5]), 0U);
}

}  // namespace
}  // namespace muster::core
