#include "agent/probe/text.h"

#include <algorithm>
#include <charconv>

#include "common/engine/ranktable/words.h"

namespace muster::agent::probe {

bool next_line(std::string_view& rest, std::string_view& line) {
  if (rest.empty()) return false;
  const std::size_t end = rest.find('\n');
  line = ranktable::trimmed(rest.substr(0, end));
  rest = end == std::string_view::npos ? std::string_view{} : rest.substr(end + 1);
  return true;
}

std::vector<std::string_view> words_of(std::string_view text, std::size_t most) {
  constexpr std::string_view kBlank = " \t\r\n";
  std::vector<std::string_view> words;
  while (words.size() < most) {
    const std::size_t first = text.find_first_not_of(kBlank);
    if (first == std::string_view::npos) break;
    const std::size_t end = std::min(text.find_first_of(kBlank, first), text.size());
    words.push_back(text.substr(first, end - first));
    text = text.substr(end);
  }
  return words;
}

std::vector<std::string_view> split(std::string_view text, char by, std::size_t most) {
  std::vector<std::string_view> parts;
  while (parts.size() < most) {
    const std::size_t end = text.find(by);
    parts.push_back(ranktable::trimmed(text.substr(0, end)));
    if (end == std::string_view::npos) break;
    text = text.substr(end + 1);
  }
  return parts;
}

std::string clean(std::string_view text, std::size_t most) {
  text = ranktable::trimmed(text);
  std::string out(text.substr(0, most));
  std::ranges::replace_if(
      out,
      [](char c) {
        return static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) >= 0x7F;
      },
      '?');
  return text.size() > most ? out + "..." : out;
}

std::string printed(std::string_view output) {
  const std::string text = clean(output);
  return text.empty() ? "it printed nothing" : "it printed '" + text + "'";
}

std::optional<std::uint64_t> parse_u64(std::string_view text) {
  std::uint64_t number = 0;
  if (text.empty() || text.front() < '0' || text.front() > '9') return std::nullopt;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::optional<std::string> pci_address(std::string_view text) {
  const auto hex = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
  };
  const auto parts = split(text, ':', 4);
  if (parts.size() != 3) return std::nullopt;
  const std::string_view domain = parts[0], bus = parts[1], rest = parts[2];  // rest: "00.0"
  if ((domain.size() != 4 && domain.size() != 8) || bus.size() != 2 || rest.size() != 4 ||
      rest[2] != '.')
    return std::nullopt;
  std::string digits =
      std::string(domain) + std::string(bus) + std::string(rest.substr(0, 2)) + rest[3];
  if (!std::ranges::all_of(digits, hex)) return std::nullopt;
  std::ranges::transform(digits, digits.begin(), [](char c) {
    return c >= 'A' && c <= 'F' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  // nvidia-smi writes the domain with 8 digits. The kernel writes 4, and more only if it needs
  // them.
  if (domain.size() == 8) {
    const std::size_t zeros = std::min<std::size_t>(digits.find_first_not_of('0'), 4);
    digits.erase(0, zeros);
  }
  const std::size_t bus_at = digits.size() - 5;
  return digits.substr(0, bus_at) + ":" + digits.substr(bus_at, 2) + ":" +
         digits.substr(bus_at + 2, 2) + "." + digits.substr(bus_at + 4);
}

}  // namespace muster::agent::probe
