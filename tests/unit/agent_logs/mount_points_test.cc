#include "agent/logs/mount_points.h"

#include <gtest/gtest.h>

namespace muster::agent {
namespace {

constexpr std::uint64_t number(std::uint64_t major, std::uint64_t minor) {
  return major << 32U | minor;
}

constexpr const char* kMountinfo =
    "27 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n"
    "22 27 0:21 / /proc rw,relatime shared:5 - proc proc rw\n"
    "40 27 0:50 / /data rw,relatime - nfs4 server:/data rw,hard\n"
    "41 40 0:51 /jobs /data/jobs rw,relatime - nfs4 other:/ rw,hard\n"
    "42 27 0:50 /a /srv/same rw,relatime - nfs4 server:/data rw,hard\n"
    "43 27 0:52 / /with\\040space rw,relatime - nfs4 third:/ rw\n"
    "44 27 0:53 / /covered rw - tmpfs tmpfs rw\n"
    "45 44 0:54 / /covered rw - tmpfs tmpfs rw\n";

TEST(MountPoints, TheLongestMountPointAboveThePathCounts) {
  EXPECT_EQ(mount_in(kMountinfo, "/home/x"), number(254, 0));
  EXPECT_EQ(mount_in(kMountinfo, "/data"), number(0, 50));
  EXPECT_EQ(mount_in(kMountinfo, "/data/other/x"), number(0, 50));
  EXPECT_EQ(mount_in(kMountinfo, "/data/jobs/x/y"), number(0, 51));
  EXPECT_EQ(mount_in(kMountinfo, "/data/jobs-of-mine"), number(0, 50));
  EXPECT_EQ(mount_in(kMountinfo, "/database"), number(254, 0));
  EXPECT_EQ(mount_in(kMountinfo, "/srv/same/x"), number(0, 50)) << "the same file system";
  EXPECT_EQ(mount_in(kMountinfo, "/with space/x"), number(0, 52));
  EXPECT_EQ(mount_in(kMountinfo, "/covered/x"), number(0, 54)) << "the later mount is on top";
}

TEST(MountPoints, WhatCannotBeKnownHasNoNumber) {
  EXPECT_EQ(mount_in(kMountinfo, "relative"), 0U);
  EXPECT_EQ(mount_in(kMountinfo, ""), 0U);
  EXPECT_EQ(mount_in("", "/x"), 0U);
  EXPECT_EQ(mount_in("27 1 nonsense / / rw\n27\n\n", "/x"), 0U);
}

TEST(MountPoints, ReadsThoseOfThisProcess) {
  EXPECT_NE(mount_of("/no-such-directory/x"), 0U);
  EXPECT_NE(mount_of("/proc/x"), mount_of("/no-such-directory/x"));
  EXPECT_EQ(mount_of("/proc/../no-such-directory"), mount_of("/no-such-directory"));
}

}  // namespace
}  // namespace muster::agent
