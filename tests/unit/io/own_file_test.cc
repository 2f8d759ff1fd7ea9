// What is believed belongs to this process's user, and nobody else may write it.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "common/io/beneath.h"
#include "common/io/frames.h"

namespace muster::io {
namespace {

namespace fs = std::filesystem;

class OwnFile : public testing::Test {
 protected:
  OwnFile() {
    std::string pattern = (fs::temp_directory_path() / "own.XXXXXX").string();
    dir_ = ::mkdtemp(pattern.data());
    auto writer = FrameWriter::open(file());
    EXPECT_TRUE(writer && writer->append("one"));
  }
  ~OwnFile() override { fs::remove_all(dir_); }
  [[nodiscard]] fs::path file() const { return dir_ / "mark"; }
  // A file of another user at the place: root gives it away, and everybody else takes one of root.
  [[nodiscard]] fs::path of_another() const {
    if (::geteuid() != 0) return "/etc/passwd";
    EXPECT_EQ(::chown(file().c_str(), 65534, 65534), 0);
    return file();
  }
  [[nodiscard]] static std::string owner_of(const fs::path& path) {
    struct stat info{};
    EXPECT_EQ(::stat(path.c_str(), &info), 0);
    return std::to_string(info.st_uid);
  }
  fs::path dir_;
};

TEST_F(OwnFile, IsReadAndWritten) {
  EXPECT_EQ(read_frames(file(), 0, kReadMost, Links::Own)->frames.size(), 1U);
  auto writer = FrameWriter::open(file(), Links::Own);
  ASSERT_TRUE(writer);
  EXPECT_TRUE(writer->append("two"));
  EXPECT_EQ(read_frames(file(), 0, kReadMost, Links::Own)->frames.size(), 2U);
  EXPECT_TRUE(read_regular_file(file(), 1000, Links::Own));
}

TEST_F(OwnFile, OfAnotherUserIsNotBelievedAndTheSentenceNamesHim) {
  const fs::path path = of_another();
  const std::string sentence = "reading '" + path.string() + "': it belongs to user " +
                               owner_of(path) + ", and this process is of user " +
                               std::to_string(::geteuid()) + "; it is not believed";
  const auto text = read_regular_file(path, 1 << 20, Links::Own);
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().code, ErrorCode::DataLoss);
  EXPECT_EQ(text.error().message, sentence);
  const auto frames = read_frames(path, 0, kReadMost, Links::Own);
  ASSERT_TRUE(frames);
  EXPECT_TRUE(frames->frames.empty());
  EXPECT_EQ(frames->tail, Tail::Damaged);
  EXPECT_EQ(frames->wrong, sentence);
  EXPECT_TRUE(read_regular_file(path, 1 << 20, Links::Refuse)) << "it can be read all the same";
}

TEST_F(OwnFile, ThatOthersMayWriteIsNotBelieved) {
  for (const unsigned mode : {0620U, 0602U}) {
    ASSERT_EQ(::chmod(file().c_str(), mode), 0);
    EXPECT_EQ(read_frames(file(), 0, kReadMost, Links::Own)->tail, Tail::Damaged);
    EXPECT_EQ(FrameWriter::open(file(), Links::Own).error().code, ErrorCode::DataLoss);
  }
  ASSERT_EQ(::chmod(file().c_str(), 0644), 0);
  EXPECT_EQ(read_frames(file(), 0, kReadMost, Links::Own)->tail, Tail::Clean);
}

// A writer cuts off what looks like a torn end. In another file that is the file's content.
TEST_F(OwnFile, WithAnotherNameIsNotWritten) {
  const fs::path canary = dir_ / "canary";
  std::ofstream(canary) << "ab";
  fs::remove(file());
  fs::create_hard_link(canary, file());
  const auto writer = FrameWriter::open(file(), Links::Own);
  ASSERT_FALSE(writer);
  EXPECT_EQ(writer.error().code, ErrorCode::DataLoss);
  EXPECT_NE(writer.error().message.find("hard link"), std::string::npos);
  EXPECT_FALSE(overwrite_file(file(), "new"));
  EXPECT_EQ(*read_file(canary, 10), "ab");
  // replaced, and not written
  EXPECT_TRUE(replace_file(file(), "new", Durable::No));
  EXPECT_EQ(*read_file(canary, 10), "ab");
}

TEST_F(OwnFile, OverwritingWaitsForNoPipeAndFollowsNoLink) {
  fs::create_symlink(file(), dir_ / "link");
  EXPECT_FALSE(overwrite_file(dir_ / "link", "new"));
  ASSERT_EQ(::mkfifo((dir_ / "pipe").c_str(), 0600), 0);
  EXPECT_FALSE(overwrite_file(dir_ / "pipe", "new"));
}

// The functions of file.h in an open directory: they stay in it when its name leads elsewhere.
TEST_F(OwnFile, InAnOpenDirectoryIsWhereItWasOpened) {
  const fs::path run = dir_ / "run", away = dir_ / "away";
  fs::create_directories(run);
  fs::create_directories(dir_ / "other");
  const auto dir = Beneath::open(run);
  ASSERT_TRUE(dir);
  fs::rename(run, away);
  fs::create_directory_symlink(dir_ / "other", run);
  EXPECT_TRUE(replace_file(dir->at("lease"), "new", Durable::Yes));
  EXPECT_TRUE(*create_file(dir->at("claim"), "first", Durable::Yes));
  EXPECT_FALSE(*create_file(dir->at("claim"), "second", Durable::Yes));
  auto writer = FrameWriter::open(dir->at("mark"), Links::Own);
  ASSERT_TRUE(writer);
  EXPECT_TRUE(writer->append("one"));
  EXPECT_TRUE(fs::is_empty(dir_ / "other"));
  EXPECT_EQ(*read_file(away / "lease", 10), "new");
  EXPECT_EQ(*read_regular_file(dir->at("claim"), 10, Links::Own), "first");
  const auto missing = read_regular_file(dir->at("none"), 10, Links::Own);
  EXPECT_EQ(missing.error().code, ErrorCode::NotFound);
  EXPECT_EQ(missing.error().message,
            "opening '" + (run / "none").string() + "': No such file or directory");
}

}  // namespace
}  // namespace muster::io
