// Records that are not the agent's own: the run is swept as one that is damaged, and the agent's
// log says why.
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <algorithm>

#include "tests/unit/agent_run/support.h"

namespace muster::agent {
namespace {

namespace fs = std::filesystem;

class NotBelieved : public ::testing::Test {
 protected:
  void TearDown() override {
    EXPECT_TRUE(process::sweep_process_tag(rundir::kProcessTagVariable, run_process_tag(), 5'000));
  }
  // What an agent says that finds a run of an earlier incarnation, whose record has changed.
  void expect(const std::string& record, const std::function<void(const fs::path&)>& change,
              const std::string& sentence) {
    SCOPED_TRACE(record);
    const TempDir dir;
    pid_t worker = 0;
    {
      HostIncarnation agent(dir.path() / "state");
      agent.perform(StartRun{.run = kRun, .launch = shell_launch(dir.path(), "exec sleep 1000")});
      ASSERT_TRUE(agent.wait_for(
          [](const RunSeen& seen) { return seen.started && seen.worker == WorkerState::Alive; }));
      worker = static_cast<pid_t>(agent.seen().worker_pid);
      change(agent.run_dir() / record);
    }
    {
      HostIncarnation agent(dir.path() / "state");
      const auto troubles = agent.troubles();
      EXPECT_TRUE(std::ranges::any_of(troubles, [&](const std::string& text) {
        return text.find(record) != std::string::npos && text.find(sentence) != std::string::npos;
      })) << (troubles.empty() ? "nothing was said" : troubles.front());
      agent.perform(SweepRun{.run = kRun, .why = v1::SWEPT_WHY_WORKER_DIED});
      ASSERT_TRUE(agent.wait_for([](const RunSeen& seen) { return seen.swept; }));
      EXPECT_EQ(living(), 0U);
    }
    EXPECT_EQ(::waitpid(worker, nullptr, 0), worker);
  }
};

TEST_F(NotBelieved, ALinkInThePlaceOfARecord) {
  const auto link = [](const fs::path& record) {
    fs::rename(record, record.parent_path().parent_path() / "sound");
    fs::create_symlink(record.parent_path().parent_path() / "sound", record);
  };
  for (const char* record : {"claim", "launch", "events"}) expect(record, link, "it is a link");
}

TEST_F(NotBelieved, ARecordOfAnotherUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root gives files away; this is user " << ::geteuid();
  const auto give = [](const fs::path& record) {
    ASSERT_EQ(::chown(record.c_str(), 65534, 65534), 0);
  };
  for (const char* record : {"claim", "launch", "events"})
    expect(record, give, "it belongs to user 65534");
}

TEST_F(NotBelieved, ARecordThatOthersMayWrite) {
  const auto open = [](const fs::path& record) {
    fs::permissions(record, fs::perms::others_write, fs::perm_options::add);
  };
  expect("claim", open, "others than its owner may write it");
}

}  // namespace
}  // namespace muster::agent
