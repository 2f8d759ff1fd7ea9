// The small words of rank tables: decimal numbers, ids, addresses, the paths that HCCL opens. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace muster::ranktable {

// For messages: at most 60 bytes, whole characters; control characters and what is not UTF-8 as
// '?'.
std::string shown(std::string_view text);
// Blanks and line ends off both ends.
std::string_view trimmed(std::string_view text);

// Digits only, at most `most`. The reader itself takes "1x" for 1; that is a wrong number waiting
// to happen, so it is none here.
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
// "0.0.0.0" and "::" are nobody's.
bool is_unspecified(const Address& address);

// What is wrong with a name for a server, which becomes part of a file name; empty = nothing.
std::string server_id_problem(std::string_view id);

// What is wrong with a path for HCCL, which takes a file only when the first ".json" in its path is
// also the end; empty = nothing.
std::string path_problem(std::string_view path);

}  // namespace muster::ranktable
