#include "agent/probe/outputs_check.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include "folder.h"

namespace muster::agent::probe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

namespace fs = std::filesystem;

std::vector<std::string> instances(const v1::OutputsReading& reading) {
  return {reading.instances().begin(), reading.instances().end()};
}
std::vector<std::string> names(const fs::path& dir) {
  std::vector<std::string> all;
  for (const auto& entry : fs::directory_iterator(dir))
    all.push_back(entry.path().filename().string());
  std::ranges::sort(all);
  return all;
}

struct OutputsCheckTest : testing::Test {
  Folder folder;
  std::string root = folder.file("deep/out");
  fs::path own = fs::path(root) / ".muster";
};

TEST_F(OutputsCheckTest, AgentsOfOneStorageSeeEachOther) {
  const v1::OutputsReading first = check_outputs(root, "one");
  EXPECT_EQ(first.root(), root);
  EXPECT_EQ(first.trouble(), "");
  EXPECT_EQ(first.storage_id().size(), 32U);
  EXPECT_THAT(instances(first), ElementsAre("one"));
  const v1::OutputsReading second = check_outputs(root, "two");
  EXPECT_EQ(second.storage_id(), first.storage_id());
  EXPECT_THAT(instances(second), ElementsAre("one", "two"));
  EXPECT_THAT(instances(check_outputs(root, "one")), ElementsAre("one", "two"));
  const v1::OutputsReading other = check_outputs(folder.file("other"), "two");
  EXPECT_NE(other.storage_id(), first.storage_id());
}

// Agents of other nodes may run as other users, and jobs save next to it.
TEST_F(OutputsCheckTest, WhatItLeavesThere) {
  check_outputs(root, "one");
  check_outputs(root, "one");
  EXPECT_THAT(names(root), ElementsAre(".muster"));
  EXPECT_THAT(names(own), ElementsAre("seen", "storage"));
  const std::vector<std::string> marks = names(own / "seen");
  ASSERT_EQ(marks.size(), 1U) << "renewed, not added";
  EXPECT_TRUE(marks.front().starts_with("one."));
  struct stat info{};
  ASSERT_EQ(::stat((own / "seen").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777U, 01777U);
  ASSERT_EQ(::stat((own / "storage").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777U, 0644U);
}

TEST_F(OutputsCheckTest, MarksThatAreNotRenewedDoNotCount) {
  check_outputs(root, "one");
  const std::string mark = names(own / "seen").front();
  const long now = std::stol(mark.substr(mark.rfind('.') + 1));
  const auto leave = [&](const std::string& name, long minutes) {
    folder.write("deep/out/.muster/seen/" + name + "." + std::to_string(minutes), "");
  };
  leave("lately", now - 4);
  leave("gone", now - 7);
  leave("long-gone", now - 24 * 60 - 2);
  leave("of-a-clock-that-went-back", now + 100);
  leave("one", now - 3);
  folder.write("deep/out/.muster/seen/no mark", "");
  EXPECT_THAT(instances(check_outputs(root, "one")), ElementsAre("lately", "one"));
  const std::vector<std::string> left = names(own / "seen");
  EXPECT_EQ(left.size(), 5U) << "the oldest is removed, and so is its own of before";
  EXPECT_THAT(left, testing::Not(testing::Contains(testing::StartsWith("long-gone"))));
}

TEST_F(OutputsCheckTest, WhatOthersHavePutThere) {
  check_outputs(root, "one");
  folder.write("deep/out/.muster/storage", "no id");
  EXPECT_THAT(check_outputs(root, "one").trouble(), HasSubstr("does not hold an id"));
  EXPECT_THAT(instances(check_outputs(root, "one")), IsEmpty());
  fs::remove(own / "storage");
  folder.write("elsewhere", std::string(32, 'a') + "\n");
  fs::create_symlink(folder.file("elsewhere"), own / "storage");
  EXPECT_THAT(check_outputs(root, "one").trouble(), HasSubstr("/.muster/storage'")) << "a link";
  fs::remove(own / "storage");
  ASSERT_EQ(::mkfifo((own / "storage").c_str(), 0644), 0);
  EXPECT_NE(check_outputs(root, "one").trouble(), "") << "reading a pipe does not block";
  fs::remove_all(own);
  fs::create_directory(folder.path() / "mine");
  fs::create_symlink(folder.path() / "mine", own);
  EXPECT_THAT(check_outputs(root, "one").trouble(), HasSubstr("/.muster'"));
  EXPECT_THAT(names(folder.path() / "mine"), IsEmpty());
}

// Everybody may write where the marks are.
TEST_F(OutputsCheckTest, WhatOthersHavePutInThePlaceOfItsMark) {
  folder.write("elsewhere", "kept");
  const std::string elsewhere = folder.file("elsewhere");
  const timespec long_ago[2] = {{.tv_sec = 1000, .tv_nsec = 0}, {.tv_sec = 1000, .tv_nsec = 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, elsewhere.c_str(), long_ago, 0), 0);
  for (int kind = 0; kind < 3; ++kind) {
    check_outputs(root, "one");
    fs::remove_all(own / "seen");
    fs::create_directory(own / "seen");
    const std::string mark = (own / "seen" / "one.7").string();
    ASSERT_EQ(kind == 0   ? ::symlink(elsewhere.c_str(), mark.c_str())
              : kind == 1 ? ::mkfifo(mark.c_str(), 0644)
                          : ::link(elsewhere.c_str(), mark.c_str()),
              0);
    const v1::OutputsReading reading = check_outputs(root, "one");
    EXPECT_EQ(reading.trouble(), "") << kind;
    EXPECT_THAT(instances(reading), ElementsAre("one")) << kind;
    const std::vector<std::string> marks = names(own / "seen");
    ASSERT_EQ(marks.size(), 1U) << kind;
    EXPECT_NE(marks.front(), "one.7") << kind;
    struct stat info{};
    ASSERT_EQ(::lstat((own / "seen" / marks.front()).c_str(), &info), 0);
    EXPECT_TRUE(S_ISREG(info.st_mode)) << kind;
    ASSERT_EQ(::stat(elsewhere.c_str(), &info), 0);
    EXPECT_EQ(info.st_mtim.tv_sec, 1000) << kind << ": the file elsewhere was changed";
  }
}

TEST_F(OutputsCheckTest, WhatCannotBeWritten) {
  folder.write("file", "");
  const v1::OutputsReading reading = check_outputs(folder.file("file/out"), "one");
  EXPECT_THAT(reading.trouble(), HasSubstr("Not a directory"));
  EXPECT_EQ(reading.root(), folder.file("file/out"));
  EXPECT_EQ(reading.storage_id(), "");
}

}  // namespace
}  // namespace muster::agent::probe
