// RoomWatch checks once a second how much room the controller's disk has. run() in main.cc owns it.
// It runs on the work loop; call stop() before that loop's stop().
//
// It logs once when a shortage begins, and once when it is over. During a shortage it removes logs
// of finished jobs. It also restores a ballast that was given up. It does both even while nothing
// is appended or logged.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "common/async/loop.h"

namespace muster::controller {

struct RoomWatchHooks {
  std::function<std::string()> shortage;  // why the disk takes no new jobs; empty: it takes them
  // Called during a shortage, and until the ballast is restored.
  std::function<void()> give_room;
  std::function<bool()> ballast_is_there;
};

class RoomWatch {
 public:
  RoomWatch(async::Loop& work, RoomWatchHooks hooks, Duration apart = std::chrono::seconds(1));
  ~RoomWatch();  // stop() must have been called
  RoomWatch(const RoomWatch&) = delete;
  RoomWatch& operator=(const RoomWatch&) = delete;
  void stop();  // no hook runs afterwards; idempotent

 private:
  void check();

  async::Loop& work_;
  const RoomWatchHooks hooks_;
  const Duration apart_;
  bool short_ MUSTER_GUARDED_BY(work_) = false;
  std::unique_ptr<async::Timer> timer_ MUSTER_GUARDED_BY(work_);
  bool stopped_ = false;  // used by the thread that stops it
};

}  // namespace muster::controller
