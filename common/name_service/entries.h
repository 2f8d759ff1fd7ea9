// Reads the text of the host's tables of users, groups and hosts: files as passwd(5), group(5) and
// hosts(5) describe them, and what getent(1) prints. Pure; linear in the text; any bytes.
//
// A directory service may answer anything. Ids must be decimal numbers below 2^32 - 1. Addresses
// must be numeric. Texts that are used must be UTF-8 without control characters. An unsound line of
// a file is skipped; one of getent makes the whole answer unsound.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::name_service {

struct User {
  std::string name;
  std::uint32_t uid = 0, gid = 0;
  std::string home, shell;
  friend bool operator==(const User&, const User&) = default;
};

// One line of passwd(5) without its end: exactly 7 fields.
std::optional<User> parse_user(std::string_view line);
// The first sound line of that user in a whole passwd(5).
std::optional<User> user_in(std::string_view passwd, std::string_view name);
std::optional<User> user_in(std::string_view passwd, std::uint32_t uid);

// The groups that list the user as a member, in a whole group(5).
std::vector<std::uint32_t> groups_in(std::string_view group, std::string_view user);
// The answer of `getent initgroups USER`: one line "USER   gid gid ...".
std::optional<std::vector<std::uint32_t>> parse_groups(std::string_view answer,
                                                       std::string_view user);

// The addresses of a host in a whole hosts(5), without repetitions. Host names ignore case.
std::vector<std::string> addresses_in(std::string_view hosts, std::string_view host);
// The answer of `getent ahosts HOST`: the addresses of its lines of kind STREAM, in their order and
// without repetitions.
std::optional<std::vector<std::string>> parse_addresses(std::string_view answer);

// Whether the text is an IPv4 or IPv6 address, the latter perhaps with %interface.
bool is_address(std::string_view text);

}  // namespace muster::name_service
