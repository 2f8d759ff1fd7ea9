// What the threads of a following command share: the queue of news, calls that are cancelled
// together, and the interrupt.
#include <gtest/gtest.h>
#include <pthread.h>
#include <unistd.h>

#include <csignal>
#include <latch>
#include <memory>
#include <thread>

#include "client/commands/call/interrupt.h"
#include "client/commands/follow/news_queue.h"

namespace muster::client {
namespace {

using namespace std::chrono_literals;
constexpr auto kPatience = 20s;  // only a bound

// As in `muster`: only the thread of the interrupt gets these signals, whichever thread starts
// first here.
[[maybe_unused]] const bool kBlocked = [] {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  return pthread_sigmask(SIG_BLOCK, &set, nullptr) == 0;
}();

auto soon() { return std::chrono::steady_clock::now() + kPatience; }

TEST(NewsQueue, KeepsTheOrderAndMakesAFastReaderWait) {
  NewsQueue queue;
  constexpr std::size_t kAll = 3 * NewsQueue::kMost;
  std::thread reader([&] {
    for (std::size_t i = 0; i < kAll; ++i) {
      v1::ReadLogsResponse chunk;
      chunk.set_offset(i);
      queue.push(std::move(chunk));
    }
  });
  std::size_t next = 0;
  while (next < kAll) {
    const auto taken = queue.take(soon());
    EXPECT_LE(taken.size(), NewsQueue::kMost);
    if (taken.empty()) break;
    for (const News& news : taken) EXPECT_EQ(std::get<v1::ReadLogsResponse>(news).offset(), next++);
  }
  reader.join();
  EXPECT_EQ(next, kAll);
}

TEST(NewsQueue, ClosingWakesBothSides) {
  NewsQueue full, empty;
  std::latch pushing(1);
  std::thread reader([&] {
    for (std::size_t i = 0; i < NewsQueue::kMost; ++i) full.push(LogsEnded{});
    pushing.count_down();
    full.push(LogsEnded{});  // no room
  });
  std::thread printer([&] { EXPECT_TRUE(empty.take(soon()).empty()); });
  pushing.wait();
  full.close();
  empty.close();
  reader.join();
  printer.join();
  EXPECT_EQ(full.take(soon()).size(), NewsQueue::kMost) << "what came after the closing is dropped";
}

TEST(CallGroup, CancelsWhoeverWaits) {
  CallGroup group;
  EXPECT_FALSE(group.cancelled());
  EXPECT_FALSE(group.wait_for(0ns));
  std::thread waiting([&] { EXPECT_TRUE(group.wait_for(kPatience)); });
  grpc::ClientContext before, after;
  const CallGroup::Member one(group, before);
  group.cancel();
  // It is cancelled at once; otherwise a call that began a moment too late would never end.
  const CallGroup::Member late(group, after);
  waiting.join();
  EXPECT_TRUE(group.cancelled());
  EXPECT_TRUE(group.wait_for(0ns));
}

TEST(Interrupt, FiresOnceTheTimeIsUp) {
  Interrupt interrupt(1ms);
  EXPECT_TRUE(interrupt.wait_for(kPatience));
  EXPECT_TRUE(interrupt.timed_out());
  EXPECT_FALSE(interrupt.interrupted());
  int notified = 0;
  {
    const Interrupt::OnFire late(interrupt, [&] { ++notified; });
  }
  EXPECT_EQ(notified, 1);
}

TEST(Interrupt, FiresOnASignalAndTellsWhoIsThere) {
  Interrupt interrupt(std::nullopt);
  EXPECT_FALSE(interrupt.fired());
  std::latch notified(1);
  const Interrupt::OnFire there(interrupt, [&] { notified.count_down(); });
  ASSERT_EQ(::kill(::getpid(), SIGTERM), 0);
  notified.wait();
  EXPECT_TRUE(interrupt.interrupted());
  EXPECT_TRUE(interrupt.calls().cancelled());
}

TEST(Interrupt, EndsWithoutHavingFired) {
  const Interrupt interrupt(std::nullopt);
  EXPECT_FALSE(interrupt.fired());
}

// The callback is called even when the signal arrived before it was set. After it is removed,
// nobody is still running it.
TEST(Interrupt, TheCallbackMayGoAtAnyMoment) {
  for (int round = 0; round < 200; ++round) {
    Interrupt interrupt(std::chrono::milliseconds(round % 2));
    const auto value = std::make_unique<int>(round);
    int seen = -1;
    {
      const Interrupt::OnFire there(interrupt, [&seen, pointer = value.get()] { seen = *pointer; });
      if (round % 3 == 0) interrupt.wait_for(kPatience);
    }
    EXPECT_TRUE(seen == -1 || seen == round);
  }
}

}  // namespace
}  // namespace muster::client
