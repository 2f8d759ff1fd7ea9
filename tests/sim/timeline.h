// Virtual time: one queue of what happens next. World owns the Timeline. It runs on its history's
// one thread.
//
// Events at equal times keep the order in which they were added. Nothing here waits.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace muster::sim {

using Time = std::int64_t;  // true nanoseconds since the history began; no machine can read it
inline constexpr Time kMicrosecond = 1'000, kMillisecond = 1'000'000, kSecond = 1'000'000'000,
                      kMinute = 60 * kSecond;
inline constexpr Time kNever = INT64_MAX;

using Deed = std::function<void()>;

class Timeline {
 public:
  [[nodiscard]] Time now() const { return now_; }
  void at(Time when, Deed deed);
  void after(Time delay, Deed deed) { at(now_ + delay, std::move(deed)); }
  [[nodiscard]] Time next() const { return heap_.empty() ? kNever : heap_.front().when; }
  // Returns false if the queue is empty.
  bool step();

 private:
  struct Entry {
    Time when;
    std::uint64_t order;
    Deed deed;
  };
  static bool later(const Entry& left, const Entry& right) {
    return left.when != right.when ? left.when > right.when : left.order > right.order;
  }

  Time now_ = 0;
  std::uint64_t order_ = 0;
  std::vector<Entry> heap_;
};

// A process that acts in time, and can die or be paused: a daemon or a worker. What it has
// scheduled dies with it, and waits while it is paused. An Actor outlives its incarnations: it
// exists for the whole history.
class Actor {
 public:
  explicit Actor(Timeline& timeline) : timeline_(timeline) {}
  Actor(const Actor&) = delete;
  Actor& operator=(const Actor&) = delete;

  void after(Time delay, Deed deed);
  void now(Deed deed) { after(0, std::move(deed)); }
  [[nodiscard]] bool alive() const { return alive_; }
  [[nodiscard]] bool paused() const { return paused_; }
  [[nodiscard]] std::uint64_t incarnation() const { return *incarnation_; }

 protected:
  ~Actor() { ++*incarnation_; }
  void begin_incarnation() {
    ++*incarnation_;
    alive_ = true;
  }
  void end_incarnation() {
    ++*incarnation_;
    alive_ = paused_ = false;
    deferred_.clear();
  }
  void hold() { paused_ = true; }
  // What was due in the meantime happens now, in order.
  void let_go();
  [[nodiscard]] Timeline& timeline() const { return timeline_; }

 private:
  Timeline& timeline_;
  bool alive_ = false, paused_ = false;
  // Shared with the deeds in the queue: an actor may be destroyed before its deeds are due.
  std::shared_ptr<std::uint64_t> incarnation_ = std::make_shared<std::uint64_t>(0);
  std::vector<Deed> deferred_;
};

}  // namespace muster::sim
