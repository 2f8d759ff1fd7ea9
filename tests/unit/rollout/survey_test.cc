// How many hosts are worked on at once, over sessions that count.
#include "deploy/rollout/survey.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>

#include "deploy/rollout/host.h"

namespace muster::rollout {
namespace {

using namespace std::chrono_literals;

class AtWork {
 public:
  // The first ones wait for each other, and then a while for one too many.
  void one_more() {
    std::unique_lock lock(mutex_);
    most_ = std::max(most_, ++now_);
    changed_.notify_all();
    changed_.wait_for(lock, 30s, [&] { return most_ >= kThreadsMost; });
    changed_.wait_for(lock, 200ms, [&] { return most_ > kThreadsMost || over_; });
    over_ = true;
    --now_;
  }
  [[nodiscard]] std::size_t most() const { return most_; }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t now_ = 0, most_ = 0;
  bool over_ = false;  // the first ones have waited
};

class CountingSession final : public ssh::Session {
 public:
  explicit CountingSession(AtWork& work) : work_(work) {}
  Result<ssh::Output> run(const ssh::Command&, ssh::Source, Duration) override {
    work_.one_more();
    return ssh::Output{.out = "muster-output-begins\n"};
  }
  [[nodiscard]] const ssh::Transport& transport() const override { return transport_; }

 private:
  AtWork& work_;
  ssh::Transport transport_;
};

class Nobody final : public ssh::Prompts {
 public:
  std::optional<ssh::Secret> ask(const ssh::Question&) override { return std::nullopt; }
};

TEST(Survey, ThirtyTwoHostsAreWorkedOnAtOnceAndNoMore) {
  constexpr std::size_t kHosts = 100;
  AtWork work;
  Nobody nobody;
  std::vector<std::atomic<int>> runs(kHosts);
  for_each_host(kHosts, [&](std::size_t i) {
    auto host = Host::over({.host = "h" + std::to_string(i)},
                           std::make_unique<CountingSession>(work), nobody);
    ASSERT_TRUE(host);
    if (host->need("counting", ":")) ++runs[i];
  });
  EXPECT_EQ(work.most(), 32U);
  for (const std::atomic<int>& each : runs) EXPECT_EQ(each, 1);
}

}  // namespace
}  // namespace muster::rollout
