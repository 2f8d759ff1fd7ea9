#include "client/commands/call/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <ctime>
#include <optional>
#include <utility>

#include "common/base/duration.h"

namespace muster::client {
namespace {

using std::chrono::milliseconds;

// "5" or "1.5": a time without its unit.
bool bare_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789.") == std::string_view::npos;
}

// Removes digits and separators from the front of a time.
class Scan {
 public:
  explicit Scan(std::string_view text) : text_(text) {}
  // Reads exactly `digits` digits.
  std::optional<int> number(std::size_t digits) {
    int value = 0;
    if (text_.size() < digits ||
        std::from_chars(text_.data(), text_.data() + digits, value).ptr != text_.data() + digits ||
        text_.front() == '-')
      return std::nullopt;
    text_.remove_prefix(digits);
    return value;
  }
  bool mark(char c) {
    if (!text_.starts_with(c)) return false;
    text_.remove_prefix(1);
    return true;
  }
  // Reads the fraction of a second after the point.
  Duration fraction() {
    Duration value{0};
    for (Duration unit = milliseconds(100);
         !text_.empty() && text_.front() >= '0' && text_.front() <= '9'; unit /= 10) {
      value += (text_.front() - '0') * unit;
      text_.remove_prefix(1);
    }
    return value;
  }
  [[nodiscard]] bool done() const { return text_.empty(); }

 private:
  std::string_view text_;
};

struct TimeOfDay {
  int hour = 0, minute = 0, second = 0;
  Duration part{0};
};

std::optional<TimeOfDay> clock_of(Scan& scan) {
  TimeOfDay clock;
  const auto hour = scan.number(2);
  if (!hour || !scan.mark(':')) return std::nullopt;
  const auto minute = scan.number(2);
  const auto second = minute && scan.mark(':') ? scan.number(2) : std::optional(0);
  if (!minute || !second || *hour > 23 || *minute > 59 || *second > 60) return std::nullopt;
  if (scan.mark('.')) clock.part = scan.fraction();
  clock.hour = *hour;
  clock.minute = *minute;
  clock.second = *second;
  return clock;
}

// Returns minutes east of Greenwich, or an inner nothing for "here". The outer nothing means that
// the text is not a zone.
std::optional<std::optional<int>> zone_of(Scan& scan) {
  if (scan.done()) return std::optional<int>();
  if (scan.mark('Z')) return std::optional(0);
  const bool east = scan.mark('+');
  if (!east && !scan.mark('-')) return std::nullopt;
  const auto hours = scan.number(2);
  scan.mark(':');
  const auto minutes = scan.done() ? std::optional(0) : scan.number(2);
  if (!hours || !minutes || *hours > 14 || *minutes > 59) return std::nullopt;
  return std::optional((east ? 1 : -1) * (*hours * 60 + *minutes));
}

WallTime here(std::tm parts, const TimeOfDay& clock) {
  parts.tm_hour = clock.hour;
  parts.tm_min = clock.minute;
  parts.tm_sec = clock.second;
  parts.tm_isdst = -1;
  return WallTime(std::chrono::seconds(std::mktime(&parts))) + clock.part;
}

std::optional<WallTime> date_and_clock(Scan scan) {
  const auto year = scan.number(4);
  if (!year || !scan.mark('-')) return std::nullopt;
  const auto month = scan.number(2);
  if (!month || !scan.mark('-')) return std::nullopt;
  const auto day = scan.number(2);
  if (!day) return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year(*year),
                                         std::chrono::month(static_cast<unsigned>(*month)),
                                         std::chrono::day(static_cast<unsigned>(*day))};
  if (!date.ok() || *year < 1970 || *year > 2200) return std::nullopt;
  std::optional<TimeOfDay> clock = TimeOfDay{};
  if (scan.mark('T') || scan.mark(' ')) clock = clock_of(scan);
  if (!clock) return std::nullopt;
  const auto zone = zone_of(scan);
  if (!zone || !scan.done()) return std::nullopt;
  if (!*zone) {
    std::tm parts{};
    parts.tm_year = *year - 1900;
    parts.tm_mon = *month - 1;
    parts.tm_mday = *day;
    return here(parts, *clock);
  }
  return WallTime(std::chrono::sys_days(date)) + std::chrono::hours(clock->hour) +
         std::chrono::minutes(clock->minute - **zone) + std::chrono::seconds(clock->second) +
         clock->part;
}

std::optional<WallTime> clock_alone(Scan scan, WallTime now) {
  const auto clock = clock_of(scan);
  if (!clock || !scan.done()) return std::nullopt;
  const std::time_t seconds =
      std::chrono::floor<std::chrono::seconds>(now).time_since_epoch().count();
  std::tm today{};
  localtime_r(&seconds, &today);
  const WallTime at = here(today, *clock);
  if (at <= now) return at;
  --today.tm_mday;  // mktime corrects the date
  return here(today, *clock);
}

}  // namespace

void add_job_option(CLI::App& command, std::string& into) {
  command
      .add_option("job", into,
                  "name, id, unique prefix or end of an id, or @last; a chain's name or chain:ID: "
                  "its stage that matters most now")
      ->required()
      ->type_name("");
}

void add_output_option(CLI::App& command, std::string& into, render::Names names) {
  // MUSTER_OUTPUT applies to every verb. A verb without names ignores the value "name".
  CLI::Option* option =
      command.add_option("-o,--output", into,
                         names == render::Names::Yes ? "table, wide, json, jsonl, yaml or name"
                                                     : "table, wide, json, jsonl or yaml");
  const char* set = std::getenv("MUSTER_OUTPUT");
  if (names == render::Names::Yes || set == nullptr || std::string_view(set) != "name")
    option->envname("MUSTER_OUTPUT");
  option->type_name("FORMAT")->capture_default_str();
}

void add_timeout_option(CLI::App& command, std::string& into, const std::string& what) {
  command.add_option("--timeout", into, what)->type_name("30s|5m|2h");
}

void add_ranks_option(CLI::App& command, std::vector<std::string>& into, const std::string& what) {
  command.add_option("-r,--rank", into, what)
      ->delimiter(',')
      ->type_name("RANKS")
      ->allow_extra_args(false);
}

CLI::Validator whole_number(std::uint64_t least, std::uint64_t most) {
  const auto check = [least, most](std::string& text) -> std::string {
    std::uint64_t number = 0;
    const char* const end = text.data() + text.size();
    const auto read = std::from_chars(text.data(), end, number);
    if (read.ec != std::errc() || read.ptr != end || number < least || number > most)
      return fmt::format("'{}': write a whole number from {} to {}", text, least, most);
    text = fmt::format("{}", number);
    return "";
  };
  return {check, ""};
}

Result<milliseconds> parse_timeout(std::string_view text, std::string_view option) {
  auto duration = parse_duration(text);
  if (!duration) return fail(std::move(duration.error()).in(fmt::format("option {}", option)));
  return std::chrono::ceil<milliseconds>(*duration);
}

Result<std::vector<std::uint32_t>> parse_ranks(const std::vector<std::string>& texts) {
  constexpr std::uint32_t kRankMost = 1 << 24, kRangeMost = 1 << 16;
  std::vector<std::uint32_t> out;
  for (const std::string& text : texts) {
    if (text == "all") return std::vector<std::uint32_t>();
    std::uint32_t first = 0;
    const char* const end = text.data() + text.size();
    auto read = std::from_chars(text.data(), end, first);
    std::uint32_t last = first;
    if (read.ec == std::errc() && read.ptr != end && *read.ptr == '-')
      read = std::from_chars(read.ptr + 1, end, last);
    if (read.ec != std::errc() || read.ptr != end)
      return fail(ErrorCode::InvalidArgument,
                  fmt::format("option --rank '{}': write numbers and ranges, like 0,8-15", text));
    if (last < first || last > kRankMost || last - first > kRangeMost)
      return fail(ErrorCode::InvalidArgument,
                  fmt::format("option --rank '{}': not a range of ranks", text));
    for (std::uint32_t rank = first; rank <= last; ++rank) out.push_back(rank);
  }
  return out;
}

Result<WallTime> parse_since(std::string_view text, WallTime now) {
  if (const auto duration = parse_duration(text)) return now - *duration;
  if (bare_number(text))
    return fail(
        ErrorCode::InvalidArgument,
        fmt::format(
            "option --since '{}': a number without a unit; write {}s, {}m or {}h (so long ago)",
            text, text, text, text));
  if (const auto at = date_and_clock(Scan(text))) return *at;
  if (const auto at = clock_alone(Scan(text), now)) return *at;
  return fail(ErrorCode::InvalidArgument,
              fmt::format("option --since '{}': not a time; write 10m (ago), 14:05 or "
                          "2026-03-01T14:05 (here), or 2026-03-01T13:05Z",
                          text));
}

}  // namespace muster::client
