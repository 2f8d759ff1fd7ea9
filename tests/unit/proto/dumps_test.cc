// tests/support/dumps.h: what is frozen is written once, and read by its words.
#include "tests/support/dumps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

namespace muster::test {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre, testing::HasSubstr, testing::ThrowsMessage;

class FrozenDumps : public testing::Test {
 public:
  FrozenDumps() {
    std::string pattern = (fs::temp_directory_path() / "muster-dumps-XXXXXX").string();
    root_ = ::mkdtemp(pattern.data());
    if (const char* dir = std::getenv("MUSTER_WRITE_DUMP")) outside_ = dir;
    ::setenv("MUSTER_WRITE_DUMP", root_.c_str(), 1);
  }
  ~FrozenDumps() override {
    if (outside_.empty())
      ::unsetenv("MUSTER_WRITE_DUMP");
    else
      ::setenv("MUSTER_WRITE_DUMP", outside_.c_str(), 1);
    std::error_code ignored;
    fs::remove_all(root_, ignored);
  }
  FrozenDumps(const FrozenDumps&) = delete;
  FrozenDumps& operator=(const FrozenDumps&) = delete;

 protected:
  fs::path root_;
  const DumpFiles files_ = {"one", "two"};

 private:
  std::string outside_;
};

TEST_F(FrozenDumps, ANewOneGetsTheNextFolder) {
  EXPECT_THAT(dumps_with("f", files_), ElementsAre());
  for (const char* folder : {"v1", "v1.1", "v1.2"}) {
    const fs::path next = next_dump("f", files_);
    EXPECT_EQ(next, root_ / "f" / folder);
    for (const std::string& file : files_) write_dump_file(next / file, folder);
  }
  EXPECT_THAT(dumps_with("f", files_),
              ElementsAre(root_ / "f/v1", root_ / "f/v1.1", root_ / "f/v1.2"));
  EXPECT_EQ(next_dump("f", {"other"}), root_ / "f/v1");
}

TEST_F(FrozenDumps, NothingIsOverwritten) {
  write_dump_file(root_ / "f/v1/one", "first");
  const auto again = [this] { write_dump_file(root_ / "f/v1/one", "second"); };
  EXPECT_THAT(again,
              ThrowsMessage<std::runtime_error>(HasSubstr("a file of a dump is never written "
                                                          "again")));
  EXPECT_EQ(read_dump(root_ / "f/v1/one"), "first");
  // Its folder is a dump of which a part is lost: no second one is begun in its place.
  EXPECT_THAT([this] { dumps_with("f", files_); },
              ThrowsMessage<std::runtime_error>(HasSubstr("f/v1/two")));
  // A file that is lost, too, because the manifest has it.
  write_dump_file(root_ / "MANIFEST", std::string(64, '0') + "  f/v1/one\n");
  fs::remove(root_ / "f/v1/one");
  EXPECT_THAT(again, ThrowsMessage<std::runtime_error>(HasSubstr("restore it with git")));
  EXPECT_FALSE(fs::exists(root_ / "f/v1/one"));
}

TEST_F(FrozenDumps, EverybodyMayReadACopiedFolder) {
  write_dump_file(root_ / "state/runs/one", "a");
  fs::permissions(root_ / "state/runs/one", fs::perms::owner_read);
  fs::permissions(root_ / "state/runs", fs::perms::owner_all);
  write_dump_folder(root_ / "state", root_ / "f/v1/state");
  EXPECT_EQ(fs::status(root_ / "f/v1/state/runs/one").permissions(), fs::perms(0644));
  EXPECT_EQ(fs::status(root_ / "f/v1/state/runs").permissions(), fs::perms(0755));
  EXPECT_THROW(write_dump_folder(root_ / "state", root_ / "f/v1/state"), std::runtime_error);
}

TEST(FrozenWords, MayBeMoreThanTheyWere) {
  const std::string frozen = "job j1 phase=done\n  attempt 1 charged=1\n";
  EXPECT_EQ(first_line_lost(frozen, frozen), "");
  EXPECT_EQ(
      first_line_lost(frozen, "new line\njob j1 name=x phase=done\n  attempt 1 charged=1 n=2\n"),
      "");
  EXPECT_EQ(first_line_lost(frozen, "job j1 phase=done\n  attempt 1 charged=0\n"),
            "  attempt 1 charged=1");
  EXPECT_EQ(first_line_lost(frozen, "  attempt 1 charged=1\njob j1 phase=done\n"),
            "  attempt 1 charged=1")
      << "in another order";
  EXPECT_EQ(first_line_lost(frozen, ""), "job j1 phase=done");
}

}  // namespace
}  // namespace muster::test
