#include "common/engine/ranktable/words.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>

#include "common/base/utf8.h"
#include "common/engine/ranktable/rank_table.h"

namespace muster::ranktable {
namespace {

bool control(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; }

}  // namespace

std::string shown(std::string_view text) {
  constexpr std::size_t kBytesMax = 60;
  const bool cut = text.size() > kBytesMax;
  if (cut) {
    std::size_t end = kBytesMax;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
    text = text.substr(0, end);
  }
  std::string out;
  while (!text.empty()) {
    const std::size_t sound = utf8_prefix(text);
    out.append(text.substr(0, sound));
    text.remove_prefix(sound);
    if (text.empty()) break;
    out += '?';
    text.remove_prefix(1);
  }
  std::ranges::replace_if(out, control, '?');
  return cut ? out + "..." : out;
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n";
  const std::size_t first = text.find_first_not_of(kBlank);
  return first == std::string_view::npos
             ? std::string_view{}
             : text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

std::optional<std::uint32_t> parse_number(std::string_view text, std::uint32_t most) {
  std::uint32_t number = 0;
  if (text.empty() || text.front() < '0' || text.front() > '9') return std::nullopt;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number > most)
    return std::nullopt;
  return number;
}

std::optional<Address> parse_address(std::string_view text) {
  Address address;
  const std::size_t percent = text.find('%');
  if (percent != std::string_view::npos) {
    address.scope = text.substr(percent + 1);
    text = text.substr(0, percent);
    if (address.scope.empty()) return std::nullopt;
  }
  address.v6 = std::ranges::count(text, ':') >= 2;
  if (percent != std::string_view::npos && !address.v6) return std::nullopt;
  char copy[INET6_ADDRSTRLEN + 1] = {};
  if (text.empty() || text.size() >= sizeof(copy) || text.find('\0') != std::string_view::npos)
    return std::nullopt;
  std::memcpy(copy, text.data(), text.size());
  if (::inet_pton(address.v6 ? AF_INET6 : AF_INET, copy, address.bytes.data()) != 1)
    return std::nullopt;
  return address;
}

bool is_loopback(const Address& address) {
  if (!address.v6) return address.bytes[0] == 127;
  std::array<unsigned char, 16> one{};
  one[15] = 1;
  return address.bytes == one;
}

bool is_unspecified(const Address& address) {
  return address.bytes == std::array<unsigned char, 16>{};
}

std::string server_id_problem(std::string_view id) {
  if (id.empty()) return "is empty; it names the server, by custom with its address";
  if (id.size() > kServerIdBytesMax)
    return fmt::format("has {} bytes; HCCL takes at most {}", id.size(), kServerIdBytesMax);
  if (std::ranges::any_of(
          id, [](char c) { return control(c) || c == ' ' || c == '/' || c == '"' || c == '\\'; }))
    return "has a blank, slash, quote or control character in it";
  return {};
}

std::string path_problem(std::string_view path) {
  constexpr std::string_view kEnd = ".json";
  const std::size_t first = path.find(kEnd);
  if (first == std::string_view::npos || !path.ends_with(kEnd))
    return "HCCL opens only files whose name ends in '.json'";
  if (first + kEnd.size() != path.size())
    return fmt::format(
        "HCCL takes the first '.json' of a path for its end, and here '{}' comes before",
        shown(path.substr(0, first + kEnd.size())));
  const std::size_t slash = path.rfind('/');
  if (path.substr(slash == std::string_view::npos ? 0 : slash + 1) == kEnd)
    return "HCCL wants a name before '.json'";
  return {};
}

}  // namespace muster::ranktable
