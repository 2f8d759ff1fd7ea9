// Ctrl-C and time-outs for verbs that block: Ctrl-C detaches, it never kills a job. One a process.
// Owns a thread that waits for SIGINT and SIGTERM (blocked everywhere else: so it is made before
// the first thread, that is before connect()) and for the deadline; it cancels the calls of its
// group.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

#include "client/commands/call_group.h"

namespace muster::client {

class Interrupt {
 public:
  // `timeout`: nothing = none.
  explicit Interrupt(std::optional<std::chrono::milliseconds> timeout);
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  [[nodiscard]] bool interrupted() const { return reason_ == Reason::Signal; }
  [[nodiscard]] bool timed_out() const { return reason_ == Reason::Time; }
  [[nodiscard]] bool fired() const { return reason_ != Reason::None; }

  CallGroup& calls() { return calls_; }
  // True as soon as it has fired, false when the time is over.
  bool wait_for(std::chrono::nanoseconds time) { return calls_.wait_for(time); }

  // For as long as it lives, `callback` is called once it fires, at once if it has: on the thread
  // of the interrupt or on this one. It must not touch the interrupt. One at a time.
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
  std::mutex mutex_;
  std::function<void()> on_fire_;  // mutex_
  std::atomic<Reason> reason_ = Reason::None;
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

}  // namespace muster::client
