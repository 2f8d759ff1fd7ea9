// An Interrupt handles Ctrl-C and time-outs for verbs that block. There is one in a process;
// connected() (call.h) and `muster import` create it for one verb. It owns a thread, which waits
// for SIGINT, SIGTERM and the deadline, and then cancels the calls of its group.
//
// Ctrl-C detaches and never kills a job. The signals are blocked in all other threads, so it must
// be created before the first thread, which means before connect().
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <thread>

#include "client/commands/call/call_group.h"
#include "common/base/mutex.h"

namespace muster::client {

class Interrupt {
 public:
  // Without `timeout` there is no deadline.
  explicit Interrupt(std::optional<std::chrono::milliseconds> timeout);
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  [[nodiscard]] bool interrupted() const { return reason_ == Reason::Signal; }
  [[nodiscard]] bool timed_out() const { return reason_ == Reason::Time; }
  [[nodiscard]] bool fired() const { return reason_ != Reason::None; }

  CallGroup& calls() { return calls_; }
  // Returns true as soon as the interrupt has fired, or false when the time is over.
  bool wait_for(std::chrono::nanoseconds time) { return calls_.wait_for(time); }

  // While an OnFire exists, `callback` is called once when the interrupt fires, or at once if it
  // has fired already. The call is on the interrupt's thread or on the creating thread. The
  // callback must not touch the interrupt. Only one OnFire may exist at a time.
  class OnFire {
   public:
    OnFire(Interrupt& owner, std::function<void()> callback);
    ~OnFire();
    OnFire(const OnFire&) = delete;
    OnFire& operator=(const OnFire&) = delete;

   private:
    Interrupt& owner_;
  };

 private:
  enum class Reason : std::uint8_t { None, Signal, Time };
  void run(std::optional<std::chrono::milliseconds> timeout);
  void fire(Reason reason);

  CallGroup calls_;
  Mutex mutex_;
  std::function<void()> on_fire_ MUSTER_GUARDED_BY(mutex_);
  std::atomic<Reason> reason_ = Reason::None;
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

}  // namespace muster::client
