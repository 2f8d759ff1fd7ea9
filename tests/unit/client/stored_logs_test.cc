// Logs are read from a directory that outputs.logs_to has made, without a controller.
#include "client/commands/job/stored_logs.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "common/io/gzip.h"
#include "common/io/unique_fd.h"
#include "common/store/log_segment.h"

namespace muster::client {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class StoredLogs : public testing::Test {
 protected:
  StoredLogs() {
    std::string pattern = (fs::temp_directory_path() / "muster-stored-XXXXXX").string();
    dir_ = ::mkdtemp(pattern.data());
  }
  ~StoredLogs() override { fs::remove_all(dir_); }
  void segment(const std::string& log, std::uint64_t sequence, std::uint64_t from,
               const std::string& text) const {
    fs::create_directories(dir_ / log);
    const std::string name =
        text_of(store::LogSegment{.sequence = sequence, .from = from, .to = from + text.size()});
    const io::UniqueFd fd(::open((dir_ / log / name).c_str(), O_WRONLY | O_CREAT, 0600));
    io::GzipWriter writer(fd.get());
    ASSERT_TRUE(writer.write(text));
    ASSERT_TRUE(writer.finish());
  }
  // What is given, with gaps in brackets; or the error.
  [[nodiscard]] std::string read(const std::string& log, std::uint64_t tail = 0) const {
    std::string text;
    const auto done = read_stored_log({.label = {.attempt = 1, .rank = 0}, .dir = dir_ / log}, tail,
                                      [&](const v1::ReadLogsResponse& chunk) {
                                        if (!chunk.gap().empty()) text += "[" + chunk.gap() + "]";
                                        text += chunk.data();
                                      });
    return done ? text : text + "!" + done.error().message;
  }
  fs::path dir_;
};

TEST_F(StoredLogs, AreFoundByTheirDirectories) {
  segment("attempt-2/rank-10", 1, 0, "a");
  segment("attempt-2/rank-9", 1, 0, "a");
  segment("attempt-2/setup@n07", 1, 0, "a");
  segment("attempt-1/rank-0", 1, 0, "a");
  segment("attempt-2/plog/rank-0/debug/plog/plog-1_2.log", 1, 0, "a");
  segment("attempt-x/rank-0", 1, 0, "a");
  segment("other", 1, 0, "a");
  const auto logs = find_stored_logs(dir_);
  ASSERT_TRUE(logs);
  std::string names;
  for (const StoredLog& log : *logs)
    names += std::to_string(log.label.attempt) + " " + log.label.text() + "; ";
  EXPECT_EQ(names, "1 rank 0; 2 rank 9; 2 rank 10; 2 n07 setup; ");
}

TEST_F(StoredLogs, ADirectoryWithoutLogsIsAnError) {
  const auto logs = find_stored_logs(dir_);
  ASSERT_FALSE(logs);
  EXPECT_EQ(logs.error().code, ErrorCode::NotFound);
  EXPECT_EQ(find_stored_logs(dir_ / "none").error().code, ErrorCode::NotFound);
}

TEST_F(StoredLogs, GiveTheirBytesInOrder) {
  for (std::uint64_t i = 1; i <= 11; ++i)
    segment("log", i, (i - 1) * 3, std::to_string(i % 10) + "a\n");
  EXPECT_EQ(read("log"), "1a\n2a\n3a\n4a\n5a\n6a\n7a\n8a\n9a\n0a\n1a\n");
  EXPECT_EQ(read("log", 2), "0a\n1a\n");
  EXPECT_EQ(read("log", 11), read("log"));
  EXPECT_EQ(read("log", 1'000), read("log"));
}

TEST_F(StoredLogs, ATailBeginsInTheMiddleOfASegment) {
  segment("log", 1, 0, "one\ntwo\nthr");
  segment("log", 2, 11, "ee\nfour");
  EXPECT_EQ(read("log", 1), "four");
  EXPECT_EQ(read("log", 2), "three\nfour");
  EXPECT_EQ(read("log", 3), "two\nthree\nfour");
  EXPECT_EQ(read("log", 4), "one\ntwo\nthree\nfour");
}

TEST_F(StoredLogs, SayWhatIsMissing) {
  segment("log", 1, 10, "a\n");
  segment("log", 2, 12, "b\n");
  segment("log", 4, 20, "c\n");
  segment("log", 7, 30, "d\n");
  EXPECT_EQ(read("log"),
            "[10 bytes were lost before they were uploaded]a\nb\n[segment 3 is not in the store]c\n"
            "[what segments 5 to 6 had is not in the store]d\n");
}

TEST_F(StoredLogs, GiveNoByteTwice) {
  segment("log", 1, 0, "one\n");
  segment("log", 1, 0, "one\ntwo\n");
  segment("log", 2, 8, "three\n");
  segment("log", 2, 6, "o\nthree\n");
  EXPECT_EQ(read("log"), "one\ntwo\nthree\n");
}

TEST_F(StoredLogs, ADamagedSegmentIsAnErrorBehindWhatIsSound) {
  segment("log", 1, 0, "one\n");
  segment("log", 2, 4, "two\n");
  fs::resize_file(dir_ / "log/000002-000000000000004-000000000000008.log.gz", 12);
  EXPECT_THAT(read("log"), testing::StartsWith("one\n!reading '"));
  EXPECT_THAT(read("log"), HasSubstr("its end is missing"));
}

}  // namespace
}  // namespace muster::client
