// Logs are copied by a real rclone into a directory that plays the store.
#include "agent/outputs/upload_logs.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <sstream>

#include "common/io/gzip.h"

namespace muster::agent {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

const RunKey kRun{JobId("j"), AttemptNo(2)};

std::string bytes_of_file(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return (std::ostringstream() << in.rdbuf()).str();
}

class Logs final : public LogSource {
 public:
  std::vector<LogStatus> logs() override { return {}; }
  std::vector<LogName> logs_of(const RunKey&) override {
    std::vector<LogName> names;
    for (const auto& [name, text] : texts) names.push_back(name);
    return names;
  }
  Result<LogPiece> read(const LogName& name, std::uint64_t from, std::size_t most) override {
    const std::string& text = texts.at(name);
    LogPiece piece{.offset = from, .data = {}, .loss = {}, .final = false};
    piece.data = text.substr(std::min<std::size_t>(from, text.size()), most);
    piece.final = has_ended && from + piece.data.size() >= text.size();
    if (name == unreadable) return fail(ErrorCode::Io, "the disk does not answer");
    if (on_read) on_read();
    if (piece.data.empty()) texts.at(name) += std::string(grows, 'g');
    return piece;
  }
  void controller_has(const LogName&, std::uint64_t, std::uint64_t, bool) override {}
  void on_bytes(std::function<void()>) override {}

  std::map<LogName, std::string> texts;
  bool has_ended = false;
  std::function<void()> on_read;
  std::optional<LogName> unreadable;
  std::size_t grows = 0;  // by so many bytes each time its end was read
};

LogName rank(std::uint32_t number) { return {.run = kRun, .rank = RankNo(number)}; }

class UploadLogs : public testing::Test {
 protected:
  UploadLogs() {
    std::string pattern = (fs::temp_directory_path() / "muster-logs-XXXXXX").string();
    dir_ = ::mkdtemp(pattern.data());
    fs::create_directories(dir_ / "store");
    fs::create_directories(plogs());
  }
  ~UploadLogs() override { fs::remove_all(dir_); }
  [[nodiscard]] fs::path plogs() const { return dir_ / "run/plog/rank-0/debug/plog"; }
  Uploaded upload() {
    v1::LogUpload order;
    order.set_url("dir://d/logs/j");
    order.mutable_profile()->set_url("dir://d");
    order.mutable_profile()->set_endpoint(dir_ / "store");
    order.set_node("n07");
    const std::string key;
    return upload_logs({.upload = order,
                        .key = key,
                        .rate_limit = 0,
                        .abandoned = abandoned_,
                        .away_most = std::chrono::milliseconds(300)},
                       {.run = kRun,
                        .run_dir = dir_ / "run",
                        .dir = dir_ / "segments",
                        .logs = logs_,
                        .has_ended = logs_.has_ended});
  }
  [[nodiscard]] fs::path there(const std::string& log) const {
    return dir_ / "store/logs/j/attempt-2" / log;
  }
  // Names and texts of its segments.
  [[nodiscard]] std::string names(const std::string& log) const {
    std::string all;
    for (const fs::path& one : sorted(log)) all += one.filename().string() + " ";
    return all;
  }
  [[nodiscard]] std::string text(const std::string& log) const {
    std::string all;
    for (const fs::path& one : sorted(log)) {
      const auto done = io::read_gzip(bytes_of_file(one), [&](std::string_view piece) {
        all += piece;
        return true;
      });
      EXPECT_TRUE(done) << one;
    }
    return all;
  }
  [[nodiscard]] std::set<fs::path> sorted(const std::string& log) const {
    std::set<fs::path> all;
    std::error_code ignored;
    for (const auto& one : fs::directory_iterator(there(log), ignored)) all.insert(one.path());
    return all;
  }

  fs::path dir_;
  Logs logs_;
  Abandoned abandoned_;
};

// Regression: all logs of the node were lost, since this was the last upload.
TEST_F(UploadLogs, OneThatCannotBeReadStopsNoOther) {
  for (const std::uint32_t one : {0, 1, 2}) logs_.texts[rank(one)] = "text\n";
  logs_.unreadable = rank(1);
  logs_.has_ended = true;
  EXPECT_THAT(upload().problem, HasSubstr("the disk does not answer"));
  EXPECT_EQ(text("rank-0"), "text\n");
  EXPECT_EQ(text("rank-2"), "text\n");
  logs_.unreadable.reset();
  EXPECT_EQ(upload().problem, "");
  EXPECT_EQ(text("rank-1"), "text\n");
}

// Regression: a disk without room ended the last upload at once.
TEST_F(UploadLogs, ADiskThatGetsRoomIsWaitedFor) {
  logs_.texts[rank(0)] = "text\n";
  logs_.has_ended = true;
  const fs::path place = dir_ / "segments/segments/rank-0";
  int reads = 0;
  logs_.on_read = [&] {
    if (++reads == 1) {
      fs::create_directories(place.parent_path());
      std::ofstream(place) << "no segment can be made here";
    }
    if (reads == 2) fs::remove(place);
  };
  EXPECT_EQ(upload().problem, "");
  EXPECT_EQ(text("rank-0"), "text\n");
}

// Regression: logs that grew kept those behind them from their turn, and the upload did not end.
TEST_F(UploadLogs, EachOfManyLogsGetsItsTurn) {
  constexpr std::uint32_t kMany = 1'050;
  for (std::uint32_t one = 0; one < kMany; ++one) logs_.texts[rank(one)] = std::string(5'000, 'a');
  logs_.grows = 5'000;
  EXPECT_EQ(upload().problem, "");
  for (const std::uint32_t one : {0U, 999U, 1'000U, kMany - 1})
    EXPECT_THAT(sorted(fmt::format("rank-{}", one)),
                testing::SizeIs(testing::AllOf(testing::Ge(1), testing::Le(2))))
        << one;
}

TEST_F(UploadLogs, SegmentsAreAddedAndNeverWrittenAgain) {
  logs_.texts[rank(0)] = std::string(5'000, 'a') + "\n";
  EXPECT_EQ(upload().problem, "");
  EXPECT_EQ(names("rank-0"), "000001-000000000000000-000000000005001.log.gz ");
  const auto written = fs::last_write_time(*sorted("rank-0").begin());
  logs_.texts[rank(0)] += std::string(6'000, 'b') + "\n";
  logs_.texts[rank(1)] = "short\n";
  EXPECT_EQ(upload().problem, "");
  EXPECT_EQ(sorted("rank-0").size(), 2U);
  EXPECT_EQ(fs::last_write_time(*sorted("rank-0").begin()), written);
  EXPECT_TRUE(sorted("rank-1").empty()) << "it waits";
  logs_.texts[rank(0)] += "end";
  logs_.texts[{.run = kRun, .rank = RankNo(0), .auxiliary = "setup"}] = "made\n";
  logs_.has_ended = true;
  const Uploaded end = upload();
  EXPECT_EQ(end.problem, "");
  EXPECT_EQ(end.files, 5U);
  EXPECT_EQ(end.bytes, 11'002U + 3 + 6 + 5);
  EXPECT_EQ(text("rank-0"), logs_.texts[rank(0)]);
  EXPECT_EQ(text("rank-1"), "short\n");
  EXPECT_EQ(text("setup@n07"), "made\n");
}

// An endless task would keep others waiting, and each segment would be small.
TEST_F(UploadLogs, ALogThatGrowsIsNotFollowed) {
  logs_.texts[rank(0)] = std::string(5'000, 'a') + "\n";
  int reads = 0;
  logs_.on_read = [&] {
    if (++reads == 2) logs_.texts[rank(0)] += std::string(5'000, 'b') + "\n";
  };
  EXPECT_EQ(upload().problem, "");
  EXPECT_EQ(sorted("rank-0").size(), 1U);
}

TEST_F(UploadLogs, AStoreThatIsAwayGetsTheSameSegmentLater) {
  fs::remove_all(dir_ / "store");
  std::ofstream(dir_ / "store") << "no directory";
  logs_.texts[rank(0)] = std::string(5'000, 'a') + "\n";
  EXPECT_NE(upload().problem, "");
  logs_.texts[rank(0)] += std::string(5'000, 'b') + "\n";
  EXPECT_NE(upload().problem, "") << "nothing more is cut meanwhile";
  fs::remove(dir_ / "store");
  fs::create_directories(dir_ / "store");
  EXPECT_EQ(upload().problem, "");
  EXPECT_EQ(names("rank-0"),
            "000001-000000000000000-000000000005001.log.gz "
            "000002-000000000005001-000000000010002.log.gz ");
}

TEST_F(UploadLogs, ALogWithoutAnEndIsAProblem) {
  logs_.texts[rank(3)] = "some\n";
  Uploaded end;
  {
    v1::LogUpload order;
    order.set_url("dir://d/logs/j");
    order.mutable_profile()->set_url("dir://d");
    order.mutable_profile()->set_endpoint(dir_ / "store");
    const std::string key;
    end = upload_logs({.upload = order,
                       .key = key,
                       .rate_limit = 0,
                       .abandoned = abandoned_,
                       .away_most = std::chrono::milliseconds(300)},
                      {.run = kRun,
                       .run_dir = dir_ / "run",
                       .dir = dir_ / "segments",
                       .logs = logs_,
                       .has_ended = true});
  }
  EXPECT_THAT(end.problem, HasSubstr("the end of log 'rank-3' is not to be had"));
}

TEST_F(UploadLogs, ProcessLogsAreThereToo) {
  const std::string file = "debug/plog/plog-17_20260107224103518.log";
  logs_.texts[rank(0)] = "log\n";
  std::ofstream(plogs() / "plog-17_20260107224103518.log") << std::string(5'000, 'p') << "\n";
  std::ofstream(plogs() / "a name") << std::string(5'000, 'p');
  EXPECT_EQ(upload().problem, "");
  EXPECT_EQ(text("plog/rank-0/" + file).size(), 5'001U);
  // Another one has its name, and is shorter.
  fs::remove(plogs() / "plog-17_20260107224103518.log");
  std::ofstream(plogs() / "other") << "again\n";
  fs::rename(plogs() / "other", plogs() / "plog-17_20260107224103518.log");
  logs_.has_ended = true;
  EXPECT_EQ(upload().problem, "");
  EXPECT_EQ(names("plog/rank-0/" + file),
            "000001-000000000000000-000000000005001.log.gz "
            "000002-000000000005001-000000000005007.log.gz ");
  EXPECT_TRUE(text("plog/rank-0/" + file).ends_with("p\nagain\n"));
  EXPECT_FALSE(fs::exists(there("plog/rank-0/debug/plog/a name")));
}

// muster makes holes at the beginning of a process log that is too large.
TEST_F(UploadLogs, AHoleOfAProcessLogIsNoText) {
  logs_.texts[rank(0)] = "log\n";
  const fs::path file = plogs() / "plog-17_20260107224103518.log";
  std::ofstream(file) << "x";
  fs::resize_file(file, 100'000);
  std::ofstream(file, std::ios::app) << "rest\n";
  fs::resize_file(file, 0);
  fs::resize_file(file, 100'000);
  std::ofstream(file, std::ios::app) << "rest\n";
  logs_.has_ended = true;
  EXPECT_EQ(upload().problem, "");
  EXPECT_EQ(names("plog/rank-0/debug/plog/plog-17_20260107224103518.log"),
            "000001-000000000100000-000000000100005.log.gz ");
}

TEST_F(UploadLogs, OneThatIsAbandonedEnds) {
  logs_.texts[rank(0)] = "log\n";
  abandoned_.set();
  EXPECT_EQ(upload().files, 0U);
  EXPECT_FALSE(fs::exists(there("rank-0")));
}

}  // namespace
}  // namespace muster::agent
