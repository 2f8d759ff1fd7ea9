#include "common/io/frames.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "common/io/file.h"

namespace muster::io {
namespace {

namespace fs = std::filesystem;

class Frames : public testing::Test {
 protected:
  Frames() {
    std::string pattern = (fs::temp_directory_path() / "frames.XXXXXX").string();
    dir_ = ::mkdtemp(pattern.data());
  }
  ~Frames() override { fs::remove_all(dir_); }
  [[nodiscard]] fs::path file() const { return dir_ / "events"; }
  void put(std::string_view bytes) const { std::ofstream(file(), std::ios::binary) << bytes; }
  fs::path dir_;
};

TEST_F(Frames, ComeBackAsTheyWereWritten) {
  auto writer = FrameWriter::open(file());
  ASSERT_TRUE(writer);
  ASSERT_TRUE(writer->append(std::vector<std::string>{"one", std::string("t\0wo", 4)}));
  ASSERT_TRUE(writer->append("three"));
  const auto read = read_frames(file(), 0);
  ASSERT_TRUE(read);
  EXPECT_THAT(read->frames, testing::ElementsAre("one", std::string("t\0wo", 4), "three"));
  EXPECT_EQ(read->tail, Tail::Clean);
  EXPECT_EQ(read->next, fs::file_size(file()));
  EXPECT_EQ(fs::status(file()).permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(Frames, LayoutOnDiskIsLittleEndianWithZlibsCrc) {
  // The format never changes: these bytes were computed by hand (crc32 of "abc" is 0x352441c2).
  EXPECT_EQ(encode_frame("abc"), std::string("\x03\0\0\0\xc2\x41\x24\x35"
                                             "abc",
                                             11));
}

TEST_F(Frames, FileThatIsNotThereHasNone) {
  const auto read = read_frames(file(), 0);
  ASSERT_TRUE(read);
  EXPECT_TRUE(read->frames.empty());
  EXPECT_EQ(read->tail, Tail::Clean);
}

TEST_F(Frames, CutAnywhereIsTornAndWholeOnesBeforeItStand) {
  const std::string bytes = encode_frame("first") + encode_frame("second");
  const std::size_t first = encode_frame("first").size();
  for (std::size_t cut = 0; cut < bytes.size(); ++cut) {
    put(bytes.substr(0, cut));
    const auto read = read_frames(file(), 0);
    ASSERT_TRUE(read);
    EXPECT_EQ(read->frames.size(), cut >= first ? 1U : 0U) << cut;
    EXPECT_EQ(read->tail, cut == 0 || cut == first ? Tail::Clean : Tail::Torn) << cut;
    EXPECT_EQ(read->next, cut >= first ? first : 0) << cut;
  }
}

TEST_F(Frames, AFlippedBitIsNeverReadAsAFrame) {
  const std::string sound = encode_frame("first") + encode_frame("second") + encode_frame("third");
  for (std::size_t bit = 0; bit < sound.size() * 8; ++bit) {
    std::string bytes = sound;
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << (bit % 8)));
    const auto decoded = decode_frames(bytes);
    EXPECT_LT(decoded.payloads.size(), 3U) << bit;
    for (const auto payload : decoded.payloads)
      EXPECT_TRUE(payload == "first" || payload == "second" || payload == "third") << bit;
    EXPECT_NE(decoded.tail, Tail::Clean) << bit;
  }
}

TEST_F(Frames, TailOfZerosIsDamageNotFrames) {
  put(encode_frame("first") + std::string(64, '\0'));
  const auto read = read_frames(file(), 0);
  ASSERT_TRUE(read);
  EXPECT_THAT(read->frames, testing::ElementsAre("first"));
  EXPECT_EQ(read->tail, Tail::Damaged);
}

TEST_F(Frames, FileShorterThanTheOffsetIsDamage) {
  put(encode_frame("first"));
  const auto read = read_frames(file(), 1000);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->tail, Tail::Damaged);
}

TEST_F(Frames, ReaderOfTenThousandInSmallBites) {
  auto writer = FrameWriter::open(file());
  ASSERT_TRUE(writer);
  std::vector<std::string> batch;
  for (int i = 0; i < 10000; ++i)
    batch.push_back("frame " + std::to_string(i) +
                    std::string(static_cast<std::size_t>(i % 97), '.'));
  ASSERT_TRUE(writer->append(batch));
  std::vector<std::string> seen;
  std::uint64_t offset = 0;
  for (bool more = true; more;) {
    // Many frames are longer than this, and are returned whole all the same.
    const auto read = read_frames(file(), offset, 50);
    ASSERT_TRUE(read);
    ASSERT_EQ(read->tail, Tail::Clean);
    ASSERT_TRUE(!read->frames.empty() || !read->more);
    seen.insert(seen.end(), read->frames.begin(), read->frames.end());
    offset = read->next;
    more = read->more;
  }
  EXPECT_EQ(seen, batch);
}

TEST_F(Frames, WriterCutsOffWhatADeadOneLeft) {
  put(encode_frame("first") + encode_frame("second").substr(0, 9));
  auto writer = FrameWriter::open(file());
  ASSERT_TRUE(writer);
  ASSERT_TRUE(writer->append("third"));
  const auto read = read_frames(file(), 0);
  ASSERT_TRUE(read);
  EXPECT_THAT(read->frames, testing::ElementsAre("first", "third"));
  EXPECT_EQ(read->tail, Tail::Clean);
}

TEST_F(Frames, WriterRefusesADamagedFile) {
  put(encode_frame("first") + std::string(64, '\xff'));
  const auto writer = FrameWriter::open(file());
  ASSERT_FALSE(writer);
  EXPECT_EQ(writer.error().code, ErrorCode::DataLoss);
}

TEST_F(Frames, FullDiskLeavesNoPartAndTheNextAppendWorks) {
  auto writer = FrameWriter::open(file());
  ASSERT_TRUE(writer);
  ASSERT_TRUE(writer->append("first"));
  // A limit on the file's size acts like a disk that is full after 5 more bytes.
  const auto old_action = ::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit tight{.rlim_cur = writer->size() + 5, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &tight), 0);
  const auto refused = writer->append(std::vector<std::string>{"second", "third"});
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  ::signal(SIGXFSZ, old_action);
  ASSERT_FALSE(refused);
  EXPECT_EQ(fs::file_size(file()), writer->size());
  ASSERT_TRUE(writer->append("fourth"));
  const auto read = read_frames(file(), 0);
  ASSERT_TRUE(read);
  EXPECT_THAT(read->frames, testing::ElementsAre("first", "fourth"));
}

// A job may put a link or a pipe in the file's place. The agent's loop must not wait there.
TEST_F(Frames, ALinkIsRefusedAndAPipeIsNotWaitedFor) {
  const fs::path other = dir_ / "other";
  ASSERT_TRUE(FrameWriter::open(other));
  fs::create_symlink(other, file());
  EXPECT_TRUE(read_frames(file(), 0));
  const auto refused = read_frames(file(), 0, 1024, Links::Refuse);
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->tail, Tail::Damaged);
  EXPECT_EQ(read_regular_file(file(), 1024, Links::Refuse).error().code, ErrorCode::DataLoss);
  EXPECT_FALSE(FrameWriter::open(file(), Links::Refuse));
  fs::remove(file());
  ASSERT_EQ(::mkfifo(file().c_str(), 0600), 0);
  const auto read = read_frames(file(), 0);
  ASSERT_TRUE(read);
  EXPECT_TRUE(read->frames.empty());
  EXPECT_FALSE(FrameWriter::open(file()));
}

TEST_F(Frames, ReservedRoomIsNotSeen) {
  auto writer = FrameWriter::open(file());
  ASSERT_TRUE(writer);
  writer->reserve(100000);
  ASSERT_TRUE(writer->append("first"));
  const auto read = read_frames(file(), 0);
  ASSERT_TRUE(read);
  EXPECT_THAT(read->frames, testing::ElementsAre("first"));
  EXPECT_EQ(read->tail, Tail::Clean);
}

}  // namespace
}  // namespace muster::io
