// Looks once a second how much room the controller's disk has: says so once when there is a
// shortage, and once when it is over; has logs of finished jobs give room, and a ballast that was
// spent made again, also while nothing is appended or logged. Works on the work loop; stop() before
// that loop's.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "common/async/loop.h"

namespace muster::controller {

struct RoomWatchHooks {
  std::function<std::string()> shortage;  // why the disk takes no new jobs; empty: it does
  // while there is a shortage, and until the ballast is there again
  std::function<void()> give_room;
  std::function<bool()> ballast_is_there;
};

class RoomWatch {
 public:
  RoomWatch(async::Loop& work, RoomWatchHooks hooks, Duration apart = std::chrono::seconds(1));
  ~RoomWatch();  // stop() was called
  RoomWatch(const RoomWatch&) = delete;
  RoomWatch& operator=(const RoomWatch&) = delete;
  void stop();  // no hook runs afterwards; idempotent

 private:
  void check();

  async::Loop& work_;
  const RoomWatchHooks hooks_;
  const Duration apart_;
  bool short_ = false;  // the loop's, as the timer
  std::unique_ptr<async::Timer> timer_;
};

}  // namespace muster::controller
