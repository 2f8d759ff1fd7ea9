// Regression: after a full disk, nothing checked the disk again before the next append, and where
// nothing runs there is no append.
#include "controller/room_watch.h"

#include <gtest/gtest.h>

#include <future>
#include <mutex>

namespace muster::controller {
namespace {

TEST(RoomWatch, GivesRoomUntilTheBallastIsThereAgain) {
  struct Disk {
    std::mutex mutex;
    std::string why = "the disk is full";
    bool ballast = false;
    int given = 0, found_well = 0;
    std::promise<void> well;
  } disk;
  async::Loop work("work");
  RoomWatch watch(work,
                  {.shortage =
                       [&] {
                         const std::scoped_lock lock(disk.mutex);
                         if (disk.why.empty() && disk.ballast && ++disk.found_well == 2)
                           disk.well.set_value();
                         return disk.why;
                       },
                   .give_room =
                       [&] {
                         const std::scoped_lock lock(disk.mutex);
                         ++disk.given;
                         if (disk.given == 2) disk.why.clear();
                         if (disk.given == 4) disk.ballast = true;
                       },
                   .ballast_is_there =
                       [&] {
                         const std::scoped_lock lock(disk.mutex);
                         return disk.ballast;
                       }},
                  std::chrono::milliseconds(1));
  disk.well.get_future().wait();
  watch.stop();
  watch.stop();
  EXPECT_EQ(disk.given, 4) << "a disk that is well is left alone";
  work.stop();
}

}  // namespace
}  // namespace muster::controller
