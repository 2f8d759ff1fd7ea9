// Regression: an agent used an inotify instance for its run directories, and a user has 128 of
// them. With 64 agents on one machine, the next one did not start. Now a wake FIFO in each run
// directory announces exits; there are as many FIFOs as runs.
#include "common/rundir/wake_fifo.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "common/rundir/records.h"

namespace muster::rundir {
namespace {

class WakeFifoTest : public ::testing::Test {
 protected:
  WakeFifoTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "wake-fifo-XXXXXX").string();
    dir_ = ::mkdtemp(pattern.data());
    run_.emplace(dir_ / "job.1");
    EXPECT_TRUE(make_run(*run_));
  }
  ~WakeFifoTest() override { std::filesystem::remove_all(dir_); }
  static bool rung(const WakeFifo& wake_fifo) {
    pollfd item{.fd = wake_fifo.fd(), .events = POLLIN, .revents = 0};
    return ::poll(&item, 1, 0) == 1 && (item.revents & POLLIN) != 0;
  }

  std::filesystem::path dir_;
  std::optional<RunLayout> run_;
};

TEST_F(WakeFifoTest, IsHeardOnceHoweverOftenItWasRung) {
  const auto worker = WakeFifo::open(*run_), agent = WakeFifo::open(*run_);
  ASSERT_TRUE(worker && agent);
  EXPECT_FALSE(rung(*agent));
  worker->ring();
  worker->ring();
  EXPECT_TRUE(rung(*agent));
  agent->drain();
  EXPECT_FALSE(rung(*agent));
}

// A worker rings while no agent lives: the next agent must read the run at once. A worker that is
// gone must not look like one that rings.
TEST_F(WakeFifoTest, RingsWaitForTheNextAgentAndNobodysDeathRings) {
  {
    const auto worker = WakeFifo::open(*run_);
    ASSERT_TRUE(worker);
    worker->ring();
    const auto agent = WakeFifo::open(*run_);
    EXPECT_TRUE(rung(*agent));
  }
  const auto agent = WakeFifo::open(*run_);
  ASSERT_TRUE(agent);
  {
    const auto worker = WakeFifo::open(*run_);
  }
  pollfd item{.fd = agent->fd(), .events = POLLIN, .revents = 0};
  EXPECT_EQ(::poll(&item, 1, 0), 0) << "neither a ring nor the end of a file";
}

TEST_F(WakeFifoTest, AFullWakeFifoNeverHoldsTheWorker) {
  const auto worker = WakeFifo::open(*run_), agent = WakeFifo::open(*run_);
  ASSERT_TRUE(worker && agent);
  for (int i = 0; i < 200'000; ++i) worker->ring();
  EXPECT_TRUE(rung(*agent));
  agent->drain();
  EXPECT_FALSE(rung(*agent));
}

TEST_F(WakeFifoTest, IsPrivateAndMissingIsNoError) {
  EXPECT_EQ(std::filesystem::status(run_->wake_fifo()).permissions(),
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  EXPECT_TRUE(make_run(*run_)) << "again is no error";
  std::filesystem::remove(run_->wake_fifo());
  EXPECT_FALSE(WakeFifo::open(*run_));
  std::ofstream(run_->wake_fifo()) << "a file of that name";
  EXPECT_FALSE(WakeFifo::open(*run_));
}

}  // namespace
}  // namespace muster::rundir
