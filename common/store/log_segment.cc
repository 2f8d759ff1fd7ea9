#include "common/store/log_segment.h"

#include <fmt/format.h>

#include <charconv>
#include <system_error>

namespace muster::store {
namespace {

constexpr std::string_view kEnding = ".log.gz";

bool take_number(std::string_view& text, char end, std::uint64_t& number) {
  const char* const last = text.data() + text.size();
  const auto [at, wrong] = std::from_chars(text.data(), last, number);
  if (wrong != std::errc() || at == last || *at != end) return false;
  text.remove_prefix(static_cast<std::size_t>(at - text.data()));
  return true;
}

}  // namespace

std::string text_of(const LogSegment& segment) {
  return fmt::format("{:06}-{:015}-{:015}{}", segment.sequence, segment.from, segment.to, kEnding);
}

std::optional<LogSegment> parse_log_segment(std::string_view name) {
  LogSegment segment;
  if (!take_number(name, '-', segment.sequence)) return std::nullopt;
  name.remove_prefix(1);
  if (!take_number(name, '-', segment.from)) return std::nullopt;
  name.remove_prefix(1);
  if (!take_number(name, '.', segment.to) || name != kEnding) return std::nullopt;
  if (segment.sequence == 0 || segment.to <= segment.from) return std::nullopt;
  return segment;
}

}  // namespace muster::store
