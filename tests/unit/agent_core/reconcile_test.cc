// One reading of one directory: which action follows. crash_test.cc has the crash points between
// actions.
#include "agent/core/reconcile.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace muster::agent {
namespace {

const RunKey kRun{JobId("0123456789abc"), AttemptNo(2)};
const Self kSelf{.instance = InstanceId("i-1"), .boot_id = BootId("b-1")};

v1::Order order_run(const std::string& boot = "b-1", const std::string& instance = "i-1") {
  v1::Order order;
  order.set_job_id(kRun.first.str());
  order.set_attempt(kRun.second.value);
  order.mutable_run()->set_boot_id(boot);
  order.mutable_run()->set_instance(instance);
  return order;
}
v1::Order order_stop() {
  v1::Order order = order_run();
  order.mutable_stop();
  return order;
}
v1::Order order_forget() {
  v1::Order order = order_run();
  order.mutable_forget();
  return order;
}
v1::Order order_unknown() {
  v1::Order order = order_run();
  order.clear_want();
  return order;
}

RunSeen run_in(WorkerState worker) {
  RunSeen seen;
  seen.launch_sound = true;
  seen.boot_id = kSelf.boot_id;
  seen.worker = worker;
  seen.ranks = {0, 1};
  return seen;
}

std::vector<Action> actions_for(const std::optional<RunSeen>& seen,
                                const std::vector<v1::Order>& list, bool starting_up = false) {
  v1::Orders orders;
  for (const auto& order : list) *orders.add_orders() = order;
  std::map<RunKey, RunSeen> all;
  if (seen) all[kRun] = *seen;
  return reconcile(kSelf, &orders, all, starting_up);
}

template <class T>
T only(const std::vector<Action>& actions) {
  EXPECT_EQ(actions.size(), 1U);
  if (actions.size() != 1 || !std::holds_alternative<T>(actions[0])) {
    ADD_FAILURE() << "expected one action of another kind, got " << actions.size() << " (index "
                  << (actions.empty() ? 99 : actions[0].index()) << ")";
    return {};
  }
  return std::get<T>(actions[0]);
}

TEST(Reconcile, RunStartsOnceOnItsBootAndInstance) {
  EXPECT_EQ(only<StartRun>(actions_for(std::nullopt, {order_run()})).run, kRun);
  for (const WorkerState worker : {WorkerState::Spawned, WorkerState::Alive})
    EXPECT_TRUE(actions_for(run_in(worker), {order_run()}).empty());
}

TEST(Reconcile, AnotherBootOrInstanceIsGone) {
  const auto boot = only<RefuseRun>(actions_for(std::nullopt, {order_run("b-0")}));
  EXPECT_EQ(boot.why, v1::START_FAILURE_GONE);
  EXPECT_NE(boot.text.find("'b-0'"), std::string::npos);
  const auto instance = only<RefuseRun>(actions_for(std::nullopt, {order_run("b-1", "i-0")}));
  EXPECT_EQ(instance.why, v1::START_FAILURE_GONE);
  EXPECT_NE(instance.text.find("'i-0'"), std::string::npos);
}

TEST(Reconcile, NotMentionedIsLeftAlone) {
  for (const WorkerState worker : {WorkerState::Spawned, WorkerState::Alive}) {
    EXPECT_TRUE(actions_for(run_in(worker), {}).empty());
    EXPECT_TRUE(reconcile(kSelf, nullptr, {{kRun, run_in(worker)}}, false).empty());
    EXPECT_TRUE(reconcile(kSelf, nullptr, {{kRun, run_in(worker)}}, true).empty());
  }
}

TEST(Reconcile, WithoutOrdersNothingStartsAndProofsAreGathered) {
  EXPECT_TRUE(reconcile(kSelf, nullptr, {}, true).empty());
  EXPECT_EQ(
      only<SweepRun>(reconcile(kSelf, nullptr, {{kRun, run_in(WorkerState::Dead)}}, true)).why,
      v1::SWEPT_WHY_WORKER_DIED);
  RunSeen old = run_in(WorkerState::Dead);
  old.boot_id = BootId("b-0");
  EXPECT_EQ(only<MarkSwept>(reconcile(kSelf, nullptr, {{kRun, old}}, true)).why,
            v1::SWEPT_WHY_REBOOTED);
}

TEST(Reconcile, ChangedBootIsProofForEveryWorkerState) {
  for (const WorkerState worker : {WorkerState::None, WorkerState::Spawned, WorkerState::Alive,
                                   WorkerState::Dead, WorkerState::Never}) {
    RunSeen old = run_in(worker);
    old.boot_id = BootId("b-0");
    EXPECT_EQ(only<MarkSwept>(actions_for(old, {order_stop()})).why, v1::SWEPT_WHY_REBOOTED);
    EXPECT_EQ(only<MarkSwept>(actions_for(old, {order_run()})).why, v1::SWEPT_WHY_REBOOTED);
  }
}

TEST(Reconcile, StopBeforeRunLeavesADirectoryThatNeverStarts) {
  const auto refused = only<RefuseRun>(actions_for(std::nullopt, {order_stop()}));
  EXPECT_EQ(refused.why, v1::START_FAILURE_UNSPECIFIED);
  RunSeen seen;  // as RefuseRun leaves it: no launch
  seen.worker = WorkerState::Never;
  seen.refused = {refused.why, refused.text};
  // A wiped state directory has the same content: the earlier directory's ranks may live, so only a
  // scan proves that none does.
  EXPECT_EQ(only<SweepRun>(actions_for(seen, {order_stop()})).why, v1::SWEPT_WHY_NEVER_STARTED);
  seen.swept = true;
  EXPECT_TRUE(actions_for(seen, {order_run()}).empty()) << "run after stop must never start";
}

TEST(Reconcile, UnclaimedDirectoryIsClaimedByTheAgentAndNeverStarted) {
  EXPECT_EQ(only<RefuseRun>(actions_for(run_in(WorkerState::None), {order_run()}, true)).why,
            v1::START_FAILURE_GONE);
  EXPECT_EQ(
      only<RefuseRun>(reconcile(kSelf, nullptr, {{kRun, run_in(WorkerState::None)}}, true)).why,
      v1::START_FAILURE_GONE);
  EXPECT_EQ(only<RefuseRun>(actions_for(run_in(WorkerState::None), {order_stop()}, true)).why,
            v1::START_FAILURE_UNSPECIFIED);
  EXPECT_EQ(only<RefuseRun>(actions_for(run_in(WorkerState::None), {order_run()}, false)).why,
            v1::START_FAILURE_GONE);
}

// Regression: with a launch record, no scan was made. When somebody had removed the worker's claim,
// the agent took the claim, and the next attempt started in parallel with the living ranks.
TEST(Reconcile, NeverIsProvenByScanning) {
  RunSeen seen = run_in(WorkerState::Never);
  EXPECT_EQ(only<RefuseRun>(actions_for(seen, {order_run()})).why, v1::START_FAILURE_GONE)
      << "claimed by a life that did not say why";
  seen.refused = {v1::START_FAILURE_PORT, "taken"};
  EXPECT_EQ(only<SweepRun>(actions_for(seen, {order_run()})).why, v1::SWEPT_WHY_NEVER_STARTED);
}

TEST(Reconcile, AClaimThatWasTakenAndIsGoneIsSweptNotRefused) {
  for (const bool starting_up : {true, false}) {
    RunSeen spoke = run_in(WorkerState::None);
    spoke.worker_spoke = true;
    EXPECT_EQ(only<SweepRun>(actions_for(spoke, {order_run()}, starting_up)).why,
              v1::SWEPT_WHY_CLAIM_LOST);
    EXPECT_EQ(only<SweepRun>(actions_for(spoke, {order_stop()}, starting_up)).why,
              v1::SWEPT_WHY_CLAIM_LOST);
    RunSeen refused = run_in(WorkerState::None);
    refused.refused = {v1::START_FAILURE_PORT, "taken"};
    EXPECT_EQ(only<SweepRun>(actions_for(refused, {order_run()}, starting_up)).why,
              v1::SWEPT_WHY_CLAIM_LOST);
    refused.swept = true;
    EXPECT_TRUE(actions_for(refused, {order_run()}, starting_up).empty());
    EXPECT_EQ(only<ForgetRun>(actions_for(refused, {order_forget()}, starting_up)).run, kRun);
  }
}

TEST(Reconcile, StopSignalsALivingWorkerUntilItHasWrittenIt) {
  RunSeen seen = run_in(WorkerState::Alive);
  EXPECT_EQ(only<SignalStop>(actions_for(seen, {order_stop()})).run, kRun);
  seen.stop_requested = true;
  EXPECT_TRUE(actions_for(seen, {order_stop()}).empty());
  EXPECT_EQ(only<RefuseRun>(actions_for(run_in(WorkerState::Spawned), {order_stop()})).why,
            v1::START_FAILURE_UNSPECIFIED);
}

TEST(Reconcile, DeadWorkerIsSweptUnlessItsLastWordIsThere) {
  RunSeen seen = run_in(WorkerState::Dead);
  for (const auto& order : {order_run(), order_stop(), order_forget()})
    EXPECT_EQ(only<SweepRun>(actions_for(seen, {order})).why, v1::SWEPT_WHY_WORKER_DIED);
  seen.exits[0] = {};
  seen.exits[1] = {};
  EXPECT_EQ(only<SweepRun>(actions_for(seen, {})).why, v1::SWEPT_WHY_WORKER_DIED)
      << "all exits known is not yet swept";
  seen.swept = true;
  EXPECT_TRUE(actions_for(seen, {order_stop()}).empty());
}

// Regression: another machine had joined under the name, said that nothing was left, and the run of
// the first one went on beside the next job's.
TEST(Reconcile, ForgetStopsWhatRuns) {
  const RunSeen seen = run_in(WorkerState::Alive);
  EXPECT_EQ(only<SignalStop>(actions_for(seen, {order_forget()})).run, kRun);
}

TEST(Reconcile, ForgetRemovesOnlyWhatIsSweptAndHasNoWorker) {
  RunSeen seen = run_in(WorkerState::Alive);
  seen.swept = true;
  EXPECT_TRUE(actions_for(seen, {order_forget()}).empty());
  seen.worker = WorkerState::Dead;
  EXPECT_EQ(only<ForgetRun>(actions_for(seen, {order_forget()})).run, kRun);
  EXPECT_TRUE(actions_for(std::nullopt, {order_forget()}).empty());
}

TEST(Reconcile, UnknownOrderIsReportedNotIgnored) {
  const auto refused = only<RefuseRun>(actions_for(std::nullopt, {order_unknown()}));
  EXPECT_EQ(refused.why, v1::START_FAILURE_LAUNCH);
  EXPECT_EQ(refused.text.rfind("unsupported", 0), 0U);
  EXPECT_TRUE(actions_for(run_in(WorkerState::Alive), {order_unknown()}).empty())
      << "a living run is not harmed by it";
}

TEST(Reconcile, TornEventsLeaveARunThatIsOnlySweptWhenTheWorkerIsGone) {
  // The events file ends in half a frame after rank 0's exit. The worker is alive and will write
  // more; after its death, the run is swept.
  RunSeen seen = run_in(WorkerState::Alive);
  seen.started = true;
  seen.exits[0] = {.rank = 0, .code = 1};
  EXPECT_TRUE(actions_for(seen, {order_run()}).empty());
  seen.worker = WorkerState::Dead;
  EXPECT_EQ(only<SweepRun>(actions_for(seen, {order_run()})).why, v1::SWEPT_WHY_WORKER_DIED);
}

TEST(Reconcile, StartsComeAfterEverythingElse) {
  v1::Orders orders;
  *orders.add_orders() = order_run();
  orders.mutable_orders(0)->set_attempt(1);  // sorts before the seen one
  const auto actions = reconcile(kSelf, &orders, {{kRun, run_in(WorkerState::Dead)}}, false);
  ASSERT_EQ(actions.size(), 2U);
  EXPECT_TRUE(std::holds_alternative<SweepRun>(actions[0]));
  EXPECT_TRUE(std::holds_alternative<StartRun>(actions[1]));
}

// Regression: a restarted controller sent several starts to a node, each in a message of its own.
// All but the last were lost while the agent wrote the new epoch, and their jobs failed with "did
// not start its part within 1m".
class Merged : public ::testing::Test {
 protected:
  static v1::Order of(const std::string& job, v1::Order order) {
    order.set_job_id(job);
    return order;
  }
  static v1::Orders message(const std::vector<v1::Order>& list) {
    v1::Orders orders;
    orders.set_epoch(7);
    orders.set_cluster_id("c-1");
    for (const v1::Order& order : list) *orders.add_orders() = order;
    return orders;
  }
  static std::map<std::string, v1::Order::WantCase> wanted(const v1::Orders& orders) {
    std::map<std::string, v1::Order::WantCase> wants;
    for (const v1::Order& order : orders.orders())
      EXPECT_TRUE(wants.emplace(order.job_id(), order.want_case()).second)
          << order.job_id() << " twice";
    return wants;
  }
  using Wanted = std::map<std::string, v1::Order::WantCase>;
};

TEST_F(Merged, RunsOfAllMessagesStay) {
  v1::Orders all = merged({}, message({of("a", order_run())}), {});
  all = merged(all, message({of("b", order_run())}), {});
  all = merged(all, message({of("x", order_stop()), of("c", order_run())}), {});
  EXPECT_EQ(wanted(all), (Wanted{{"a", v1::Order::kRun},
                                 {"b", v1::Order::kRun},
                                 {"c", v1::Order::kRun},
                                 {"x", v1::Order::kStop}}));
  EXPECT_EQ(all.epoch(), 7U);
  EXPECT_EQ(all.cluster_id(), "c-1");
}

TEST_F(Merged, ARunIsDroppedOnceItIsThereOrAnotherOrderComesForIt) {
  const v1::Orders runs = message(
      {of("a", order_run()), of("b", order_run()), of("c", order_run()), of("d", order_run())});
  const std::map<RunKey, RunSeen> there{{{JobId("a"), AttemptNo(2)}, run_in(WorkerState::Spawned)}};
  EXPECT_EQ(wanted(merged(runs, message({of("b", order_stop()), of("c", order_forget())}), there)),
            (Wanted{{"b", v1::Order::kStop}, {"c", v1::Order::kForget}, {"d", v1::Order::kRun}}));
}

TEST_F(Merged, OfWhatIsToBeStoppedAndForgottenTheLatestMessageHasAll) {
  const v1::Orders earlier =
      message({of("a", order_stop()), of("b", order_forget()), of("c", order_unknown())});
  EXPECT_EQ(wanted(merged(earlier, message({of("b", order_forget())}), {})),
            (Wanted{{"b", v1::Order::kForget}}));
}

}  // namespace
}  // namespace muster::agent
