// One named thread with a queue (Boost.Asio inside): what is posted runs in order, one at a time.
// State that only ever is touched by one loop needs no lock. Every post has a name and is counted
// by it: queue time and run time a name are the first page of debugging.
//
// Lifetime: stop() runs what was posted before it, then joins; posts after it are dropped (their
// captures destroyed). The destructor asserts that stop() was called. Timer: on its loop's thread
// only; must die (or be cancelled) before its loop.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "common/base/time.h"

namespace muster::async {

using Task = std::move_only_function<void()>;

struct PostStats {
  std::string name;
  std::uint64_t count = 0;
  Duration queued{}, queued_max{};
  Duration ran{}, ran_max{};
};

class Loop {
 public:
  explicit Loop(std::string name);  // at most 15 characters: it is the thread's name
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  // Any thread. `name` must be a literal: it is kept as a pointer.
  void post(const char* name, Task task);
  [[nodiscard]] bool on_this() const;
  void stop();
  [[nodiscard]] std::vector<PostStats> stats() const;

 private:
  friend class Timer;
  friend class Signals;
  friend class Readable;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// One shot; arming again replaces. Counted under its name as well.
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

// Calls `handler` on the loop for each arriving signal of the set. Make it before other threads
// start: they inherit nothing from it, but the default action is replaced from here on.
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
// ready; level-triggered: a handler that leaves it ready is called again. Does not own the
// descriptor, which must stay open until cancel() or destruction, both on the loop's thread (or
// before or after its life). The handler may cancel or destroy its own Readable.
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
