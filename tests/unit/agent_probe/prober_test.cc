#include "agent/probe/prober.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "folder.h"

namespace muster::agent::probe {
namespace {

using std::chrono::milliseconds;
constexpr std::chrono::seconds kPatience(60);

class Probes {
 public:
  Prober::OnProbed handler() {
    return [this](Probed probed) {
      {
        const std::lock_guard lock(mutex_);
        probes_.push_back(std::move(probed));
      }
      more_.notify_all();
    };
  }
  bool wait_for(std::size_t count) {
    std::unique_lock lock(mutex_);
    return more_.wait_for(lock, kPatience, [&] { return probes_.size() >= count; });
  }
  std::vector<Probed> all() {
    const std::lock_guard lock(mutex_);
    return probes_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable more_;
  std::vector<Probed> probes_;
};

class ProberTest : public testing::Test {
 protected:
  [[nodiscard]] ProbeOptions options() const {
    return {.cores = 2,
            .path = folder_.path().string() + ":/usr/bin:/bin",
            .each = milliseconds(120'000),
            .total = milliseconds(120'000),
            .hccn_conf = folder_.path() / "hccn.conf",
            .sys = folder_.path() / "sys"};
  }
  Folder folder_;
  Probes probes_;
};

TEST_F(ProberTest, ProbesAgainAndAgain) {
  const auto prober = Prober::start(options(), milliseconds(1), probes_.handler());
  ASSERT_TRUE(prober) << prober.error().message;
  EXPECT_TRUE(probes_.wait_for(3));
  (*prober)->stop();
  const std::size_t seen = probes_.all().size();
  (*prober)->stop();
  EXPECT_EQ(probes_.all().size(), seen);
  EXPECT_EQ(probes_.all().front().devices.size(), 2U);
}

TEST_F(ProberTest, OnceWithoutAnInterval) {
  const auto prober = Prober::start(options(), Duration::zero(), probes_.handler());
  ASSERT_TRUE(prober);
  EXPECT_TRUE(probes_.wait_for(1));
  (*prober)->stop();
  EXPECT_EQ(probes_.all().size(), 1U);
}

// Regression: a hanging tool delayed the agent's end by the tool's whole time limit, and outlived
// the agent.
TEST_F(ProberTest, StopEndsAToolThatHangs) {
  folder_.tool("npu-smi", "hang");
  const std::string pipe = folder_.file("pid");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  ASSERT_EQ(::setenv("MUSTER_PID_FILE", pipe.c_str(), 1), 0);
  const auto prober = Prober::start(options(), milliseconds(1), probes_.handler());
  ASSERT_TRUE(prober);
  pid_t child = 0;
  std::ifstream(pipe) >> child;  // the tool runs
  ::unsetenv("MUSTER_PID_FILE");
  ASSERT_GT(child, 0);
  const auto before = std::chrono::steady_clock::now();
  (*prober)->stop();
  EXPECT_LT(std::chrono::steady_clock::now() - before, kPatience);
  EXPECT_TRUE(probes_.all().empty());
}

}  // namespace
}  // namespace muster::agent::probe
