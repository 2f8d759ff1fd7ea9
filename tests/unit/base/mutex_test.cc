// What the analysis of clang cannot check: that the wrappers do what std::mutex and
// std::condition_variable do. tests/tidy/threads_test.py shows what clang finds.
#include "common/base/mutex.h"

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <thread>

namespace muster {
namespace {

using Steady = std::chrono::steady_clock;
constexpr std::chrono::seconds kPatience(20);

class Counter {
 public:
  void add() {
    const MutexLock lock(mutex_);
    const int before = count_;
    std::this_thread::yield();
    count_ = before + 1;
    changed_.notify_all();
  }
  // Returns false when the time is over.
  bool wait_for(int count, Steady::time_point until) {
    const MutexLock lock(mutex_);
    while (count_ < count && changed_.wait_until(mutex_, until)) {
    }
    return count_ >= count;
  }
  void wait_for(int count) {
    const MutexLock lock(mutex_);
    while (count_ < count) changed_.wait(mutex_);
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  int count_ MUSTER_GUARDED_BY(mutex_) = 0;
};

TEST(Mutex, OneThreadAtATime) {
  Counter counter;
  constexpr int kEach = 2'000;
  const auto work = [&] {
    for (int i = 0; i < kEach; ++i) counter.add();
  };
  std::thread other(work);
  work();
  other.join();
  EXPECT_TRUE(counter.wait_for(2 * kEach, Steady::now()));
  EXPECT_FALSE(counter.wait_for(2 * kEach + 1, Steady::now()));
}

TEST(Mutex, IsFreeAtTheEndOfTheScope) {
  Mutex mutex;
  std::promise<void> freed;
  std::thread other;
  {
    const MutexLock lock(mutex);
    other = std::thread([&] {
      const MutexLock inner(mutex);
      freed.set_value();
    });
    EXPECT_EQ(freed.get_future().wait_for(std::chrono::milliseconds(20)),
              std::future_status::timeout);
  }
  other.join();
}

TEST(CondVar, WaitsUntilAnotherThreadChangesTheState) {
  Counter counter;
  std::thread other([&] { counter.wait_for(3); });
  for (int i = 0; i < 3; ++i) counter.add();
  other.join();
}

TEST(CondVar, NotifiesOneThatWaits) {
  Mutex mutex;
  CondVar changed;
  bool ready = false;
  std::thread other([&] {
    const MutexLock lock(mutex);
    while (!ready) changed.wait(mutex);
  });
  {
    const MutexLock lock(mutex);
    ready = true;
  }
  changed.notify_one();
  other.join();
}

TEST(CondVar, WaitUntilEndsAtItsTimeWithTheMutexLocked) {
  Mutex mutex;
  CondVar changed;
  std::future<void> other;
  const Steady::time_point until = Steady::now() + std::chrono::milliseconds(20);
  {
    const MutexLock lock(mutex);
    while (changed.wait_until(mutex, until)) {
    }
    EXPECT_GE(Steady::now(), until);
    other = std::async(std::launch::async, [&] { const MutexLock inner(mutex); });
    EXPECT_EQ(other.wait_for(std::chrono::milliseconds(20)), std::future_status::timeout);
  }
  EXPECT_EQ(other.wait_for(kPatience), std::future_status::ready);
}

TEST(CondVar, WaitForEndsAfterItsTime) {
  Mutex mutex;
  CondVar changed;
  const Steady::time_point begin = Steady::now();
  const MutexLock lock(mutex);
  while (changed.wait_for(mutex, std::chrono::milliseconds(20))) {
  }
  EXPECT_GE(Steady::now() - begin, std::chrono::milliseconds(20));
}

TEST(CondVar, WaitUntilEndsEarlyWhenTheStateChanges) {
  Counter counter;
  const Steady::time_point begin = Steady::now();
  std::thread other([&] { counter.add(); });
  EXPECT_TRUE(counter.wait_for(1, begin + kPatience));
  EXPECT_LT(Steady::now() - begin, kPatience);
  other.join();
}

}  // namespace
}  // namespace muster
