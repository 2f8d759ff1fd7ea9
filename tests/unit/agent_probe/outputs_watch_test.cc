#include "agent/probe/outputs_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>

#include "common/base/mutex.h"

namespace muster::agent::probe {
namespace {

using testing::HasSubstr;

constexpr Duration kSoon = std::chrono::milliseconds(1);

// What the checks find, as the test says. Shared with the thread, which may outlive the test.
struct Watched {
  Mutex mutex;
  CondVar changed;
  bool hangs MUSTER_GUARDED_BY(mutex) = false;
  std::string id MUSTER_GUARDED_BY(mutex) = "aaaa";
  std::atomic<int> checks = 0, threads = 0;
};

struct OutputsWatchTest : testing::Test {
  std::shared_ptr<Watched> found = std::make_shared<Watched>();

  OutputsWatchOptions options(Duration hangs_after = std::chrono::minutes(1)) {
    return {.check =
                [found = found](const std::string& root) {
                  ++found->threads;
                  const MutexLock lock(found->mutex);
                  while (found->hangs) found->changed.wait(found->mutex);
                  v1::OutputsReading reading;
                  reading.set_root(root);
                  reading.set_storage_id(found->id);
                  ++found->checks;
                  --found->threads;
                  return reading;
                },
            .at_first = kSoon,
            .at_first_for = std::chrono::minutes(1),
            .interval = kSoon,
            .hangs_after = hangs_after};
  }
  void set(bool hangs, const std::string& id = "aaaa") {
    const MutexLock lock(found->mutex);
    found->hangs = hangs;
    found->id = id;
    found->changed.notify_all();
  }
  static v1::OutputsReading next(OutputsWatch& watch) {
    for (;;) {
      if (auto reading = watch.take()) return *reading;
      std::this_thread::yield();
    }
  }
  void await_checks(int more) {
    const int until = found->checks + more;
    while (found->checks < until) std::this_thread::yield();
  }
};

TEST_F(OutputsWatchTest, WhatIsNewIsTakenOnce) {
  const auto watch = OutputsWatch::start("/out", options());
  ASSERT_TRUE(watch);
  EXPECT_EQ(next(**watch).storage_id(), "aaaa");
  await_checks(3);
  EXPECT_FALSE((*watch)->take()) << "nothing has changed";
  (*watch)->send_again();
  EXPECT_EQ((*watch)->take()->storage_id(), "aaaa");
  set(false, "bbbb");
  EXPECT_EQ(next(**watch).storage_id(), "bbbb");
}

TEST_F(OutputsWatchTest, AnotherDirectory) {
  const auto watch = OutputsWatch::start("/out", options());
  EXPECT_EQ(next(**watch).root(), "/out");
  (*watch)->watch("/new");
  EXPECT_EQ(next(**watch).root(), "/new");
}

TEST_F(OutputsWatchTest, ACheckThatHangs) {
  set(true);
  {
    const auto watch = OutputsWatch::start("/out", options(kSoon));
    const v1::OutputsReading hangs = next(**watch);
    EXPECT_THAT(hangs.trouble(), HasSubstr("'/out' does not answer"));
    EXPECT_EQ(hangs.storage_id(), "");
    EXPECT_FALSE((*watch)->take()) << "said once";
    (*watch)->watch("/new");
    EXPECT_EQ(found->threads, 1) << "no other thread";
    set(false);
    while (next(**watch).storage_id() != "aaaa") {
    }
    set(true);
    while (found->threads == 0) std::this_thread::yield();
  }
  // stop() did not wait for it.
  set(false);
  while (found->threads != 0) std::this_thread::yield();
}

}  // namespace
}  // namespace muster::agent::probe
