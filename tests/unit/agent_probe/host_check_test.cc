#include "agent/probe/host_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "folder.h"

namespace muster::agent::probe {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(HostCheck, TheDiskOfTheStateDirectory) {
  const Folder folder;
  const v1::HostReading reading = check_host({.state_dir = folder.path(),
                                              .path = folder.path().string(),
                                              .cgroup_trouble = "no control groups"});
  EXPECT_EQ(reading.state_dir(), folder.path().string());
  EXPECT_GT(reading.disk_bytes(), 0U);
  EXPECT_LE(reading.disk_bytes_free(), reading.disk_bytes());
  EXPECT_LE(reading.inodes_free(), reading.inodes());
  EXPECT_FALSE(reading.read_only());
  EXPECT_EQ(reading.disk_error(), "");
  EXPECT_EQ(reading.cgroup_trouble(), "no control groups");
}

TEST(HostCheck, ADiskThatCannotBeRead) {
  const v1::HostReading reading = check_host({.state_dir = "/no/such/directory", .path = ""});
  EXPECT_EQ(reading.disk_error(), "No such file or directory");
  EXPECT_EQ(reading.disk_bytes(), 0U);
}

TEST(HostCheck, Programs) {
  const Folder folder;
  const auto missing = [&] {
    const v1::HostReading reading =
        check_host({.state_dir = folder.path(), .path = folder.path().string()});
    return std::vector<std::string>(reading.missing_tools().begin(), reading.missing_tools().end());
  };
  const auto install = [&](const std::string& name) {
    folder.write(name, "#!/bin/sh\n");
    ASSERT_EQ(::chmod(folder.file(name).c_str(), 0755), 0);
  };
  EXPECT_THAT(missing(),
              ElementsAre("podman or docker: runtime.image", "git: code.patches",
                          "python3: runtime.python: auto", "getent: names of users and hosts"));
  install("docker");  // one of the two is enough
  install("git");
  EXPECT_THAT(missing(),
              ElementsAre("python3: runtime.python: auto", "getent: names of users and hosts"));
  install("python3");
  install("getent");
  EXPECT_THAT(missing(), IsEmpty());
}

}  // namespace
}  // namespace muster::agent::probe
