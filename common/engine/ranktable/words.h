// The small elements of rank tables: decimal numbers, ids, addresses, and the paths that HCCL
// opens. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace muster::ranktable {

// A text for messages: at most 60 bytes, whole characters. Control characters and bytes that are
// not UTF-8 become '?'.
std::string shown(std::string_view text);
// The text without blanks and line ends at both ends.
std::string_view trimmed(std::string_view text);

// Digits only, at most `most`. HCCL's reader accepts "1x" as 1. Such a text is probably a mistake,
// so it is no number here.
std::optional<std::uint32_t> parse_number(std::string_view text, std::uint32_t most = 0xFFFFFFFE);

// An address as HCCL reads one: IPv4, or IPv6 (two colons at least) with an optional %interface.
struct Address {
  bool v6 = false;
  std::array<unsigned char, 16> bytes{};  // IPv4: the first four
  std::string scope;
  friend bool operator==(const Address&, const Address&) = default;
};
std::optional<Address> parse_address(std::string_view text);
bool is_loopback(const Address& address);
// Whether it is "0.0.0.0" or "::", which are no node's address.
bool is_unspecified(const Address& address);

// What is wrong with the name of a server, which becomes part of a file name. Empty = nothing.
std::string server_id_problem(std::string_view id);

// What is wrong with a path for HCCL. Empty = nothing. HCCL takes a file only if the first ".json"
// in its path is also the end.
std::string path_problem(std::string_view path);

}  // namespace muster::ranktable
