// A scripted node: disk and processes outlive the agent, and everything else dies with it. Every
// history runs once undisturbed, and once with the agent killed after each single effect. For the
// worker, each of its own steps is also delayed until after the restart. The ground truth is what
// the model node did, not what the agent believes:
// - at most one worker wins the claim;
// - ranks are exec'd at most once;
// - "swept" is reported only when nothing lives;
// - a stopped run never starts afterwards;
// - every history ends swept.
#include <gtest/gtest.h>

#include <set>

#include "agent/core/reconcile.h"

namespace muster::agent {
namespace {

const RunKey kRun{JobId("0123456789abc"), AttemptNo(1)};

struct Killed {};  // thrown when the agent dies

struct Directory {
  bool launch = false;
  std::optional<bool> claimed_by_worker;
  bool started = false, stop_requested = false, swept = false;
  std::optional<std::pair<v1::StartFailure, std::string>> refused;
  v1::SweptWhy swept_why{};
  std::string boot;
};
struct Worker {
  enum class At { Spawned, Claimed, Running, Ended } at = At::Spawned;
  bool ranks_alive = false;
};

class Node {
 public:
  std::optional<Directory> dir;
  std::vector<Worker> workers;
  std::string boot = "b-1", instance = "i-1";
  int execs = 0, spawns = 0;
  bool stopped_before = false;       // stop was obeyed: from here on, no exec may happen
  int effects = 0, kill_after = -1;  // the agent dies after this many effects

  void effect() {
    if (effects++ == kill_after) throw Killed{};
  }

  [[nodiscard]] bool ranks_alive() const {
    return std::ranges::any_of(workers, [](const Worker& worker) { return worker.ranks_alive; });
  }
  [[nodiscard]] bool may_still_claim() const {
    return std::ranges::any_of(
        workers, [](const Worker& worker) { return worker.at == Worker::At::Spawned; });
  }

  // One step of each worker.
  void work() {
    for (Worker& worker : workers) {
      switch (worker.at) {
        case Worker::At::Spawned:
          if (!dir || dir->claimed_by_worker) {
            worker.at = Worker::At::Ended;
          } else {
            dir->claimed_by_worker = true;
            worker.at = Worker::At::Claimed;
          }
          break;
        case Worker::At::Claimed:
          ++execs;
          EXPECT_FALSE(stopped_before) << "started after its stop was reported swept";
          EXPECT_EQ(boot, "b-1") << "started on another boot than the placement's";
          worker.ranks_alive = true;
          worker.at = Worker::At::Running;
          dir->started = true;
          break;
        case Worker::At::Running:
          if (dir->stop_requested) {
            worker.ranks_alive = false;
            worker.at = Worker::At::Ended;
            say_swept(v1::SWEPT_WHY_STOPPED);
          }
          break;
        case Worker::At::Ended: break;
      }
    }
  }
  void kill_worker() {
    for (Worker& worker : workers) {
      // its ranks stay, because only a sweep ends them
      if (worker.at != Worker::At::Ended) worker.at = Worker::At::Ended;
    }
  }
  void reboot() {
    boot = "b-2";
    workers.clear();
  }
  void say_swept(v1::SweptWhy why) {
    EXPECT_FALSE(ranks_alive()) << "said swept (" << v1::SweptWhy_Name(why) << ") while ranks live";
    dir->swept = true;
    dir->swept_why = why;
    stopped_before = true;
  }
};

// One incarnation of an agent.
class Agent {
 public:
  explicit Agent(Node& node) : node_(node) {}

  bool step(const v1::Orders* orders) {
    std::map<RunKey, RunSeen> seen;
    if (node_.dir) seen[kRun] = observe();
    const auto actions =
        reconcile({.instance = InstanceId(node_.instance), .boot_id = BootId(node_.boot)}, orders,
                  seen, starting_up_);
    starting_up_ = false;
    for (const Action& action : actions) std::visit([this](const auto& one) { act(one); }, action);
    return !actions.empty();
  }

 private:
  RunSeen observe() const {
    const Directory& dir = *node_.dir;
    RunSeen seen;
    seen.launch_sound = dir.launch;
    seen.boot_id = BootId(dir.boot);
    seen.ranks = {0};
    seen.worker_spoke = dir.started;
    seen.started = dir.started;
    seen.stop_requested = dir.stop_requested;
    seen.swept = dir.swept;
    seen.refused = dir.refused;
    const bool lives = std::ranges::any_of(
        node_.workers, [](const Worker& w) { return w.at != Worker::At::Ended; });
    if (dir.claimed_by_worker) {
      seen.worker = !*dir.claimed_by_worker ? WorkerState::Never
                    : lives                 ? WorkerState::Alive
                                            : WorkerState::Dead;
    } else {
      seen.worker = spawned_ && lives ? WorkerState::Spawned : WorkerState::None;
    }
    return seen;
  }
  void act(const StartRun&) {
    node_.dir = Directory{};
    node_.dir->boot = node_.boot;
    node_.effect();
    node_.dir->launch = true;
    node_.effect();
    node_.workers.emplace_back();
    ++node_.spawns;
    spawned_ = true;
    node_.effect();
  }
  void act(const RefuseRun& refuse) {
    if (!node_.dir) {
      node_.dir = Directory{};
      node_.dir->boot = node_.boot;
      node_.effect();
    }
    if (node_.dir->claimed_by_worker.value_or(false)) return;  // the worker was faster
    node_.dir->claimed_by_worker = false;
    node_.effect();
    node_.dir->refused = {refuse.why, refuse.text};
    node_.effect();
  }
  void act(const SignalStop&) {
    node_.dir->stop_requested = true;
    node_.effect();
  }
  void act(const SweepRun& sweep) {
    for (Worker& worker : node_.workers) worker = {.at = Worker::At::Ended, .ranks_alive = false};
    node_.effect();
    node_.say_swept(sweep.why);
    node_.effect();
  }
  void act(const MarkSwept& mark) {
    EXPECT_FALSE(node_.may_still_claim() && !node_.dir->claimed_by_worker)
        << "said swept while a worker may still claim";
    node_.say_swept(mark.why);
    node_.effect();
  }
  void act(const ForgetRun&) {
    EXPECT_TRUE(node_.dir->swept);
    node_.dir.reset();
    node_.effect();
  }

  Node& node_;
  bool starting_up_ = true;
  bool spawned_ = false;
};

enum class Want { Nothing, Run, Stop };
enum class Fault { None, KillWorker, Reboot, LoseClaim };

v1::Orders orders_for(Want want) {
  v1::Orders orders;
  if (want == Want::Nothing) return orders;
  v1::Order* order = orders.add_orders();
  order->set_job_id(kRun.first.str());
  order->set_attempt(kRun.second.value);
  if (want == Want::Stop) {
    order->mutable_stop();
  } else {
    order->mutable_run()->set_boot_id("b-1");  // pinned by the placement
    order->mutable_run()->set_instance("i-1");
  }
  return orders;
}

struct History {
  std::vector<Want> wants;
  int worker_lag = 0;  // rounds before a worker makes its first step
  Fault fault = Fault::None;
  int fault_round = 0;
};

// Returns false if the agent had no effect left at which to be killed.
bool play(const History& history, int kill_after, Node& node) {
  node.kill_after = kill_after;
  bool killed = false;
  auto agent = std::make_unique<Agent>(node);
  int round = 0;
  for (const Want want : history.wants) {
    const v1::Orders orders = orders_for(want);
    for (int turn = 0; turn < 8; ++turn, ++round) {
      if (history.fault != Fault::None && round == history.fault_round) {
        if (history.fault == Fault::KillWorker) {
          node.kill_worker();
        } else if (history.fault == Fault::LoseClaim) {
          // A living agent notices nothing: it keeps what it has read.
          if (node.dir) node.dir->claimed_by_worker.reset();
          agent = std::make_unique<Agent>(node);
        } else {
          node.reboot();
          agent = std::make_unique<Agent>(node);
        }
      }
      try {
        agent->step(&orders);
      } catch (const Killed&) {
        killed = true;
        agent = std::make_unique<Agent>(node);
        agent->step(nullptr);  // as a real start: proofs before the first connection
      }
      if (round >= history.worker_lag) node.work();
    }
  }
  return killed;
}

TEST(CrashPoints, EveryHistoryKeepsTheRules) {
  int runs = 0, started = 0;
  std::set<v1::SweptWhy> reasons;
  for (const auto& wants : std::vector<std::vector<Want>>{{Want::Run, Want::Stop},
                                                          {Want::Stop},
                                                          {Want::Stop, Want::Run},
                                                          {Want::Run, Want::Nothing, Want::Stop},
                                                          {Want::Run, Want::Stop, Want::Run}}) {
    for (int lag = 0; lag < 10; ++lag) {
      for (const Fault fault : {Fault::None, Fault::KillWorker, Fault::Reboot, Fault::LoseClaim}) {
        for (int fault_round = 0; fault_round < (fault == Fault::None ? 1 : 14); ++fault_round) {
          for (int kill_after = -1; kill_after < 12; ++kill_after) {
            Node node;
            const History history{
                .wants = wants, .worker_lag = lag, .fault = fault, .fault_round = fault_round};
            const bool killed = play(history, kill_after, node);
            ++runs;
            started += node.execs;
            SCOPED_TRACE("wants " + std::to_string(wants.size()) + " lag " + std::to_string(lag) +
                         " fault " + std::to_string(static_cast<int>(fault)) + "@" +
                         std::to_string(fault_round) + " kill " + std::to_string(kill_after));
            EXPECT_LE(node.spawns, 1);
            EXPECT_LE(node.execs, 1);
            ASSERT_TRUE(node.dir);
            EXPECT_TRUE(node.dir->swept) << "did not end";
            EXPECT_FALSE(node.ranks_alive());
            if (wants.front() == Want::Stop) {
              EXPECT_EQ(node.execs, 0) << "run after stop must never start";
            }
            reasons.insert(node.dir->swept_why);
            if (kill_after >= 0 && !killed) break;  // past the last effect
            if (HasFailure()) return;
          }
        }
      }
    }
  }
  EXPECT_GT(runs, 1000);
  EXPECT_GT(started, 100) << "the histories must really start something";
  EXPECT_EQ(reasons, (std::set<v1::SweptWhy>{v1::SWEPT_WHY_STOPPED, v1::SWEPT_WHY_WORKER_DIED,
                                             v1::SWEPT_WHY_REBOOTED, v1::SWEPT_WHY_NEVER_STARTED,
                                             v1::SWEPT_WHY_CLAIM_LOST}));
}

TEST(CrashPoints, WipedStateDirectoryIsSweptByScanning) {
  // The old instance's worker and ranks live. The new instance has an empty directory, and is
  // ordered to stop the attempt, or to run it.
  for (const Want want : {Want::Stop, Want::Run}) {
    Node node;
    play({.wants = {Want::Run}}, -1, node);
    ASSERT_TRUE(node.ranks_alive());
    node.dir.reset();
    node.instance = "i-2";
    Agent agent(node);
    const v1::Orders orders = orders_for(want);
    for (int turn = 0; turn < 4; ++turn) agent.step(&orders);
    EXPECT_FALSE(node.ranks_alive());
    EXPECT_TRUE(node.dir->swept);
    EXPECT_EQ(node.execs, 1);
  }
}

}  // namespace
}  // namespace muster::agent
