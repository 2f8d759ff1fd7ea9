#include "client/commands/call/options.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>

namespace muster::client {
namespace {

using namespace std::chrono_literals;
using std::chrono::sys_days;

TEST(Timeout, IsADuration) {
  for (const auto& [text, wanted] :
       std::vector<std::pair<const char*, std::chrono::milliseconds>>{{"30s", 30s},
                                                                      {"5m", 5min},
                                                                      {"2h", 2h},
                                                                      {"250ms", 250ms},
                                                                      {"1d", 24h},
                                                                      {"1.5s", 1500ms},
                                                                      {"1h30m", 90min},
                                                                      {"0", 0ms}}) {
    EXPECT_EQ(parse_timeout(text).value_or(-1ms), wanted) << text;
  }
  for (const char* text : {"", "soon", "-5s", "5 s", "nan", "inf", "1e10", "5w"})
    EXPECT_FALSE(parse_timeout(text).has_value()) << text;
}

// Regression: `--timeout 5` and `--since 5` meant five seconds, and `recovery.window: 5` was
// refused. Users who had learned minutes from another tool waited wrongly.
TEST(Timeout, WantsAUnit) {
  EXPECT_EQ(parse_timeout("5").error().message,
            "option --timeout: '5' is a number without a unit; write 5s, 5m or 5h (30s, 10m, 24h, "
            "7d, 1.5s, 1h30m)");
  EXPECT_NE(parse_timeout("1h30").error().message.find("write one behind each number"),
            std::string::npos);
  EXPECT_NE(parse_since("5", WallTime()).error().message.find("write 5s, 5m or 5h (so long ago)"),
            std::string::npos);
  EXPECT_TRUE(parse_since("5m", WallTime()));
}

// A deadline is computed in nanoseconds: a value that does not fit would be in the past.
TEST(Timeout, IsNeverTooLongForAClock) {
  EXPECT_FALSE(parse_timeout("999999999h").has_value());
  const auto most = parse_timeout("10000d");
  ASSERT_TRUE(most.has_value());
  EXPECT_GT(std::chrono::system_clock::now() + std::chrono::nanoseconds(*most),
            std::chrono::system_clock::now());
}

// CLI11's own parser reads -1, and values that do not fit, as the greatest number, and 010 as 8.
TEST(Number, IsWrittenInDigitsAndFits) {
  const auto read = [](const std::string& text, std::uint32_t& into) {
    CLI::App app;
    add_number_option(app, "--tail", into, "lines", 1);
    std::vector<std::string> args = {text, "--tail"};  // CLI11 reads them from the back
    try {
      app.parse(args);
    } catch (const CLI::ParseError&) {
      return false;
    }
    return true;
  };
  std::uint32_t number = 0;
  for (const auto& [text, wanted] : std::vector<std::pair<const char*, std::uint32_t>>{
           {"1", 1}, {"010", 10}, {"4294967295", 4294967295}}) {
    EXPECT_TRUE(read(text, number)) << text;
    EXPECT_EQ(number, wanted) << text;
  }
  for (const char* text : {"0", "-1", "+1", "", " 1", "1 ", "1.5", "0x10", "ten", "4294967296",
                           "99999999999999999999"})
    EXPECT_FALSE(read(text, number)) << text;
}

TEST(Ranks, AreNumbersAndRanges) {
  EXPECT_EQ(parse_ranks({"0", "8-10"}).value(), (std::vector<std::uint32_t>{0, 8, 9, 10}));
  EXPECT_TRUE(parse_ranks({})->empty());
  EXPECT_TRUE(parse_ranks({"all"})->empty());
  EXPECT_TRUE(parse_ranks({"3", "all"})->empty());
  for (const char* text : {"", "a-b", "-1", "1-", "3-1", "1-2-3", "0-100000",
                           "4294967290-4294967295", "4294967296", "1 "})
    EXPECT_FALSE(parse_ranks({text}).has_value()) << text;
}

class Since : public testing::Test {
 protected:
  Since() {
    ::setenv("TZ", "XYZ-2", 1);  // two hours east, all year
    ::tzset();
  }
  ~Since() override {
    ::unsetenv("TZ");
    ::tzset();
  }
  static WallTime at(std::chrono::year_month_day day, Duration time) {
    return WallTime(sys_days(day)) + time;
  }
  static constexpr std::chrono::year_month_day kDay{std::chrono::year(2026), std::chrono::March,
                                                    std::chrono::day(1)};
  const WallTime now_ = at(kDay, 12h + 30min);  // 14:30 in this time zone
  WallTime since(std::string_view text) { return parse_since(text, now_).value_or(WallTime{}); }
};

TEST_F(Since, SoLongAgo) {
  EXPECT_EQ(since("10m"), now_ - 10min);
  EXPECT_EQ(since("2d"), now_ - 48h);
}

TEST_F(Since, TheLastTimeTheClockShowedIt) {
  EXPECT_EQ(since("14:05"), at(kDay, 12h + 5min));
  EXPECT_EQ(since("14:05:30.25"), at(kDay, 12h + 5min + 30s + 250ms));
  EXPECT_EQ(since("14:30"), now_);
  EXPECT_EQ(since("14:31"), now_ + 1min - 24h) << "yesterday: today it has not been";
  EXPECT_EQ(since("00:00"), at(kDay, -2h));
}

TEST_F(Since, ADateHereOrWithItsZone) {
  EXPECT_EQ(since("2026-03-01"), at(kDay, -2h));
  EXPECT_EQ(since("2026-03-01T14:05"), at(kDay, 12h + 5min));
  EXPECT_EQ(since("2026-03-01 14:05:06.007"), at(kDay, 12h + 5min + 6s + 7ms));
  EXPECT_EQ(since("2026-03-01T14:05:06.007Z"), at(kDay, 14h + 5min + 6s + 7ms))
      << "as 'muster events -o json' writes it";
  EXPECT_EQ(since("2026-03-01T14:05+01:00"), at(kDay, 13h + 5min));
  EXPECT_EQ(since("2026-03-01T14:05-0530"), at(kDay, 19h + 35min));
}

TEST_F(Since, NonsenseIsRefused) {
  for (const char* text :
       {"", "soon", "90", "-5m", "25:00", "14:60", "14:5", "2026-02-30", "2026-13-01",
        "2026-03-01T", "2026-03-01T14", "2026-03-01T14:05X", "2026-03-01T14:05+",
        "2026-03-01T14:05Zulu", "+026-03-01", "14:05:", "1969-12-31"}) {
    const auto since = parse_since(text, now_);
    ASSERT_FALSE(since.has_value()) << text;
    EXPECT_EQ(since.error().code, ErrorCode::InvalidArgument);
  }
}

}  // namespace
}  // namespace muster::client
