// An agent that is killed right after a step of a start. A process of its own is that agent: the
// test executes itself again for each step.
#include <signal.h>
#include <sys/wait.h>

#include <cstdlib>

#include "tests/unit/agent_run/full_start.h"

namespace muster::agent {
namespace {

namespace fs = std::filesystem;

constexpr const char* kDir = "MUSTER_TEST_KILL_DIR";
constexpr const char* kStep = "MUSTER_TEST_KILL_STEP";
constexpr const char* kClusterName = "MUSTER_TEST_KILL_CLUSTER";  // so that process tags are equal

const RunKey kNext{kRun.first, AttemptNo(2)};

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

class StartKill : public ::testing::Test {
 protected:
  ~StartKill() override {
    EXPECT_TRUE(process::sweep_process_tag(rundir::kProcessTagVariable, run_process_tag(), 5'000));
  }
  // True: it was killed by SIGKILL.
  static bool start_and_die(const fs::path& dir, std::string_view step) {
    const std::string command =
        std::string(kDir) + "='" + dir.string() + "' " + kStep + "='" + std::string(step) + "' " +
        kClusterName + "='" + kCluster.str() + "' exec '" +
        fs::read_symlink("/proc/self/exe").string() +
        "' --gtest_also_run_disabled_tests --gtest_filter=StartKill.DISABLED_Agent > '" +
        (dir / "agent.log").string() + "' 2>&1";
    const int status = ::system(command.c_str());
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
  }
  // Until the run is over, as an agent does without orders.
  static bool settle(HostIncarnation& agent) {
    const Self self{.instance = agent.state().identity().instance, .boot_id = *process::boot_id()};
    bool starting_up = true;
    return agent.wait_for(
        [&](const RunSeen& seen) {
          if (seen.swept && (seen.worker == WorkerState::Dead || seen.worker == WorkerState::Never))
            return true;
          agent.on_loop([&] {
            for (const Action& action : reconcile(self, nullptr, agent.host().seen(), starting_up))
              agent.host().perform(action);
          });
          starting_up = false;
          return false;
        },
        std::chrono::seconds(30));
  }
  static void run_next(HostIncarnation& agent, const FullStart& full) {
    agent.perform(StartRun{.run = kNext, .launch = full.order(kNext.second)});
    ASSERT_TRUE(agent.wait_for(
        [](const RunSeen& seen) { return seen.swept && seen.worker == WorkerState::Dead; },
        std::chrono::seconds(30), kNext));
    EXPECT_EQ(agent.seen(kNext).exits.at(0).code, 0);
  }
};

TEST_F(StartKill, DISABLED_Agent) {
  if (variable(kDir).empty()) GTEST_SKIP() << "it is executed by the other test";
  const auto step = parse_start_step(variable(kStep));
  ASSERT_TRUE(step);
  const fs::path dir = variable(kDir);
  const FullStart full(dir);
  HostIncarnation agent(dir / "state", [&](HostOptions& options) {
    full.prepare(options);
    options.cluster = ClusterId(variable(kClusterName));
    options.starts.after_step = [at = *step](const RunKey&, StartStep done) {
      if (done == at) ::kill(::getpid(), SIGKILL);
    };
  });
  agent.perform(StartRun{.run = kRun, .launch = full.order()});
  agent.wait_for([](const RunSeen& seen) { return seen.refused.has_value(); },
                 std::chrono::seconds(30));
  FAIL() << "it lives";
}

TEST_F(StartKill, AfterAnyStepNothingIsLeftAndTheNextAttemptMakesTheSame) {
  std::map<std::string, std::string> whole;
  const TempDir dir;
  for (std::size_t at = 0; at <= kStartStepCount; ++at) {
    SCOPED_TRACE(at == 0 ? "no kill" : std::string(kStartSteps[at - 1].word));
    for (const char* old : {"state", "out"}) fs::remove_all(dir.path() / old);
    const FullStart full(dir.path());
    if (at > 0) {
      ASSERT_TRUE(start_and_die(dir.path(), kStartSteps[at - 1].word));
    }
    {
      HostIncarnation agent(dir.path() / "state",
                            [&](HostOptions& options) { full.prepare(options); });
      if (at > 0) {
        ASSERT_TRUE(agent.holds());
        ASSERT_TRUE(settle(agent));
        const RunSeen seen = agent.seen();
        // The worker may claim the run before the next incarnation does; then it is adopted.
        const bool adopted = kStartSteps[at - 1].step == StartStep::Spawn && !seen.refused;
        if (adopted) {
          EXPECT_EQ(seen.exits.at(0).code, 0);
        } else {
          ASSERT_TRUE(seen.refused);
          EXPECT_EQ(seen.refused->first, v1::START_FAILURE_GONE);
        }
        EXPECT_EQ(living(), 0U);
      }
      run_next(agent, full);
      for (const RunKey& run : {kRun, kNext}) agent.perform(ForgetRun{.run = run});
    }  // after this, the directories are removed
    EXPECT_TRUE(fs::is_empty(dir.path() / "state/runs"));
    if (at == 0) whole = full.made();
    EXPECT_EQ(full.made(), whole);
  }
  EXPECT_EQ(whole.at("table.json"), "table\n");
  EXPECT_EQ(whole.at("fetched/shard"), "bytes\n");
  EXPECT_EQ(whole.at("code/node-0/code/train.py"), "print('x')\n");
}

}  // namespace
}  // namespace muster::agent
