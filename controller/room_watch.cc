#include "controller/room_watch.h"

#include <future>
#include <utility>

#include "common/base/assert.h"
#include "common/log/log.h"

namespace muster::controller {

RoomWatch::RoomWatch(async::Loop& work, RoomWatchHooks hooks, Duration apart)
    : work_(work),
      hooks_(std::move(hooks)),
      apart_(apart),
      timer_(std::make_unique<async::Timer>(work, "room")) {
  work_.post("room", [this] { check(); });
}

RoomWatch::~RoomWatch() { MUSTER_ASSERT(stopped_, "a room watch was destroyed before stop()"); }

void RoomWatch::stop() {
  if (std::exchange(stopped_, true)) return;
  std::promise<void> stopped;
  work_.post("room", [&] {
    work_.assert_on();
    timer_.reset();
    stopped.set_value();
  });
  stopped.get_future().wait();
}

void RoomWatch::check() {
  work_.assert_on();
  if (timer_ == nullptr) return;
  const std::string why = hooks_.shortage();
  if (!why.empty() && !short_) log::warn(why + "; new jobs are refused until there is room");
  if (why.empty() && short_) log::info("the controller's disk has room again; new jobs are taken");
  short_ = !why.empty();
  if (short_ || !hooks_.ballast_is_there()) hooks_.give_room();
  timer_->arm(apart_, [this] { check(); });
}

}  // namespace muster::controller
