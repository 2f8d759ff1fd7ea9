// Logs are cut into segments that are never written again, whatever the log and the agent do.
#include "agent/outputs/log_segments.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "common/io/gzip.h"

namespace muster::agent {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

std::string bytes_in(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return (std::ostringstream() << in.rdbuf()).str();
}

std::string unzipped(const fs::path& file) {
  std::string text;
  const auto done = io::read_gzip(bytes_in(file), [&](std::string_view piece) {
    text += piece;
    return true;
  });
  return done ? text : done.error().message;
}

// A log by its logical offsets, with bytes that are lost.
struct TestLog {
  std::string text;
  std::uint64_t lost_from = 0, lost_to = 0;
  bool has_ended = false;
  std::size_t most_at_once = 1 << 30;

  [[nodiscard]] Result<LogPiece> read(std::uint64_t from, std::size_t most) const {
    LogPiece piece{.offset = from, .data = {}, .loss = {}, .final = false};
    if (from >= lost_from && from < lost_to) piece.offset = lost_to;
    std::size_t end = text.size();
    if (piece.offset < lost_from) end = lost_from;
    piece.data =
        text.substr(std::min<std::size_t>(piece.offset, text.size()),
                    std::min({most, most_at_once, end - std::min<std::size_t>(piece.offset, end)}));
    piece.final = has_ended && piece.offset + piece.data.size() >= text.size();
    return piece;
  }
};

std::string lines(std::size_t bytes) {
  std::string text;
  text.reserve(bytes + 32);
  for (int i = 0; text.size() < bytes; ++i) text += fmt::format("step {} of many\n", i);
  text.resize(bytes);
  if (bytes > 0) text.back() = '\n';
  return text;
}

class Segments : public testing::Test {
 protected:
  Segments() {
    std::string pattern = (fs::temp_directory_path() / "muster-segments-XXXXXX").string();
    dir_ = ::mkdtemp(pattern.data());
    open();
  }
  ~Segments() override { fs::remove_all(dir_); }
  // As an agent does that was killed.
  void open() {
    auto opened = LogSegments::open(dir_);
    ASSERT_TRUE(opened) << opened.error().message;
    segments_.emplace(*std::move(opened));
  }
  LogSegments::Cut cut() {
    const auto done = segments_->cut(
        "rank-0", [this](std::uint64_t from, std::size_t most) { return log_.read(from, most); });
    EXPECT_TRUE(done) << done.error().message;
    return done.value_or(LogSegments::Cut());
  }
  // {name: text}
  std::map<std::string, std::string> waiting() {
    std::map<std::string, std::string> all;
    const auto waits = segments_->waiting();
    EXPECT_TRUE(waits);
    for (const auto& [name, state] : *waits) all[name] = unzipped(segments_->segments_dir() / name);
    return all;
  }

  fs::path dir_;
  TestLog log_;
  std::optional<LogSegments> segments_;
};

TEST_F(Segments, OfAnEmptyLogThereAreNone) {
  EXPECT_EQ(cut().bytes, 0U);
  log_.has_ended = true;
  EXPECT_TRUE(cut().at_end);
  EXPECT_THAT(waiting(), IsEmpty());
}

TEST_F(Segments, AShortRestWaitsForTheEndOfTheLog) {
  log_.text = "hello\n";
  EXPECT_EQ(cut().bytes, 0U);
  EXPECT_FALSE(cut().at_end);
  EXPECT_FALSE(fs::exists(segments_->segments_dir())) << "not even a directory";
  log_.has_ended = true;
  const auto end = cut();
  EXPECT_EQ(end.bytes, 6U);
  EXPECT_TRUE(end.at_end);
  EXPECT_THAT(waiting(),
              ElementsAre(Pair("rank-0/000001-000000000000000-000000000000006.log.gz", "hello\n")));
}

TEST_F(Segments, EndBehindALineWhileTheLogGrows) {
  log_.text = lines(10'000) + "half a li";
  EXPECT_EQ(cut().bytes, 10'000U);
  log_.text += "ne\n" + lines(5'000);
  EXPECT_EQ(cut().bytes, 5'012U);
  std::string all;
  for (const auto& [name, text] : waiting()) all += text;
  EXPECT_EQ(all, log_.text);
}

TEST_F(Segments, ALineThatDoesNotEndIsCut) {
  log_.text = std::string(10'000, 'x');
  EXPECT_EQ(cut().bytes, 10'000U);
}

TEST_F(Segments, OneHas64MiBAtMost) {
  log_.text = lines(kSegmentMost);
  auto done = cut();
  EXPECT_EQ(done.bytes, kSegmentMost);
  EXPECT_TRUE(done.is_full);
  EXPECT_EQ(cut().bytes, 0U) << "exactly one";
  log_.text += lines(kSegmentMost) + "rest";
  log_.has_ended = true;
  done = cut();
  EXPECT_EQ(done.bytes, kSegmentMost);
  EXPECT_FALSE(done.at_end);
  done = cut();
  EXPECT_EQ(done.bytes, 4U);
  EXPECT_TRUE(done.at_end);
  std::string all;
  for (const auto& [name, text] : waiting()) all += text;
  EXPECT_TRUE(all == log_.text);
}

TEST_F(Segments, OneThatIsExactlyFullAtTheEndIsTheLast) {
  log_.text = std::string(kSegmentMost, 'x');
  log_.has_ended = true;
  const auto done = cut();
  EXPECT_EQ(done.bytes, kSegmentMost);
  EXPECT_TRUE(done.at_end);
  EXPECT_FALSE(done.is_full);
}

TEST_F(Segments, AHoleIsBetweenTwoSegments) {
  log_.text = lines(20'000);
  log_.lost_from = 5'000;  // in the middle of a line
  log_.lost_to = 9'000;
  log_.has_ended = true;
  auto done = cut();
  EXPECT_EQ(done.bytes, 5'000U);
  EXPECT_TRUE(done.is_full);
  done = cut();
  EXPECT_EQ(done.bytes, 11'000U);
  EXPECT_TRUE(done.at_end);
  EXPECT_THAT(
      waiting(),
      ElementsAre(
          Pair("rank-0/000001-000000000000000-000000000005000.log.gz", log_.text.substr(0, 5'000)),
          Pair("rank-0/000002-000000000009000-000000000020000.log.gz", log_.text.substr(9'000))));
}

TEST_F(Segments, BytesThatAreLostAtOnceAreInNone) {
  log_.text = lines(20'000);
  log_.lost_to = 9'000;
  EXPECT_EQ(cut().bytes, 11'000U);
  EXPECT_TRUE(waiting().contains("rank-0/000001-000000000009000-000000000020000.log.gz"));
}

TEST_F(Segments, SmallPiecesMakeOneSegment) {
  log_.text = lines(100'000);
  log_.most_at_once = 777;
  EXPECT_EQ(cut().bytes, 100'000U);
  EXPECT_EQ(waiting().begin()->second, log_.text);
}

// Killed between the cut and the record that it was sent.
TEST_F(Segments, AnotherAgentSendsTheSameBytesUnderTheSameName) {
  log_.text = lines(10'000);
  cut();
  const auto before = waiting();
  log_.text += lines(8'000);
  open();
  EXPECT_EQ(waiting(), before);
  cut();
  EXPECT_EQ(waiting().size(), 2U);
  EXPECT_TRUE(waiting().contains("rank-0/000002-000000000010000-000000000018000.log.gz"));
}

// Killed after the record, and before the segment was removed.
TEST_F(Segments, WhatWasSentIsNotSentAgain) {
  log_.text = lines(10'000);
  cut();
  const fs::path kept = dir_ / "kept",
                 segment = segments_->segments_dir() / waiting().begin()->first;
  fs::copy_file(segment, kept);
  ASSERT_TRUE(segments_->all_sent());
  EXPECT_FALSE(fs::exists(segment));
  fs::rename(kept, segment);
  open();
  EXPECT_THAT(waiting(), IsEmpty());
  EXPECT_FALSE(fs::exists(segment));
  EXPECT_EQ(segments_->segments_sent(), 1U);
  EXPECT_EQ(segments_->bytes_sent(), 10'000U);
  log_.text += "end\n";
  log_.has_ended = true;
  EXPECT_EQ(cut().bytes, 4U);
  EXPECT_TRUE(waiting().contains("rank-0/000002-000000000010000-000000000010004.log.gz"));
}

// Killed while it cut.
TEST_F(Segments, AnUnfinishedOneIsCutAnew) {
  fs::create_directories(segments_->segments_dir() / "rank-0");
  const fs::path unfinished = segments_->segments_dir() / "rank-0" / ".unfinished";
  std::ofstream(unfinished) << "half";
  open();
  EXPECT_THAT(waiting(), IsEmpty());
  EXPECT_FALSE(fs::exists(unfinished));
}

TEST_F(Segments, AFileThatIsReplacedOrCutGoesOnBehindWhatWasCut) {
  auto place = segments_->place("rank-0", 7, 10'000);
  ASSERT_TRUE(place);
  EXPECT_EQ(place->base, 0U);
  log_.text = lines(10'000);
  cut();
  EXPECT_EQ(segments_->place("rank-0", 7, 12'000)->base, 0U);
  EXPECT_EQ(segments_->place("rank-0", 7, 100)->base, 10'000U) << "it is shorter";
  EXPECT_EQ(segments_->place("rank-0", 8, 50'000)->base, 10'000U) << "it is another one";
  open();
  EXPECT_EQ(segments_->place("rank-0", 8, 50'000)->base, 10'000U);
}

TEST_F(Segments, ADamagedTableIsAnError) {
  std::ofstream(dir_ / "sent") << "1 2 rank-0\n";
  const auto opened = LogSegments::open(dir_);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, ErrorCode::DataLoss);
}

}  // namespace
}  // namespace muster::agent
