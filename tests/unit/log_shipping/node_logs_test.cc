// The logs of auxiliary processes, from a node's files to the controller's.
#include <random>

#include "tests/unit/log_shipping/shipping.h"

namespace muster::test {
namespace {

// Regression: the training was over, the run directory gone, and with it what the setup and the
// scheduler had logged.
TEST(NodeLogs, TheyArriveUnderTheirNodesName) {
  Shipping both(2, {"setup", "scheduler"});
  both.start_controller();
  both.start_agent();
  Appender(both.node_log("setup")).write("CANN 8.0\n");
  Appender(both.log(0)).write("step 1\n");
  ASSERT_TRUE(both.eventually([&] { return both.kept(both.key("setup")) == "CANN 8.0\n"; }));
  Appender(both.node_log("scheduler")).write("the cluster is built\n");
  both.watch_->run_swept(both.run());
  ASSERT_TRUE(both.eventually([&] {
    return both.complete(0) && both.complete(1) && both.watch_->logs_complete(both.run());
  }));
  EXPECT_EQ(both.kept(both.key("scheduler")), "the cluster is built\n");
  EXPECT_EQ(both.kept(0), "step 1\n") << "nobody else's";
  EXPECT_EQ(both.store_->list(both.run().first).size(), 4u);
}

// The directory is removed when the controller has the ends of all ranks.
TEST(NodeLogs, NoRankIsCompleteBeforeThem) {
  Shipping both(1, {"setup", "scheduler"});
  both.chunk_ = 1000;
  both.start_controller();
  std::unique_lock slow(both.store_->disk_);
  both.start_agent();
  Appender(both.node_log("setup")).write(std::string(100'000, 's'));
  Appender(both.log(0)).write("short\n");
  both.watch_->run_swept(both.run());
  ASSERT_TRUE(both.eventually([&] {
    return both.store_->state(both.key("setup"))->complete &&
           both.store_->state(both.key("scheduler"))->complete;
  }));
  ASSERT_TRUE(both.eventually([&] { return both.kept(0) == "short\n"; }))
      << "its bytes wait for nothing";
  ASSERT_TRUE(both.eventually([&] { return both.store_->syncs_ > 0; }));
  EXPECT_FALSE(both.store_->state(both.key(0))->complete)
      << "the disk does not have the others yet";
  slow.unlock();
  ASSERT_TRUE(both.eventually([&] { return both.complete(0); }));
  EXPECT_TRUE(both.store_->state(both.key("setup"))->durable);
  EXPECT_TRUE(both.store_->state(both.key("scheduler"))->durable);
}

TEST(NodeLogs, NoByteIsLostOrDoubledByCuts) {
  for (unsigned seed = 1; seed <= 3; ++seed) {
    SCOPED_TRACE(seed);
    Shipping both(1, {"setup"});
    both.chunk_ = 700;
    std::mt19937 random(seed);
    const Appender setup(both.node_log("setup"));
    std::string truth;
    both.start_controller();
    both.start_agent();
    for (int round = 0; round < 20; ++round) {
      std::string text;
      for (unsigned line = random() % 50; line > 0; --line)
        text += std::to_string(truth.size() + text.size()) + " " + std::string(random() % 80, '.') +
                "\n";
      setup.write(text);
      truth += text;
      if (random() % 3 == 0) {
        both.stop_agent();
        both.start_agent();
      } else if (random() % 3 == 0) {
        both.stop_controller();
        both.start_controller();
      } else {
        (void)both.eventually(
            [&, before = both.kept(both.key("setup")).size()] {
              return both.kept(both.key("setup")).size() > before;
            },
            std::chrono::seconds(1));
      }
    }
    both.watch_->run_swept(both.run());
    ASSERT_TRUE(both.eventually([&] { return both.complete(0); }));
    ASSERT_EQ(both.kept(both.key("setup")), truth);
  }
}

// A setup that fills the disk loses its oldest lines first, as a rank does, and a gap records this.
TEST(NodeLogs, TheHardCapTakesTheirOldestBytes) {
  Shipping both(1, {"setup"});
  const Appender setup(both.node_log("setup"));
  const std::string old(600'000, 'o'), recent(100'000, 'n');
  setup.write(old + recent);
  agent::WatchOptions options;
  options.blind_scan = std::chrono::milliseconds(20);
  options.free_bytes = [](const std::filesystem::path&) { return (256ull << 20) - (400 << 10); };
  both.start_agent(options);  // nobody receives the bytes
  ASSERT_TRUE(both.eventually([&] {
    const std::scoped_lock lock(both.mutex_);
    return !both.troubles_.empty();
  })) << "what was given up is told";
  both.stop_agent();
  both.start_controller();
  both.start_agent();
  both.watch_->run_swept(both.run());
  ASSERT_TRUE(both.eventually([&] { return both.complete(0); }));
  int gaps = 0;
  const std::string kept = both.kept(both.key("setup"), &gaps);
  EXPECT_EQ(gaps, 1);
  EXPECT_LT(kept.size(), old.size() + recent.size() - (300 << 10));
  EXPECT_TRUE(kept.ends_with(recent.substr(0, 64 << 10))) << "the newest stay";
}

// A log that the controller does not want delays nothing.
TEST(NodeLogs, ANameThatIsNoneIsLeft) {
  Shipping both(1, {"setup"}, "no node");
  both.start_controller();
  both.start_agent();
  Appender(both.log(0)).write("step 1\n");
  both.watch_->run_swept(both.run());
  ASSERT_TRUE(both.eventually([&] { return both.complete(0); }));
  EXPECT_EQ(both.store_->list(both.run().first), std::vector{both.key(0)});
}

}  // namespace
}  // namespace muster::test
