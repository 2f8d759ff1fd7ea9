// A Loop is one named thread with a queue of tasks (Boost.Asio inside). Daemons and their parts own
// loops: they create a loop and stop it. Tasks run on the loop's thread, one at a time, in the
// order of the posts.
//
// State that only one loop touches needs no lock. Every post has a name. The loop counts posts,
// queue time and run time for each name; these numbers are the first page of debugging.
//
// A loop is a capability of clang's thread-safety analysis (common/base/mutex.h), as a mutex is. A
// field that belongs to one loop says MUSTER_GUARDED_BY(loop_), and what uses it begins with
// loop_.assert_on(): clang checks that the call is there, and the call checks the thread.
//
// Lifetime of a Loop:
// - stop() runs what was posted before it, then joins the thread.
// - The loop drops posts after stop() and destroys their captures.
// - The destructor asserts that stop() was called.
//
// Use a Timer on its loop's thread only. A Timer must be destroyed or cancelled before its loop.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "common/base/mutex.h"
#include "common/base/time.h"

namespace muster::async {

using Task = std::move_only_function<void()>;

struct PostStats {
  std::string name;
  std::uint64_t count = 0;
  Duration queued{}, queued_max{};
  Duration ran{}, ran_max{};
};

class MUSTER_CAPABILITY("loop") Loop {
 public:
  explicit Loop(std::string name);  // at most 15 characters: the thread gets this name
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  // May be called on any thread. `name` must be a literal, because the loop keeps the pointer.
  void post(const char* name, Task task);
  // False as well on the thread that has stopped the loop.
  [[nodiscard]] bool on_this() const;
  // Stops the process unless it runs on this loop.
  void assert_on() const MUSTER_ASSERT_CAPABILITY(this);
  // For whoever made the loop, before it begins and after stop(). Stops the process unless nothing
  // was posted yet, or the loop has stopped: then no other thread uses what belongs to it. Timers
  // and other waits are not counted.
  void assert_idle() const MUSTER_ASSERT_CAPABILITY(this);
  void stop();
  [[nodiscard]] std::vector<PostStats> stats() const;

 private:
  friend class Timer;
  friend class Signals;
  friend class Readable;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// A timer that fires once. arm() replaces an earlier arm(). The loop counts the runs under `name`.
class Timer {
 public:
  Timer(Loop& loop, const char* name);
  ~Timer();
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;
  void arm(Duration after, Task task);
  void cancel();

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

// Calls `handler` on the loop for each signal of the set. Create it before other threads start:
// they inherit nothing from it, but it replaces the default action from then on.
class Signals {
 public:
  Signals(Loop& loop, std::initializer_list<int> numbers,
          std::move_only_function<void(int)> handler);
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;
  void cancel();

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

// Calls `handler` on the loop whenever the descriptor (pidfd, inotify, epoll, timerfd ...) is
// ready. It is level-triggered: a handler that leaves the descriptor ready is called again.
//
// A Readable does not own the descriptor. The descriptor must stay open until cancel() or the
// destructor. Call both on the loop's thread, or while the loop does not run. The handler may
// cancel or destroy its own Readable.
class Readable {
 public:
  enum class Ready : std::uint8_t { Read, Priority };  // POLLIN, POLLPRI
  Readable(Loop& loop, const char* name, int fd, std::function<void()> handler,
           Ready ready = Ready::Read);
  ~Readable();
  Readable(const Readable&) = delete;
  Readable& operator=(const Readable&) = delete;
  void cancel();

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace muster::async
