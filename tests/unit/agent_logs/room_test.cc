#include "agent/logs/room.h"

#include "tests/unit/agent_logs/subject_ground.h"

namespace muster::agent {
namespace {

class RoomKeeperTest : public SubjectTest {};

TEST_F(RoomKeeperTest, BytesThatAreGivenUpAreReportedOnceUntilThereIsRoomAgain) {
  std::uint64_t free = (200 << 10) - 40960;
  options_.disk_mark = 200 << 10;
  options_.free_bytes = [&](const std::filesystem::path&) { return free; };
  const auto tail = rank_tail(0);
  test::Appender(log(0)).write(std::string(1 << 20, 'x'));
  std::vector<char> buffer(1 << 21);
  ASSERT_TRUE(tail->file->parse_next(buffer).has_value());
  RoomKeeper room(options_, tools().reports, now());
  EXPECT_FALSE(room.due(now()));
  EXPECT_TRUE(room.due(now() + options_.blind_scan));
  int full = 0;
  const auto keep = [&] { room.keep(now(), {tail->file}, run_dir_, [&] { ++full; }); };
  keep();
  EXPECT_EQ(troubles_,
            std::vector<std::string>{
                "keeping room on the disk of '" + run_dir_.string() +
                "': 40960 unshipped bytes of the oldest log lines were given up; free some space"});
  keep();
  EXPECT_EQ(troubles_.size(), 1U);
  EXPECT_EQ(full, 2) << "what is less than a log is given up first, each time";
  free = 1 << 30;
  keep();
  EXPECT_EQ(full, 2);
  free = 0;
  keep();
  EXPECT_EQ(troubles_.size(), 2U);
}

}  // namespace
}  // namespace muster::agent
