#include "common/name_service/entries.h"

#include <arpa/inet.h>
#include <net/if.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "common/base/utf8.h"

namespace muster::name_service {
namespace {

constexpr std::string_view kBlank = " \t";
constexpr std::uint32_t kIdMost = 0xFFFFFFFE;  // the one above means "no user" to the kernel

// Takes the next line from `rest`. Returns false if there is none.
bool next_line(std::string_view& rest, std::string_view& line) {
  if (rest.empty()) return false;
  const std::size_t end = rest.find('\n');
  line = rest.substr(0, end);
  rest = end == std::string_view::npos ? std::string_view{} : rest.substr(end + 1);
  return true;
}

// Takes the next word from `rest`; empty = there is none.
std::string_view next_word(std::string_view& rest) {
  const std::size_t first = rest.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  const std::size_t end = std::min(rest.find_first_of(kBlank, first), rest.size());
  const std::string_view word = rest.substr(first, end - first);
  rest = rest.substr(end);
  return word;
}

bool is_sound(std::string_view text) {
  return std::ranges::none_of(
             text, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; }) &&
         is_utf8(text);
}

template <std::size_t N>
std::optional<std::array<std::string_view, N>> fields(std::string_view line) {
  std::array<std::string_view, N> parts;
  for (std::size_t at = 0; at < N; ++at) {
    const std::size_t end = line.find(':');
    if ((end == std::string_view::npos) != (at + 1 == N)) return std::nullopt;
    parts[at] = line.substr(0, end);
    if (at + 1 < N) line = line.substr(end + 1);
  }
  return parts;
}

std::optional<std::uint32_t> parse_id(std::string_view text) {
  std::uint32_t id = 0;
  if (text.empty() || text.front() < '0' || text.front() > '9') return std::nullopt;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
  if (error != std::errc() || end != text.data() + text.size() || id > kIdMost) return std::nullopt;
  return id;
}

template <class T>
void add_new(std::vector<T>& list, T value) {
  if (std::ranges::find(list, value) == list.end()) list.push_back(std::move(value));
}

bool same_host(std::string_view one, std::string_view other) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  return std::ranges::equal(one, other, {}, lower, lower);
}

template <class Wanted>
std::optional<User> first_user(std::string_view passwd, const Wanted& wanted) {
  for (std::string_view line; next_line(passwd, line);) {
    auto user = parse_user(line);
    if (user && wanted(*user)) return user;
  }
  return std::nullopt;
}

}  // namespace

std::optional<User> parse_user(std::string_view line) {
  const auto parts = fields<7>(line);
  if (!parts) return std::nullopt;
  // The fifth field is a person's name, in any encoding.
  const auto [name, password, uid_text, gid_text, person, home, shell] = *parts;
  const auto uid = parse_id(uid_text), gid = parse_id(gid_text);
  if (name.empty() || !is_sound(name) || !is_sound(home) || !is_sound(shell) || !uid || !gid)
    return std::nullopt;
  return User{.name = std::string(name),
              .uid = *uid,
              .gid = *gid,
              .home = std::string(home),
              .shell = std::string(shell)};
}

std::optional<User> user_in(std::string_view passwd, std::string_view name) {
  return first_user(passwd, [&](const User& user) { return user.name == name; });
}

std::optional<User> user_in(std::string_view passwd, std::uint32_t uid) {
  return first_user(passwd, [&](const User& user) { return user.uid == uid; });
}

std::vector<std::uint32_t> groups_in(std::string_view group, std::string_view user) {
  std::vector<std::uint32_t> groups;
  for (std::string_view line; next_line(group, line);) {
    const auto parts = fields<4>(line);
    const auto gid = parts ? parse_id((*parts)[2]) : std::nullopt;
    if (!gid) continue;
    for (std::string_view members = (*parts)[3]; !members.empty();) {
      const std::size_t comma = members.find(',');
      if (members.substr(0, comma) == user) add_new(groups, *gid);
      members = comma == std::string_view::npos ? std::string_view{} : members.substr(comma + 1);
    }
  }
  return groups;
}

std::optional<std::vector<std::uint32_t>> parse_groups(std::string_view answer,
                                                       std::string_view user) {
  std::string_view line;
  // A name may have blanks, so it is not read as a word.
  if (!next_line(answer, line) || !answer.empty() || !line.starts_with(user)) return std::nullopt;
  line.remove_prefix(user.size());
  if (!line.empty() && kBlank.find(line.front()) == std::string_view::npos) return std::nullopt;
  std::vector<std::uint32_t> groups;
  for (std::string_view word = next_word(line); !word.empty(); word = next_word(line)) {
    const auto gid = parse_id(word);
    if (!gid) return std::nullopt;
    add_new(groups, *gid);
  }
  return groups;
}

std::vector<std::string> addresses_in(std::string_view hosts, std::string_view host) {
  std::vector<std::string> addresses;
  for (std::string_view line; next_line(hosts, line);) {
    line = line.substr(0, line.find('#'));
    const std::string_view address = next_word(line);
    if (!is_address(address)) continue;
    for (std::string_view name = next_word(line); !name.empty(); name = next_word(line))
      if (same_host(name, host)) add_new(addresses, std::string(address));
  }
  return addresses;
}

std::optional<std::vector<std::string>> parse_addresses(std::string_view answer) {
  std::vector<std::string> addresses;
  for (std::string_view line; next_line(answer, line);) {
    const std::string_view address = next_word(line);
    if (!is_address(address)) return std::nullopt;
    if (next_word(line) == "STREAM") add_new(addresses, std::string(address));
  }
  if (addresses.empty()) return std::nullopt;
  return addresses;
}

bool is_address(std::string_view text) {
  const std::size_t percent = text.find('%');
  const std::string address(text.substr(0, percent));
  if (address.find('\0') != std::string::npos) return false;
  std::array<unsigned char, sizeof(in6_addr)> bytes{};
  if (::inet_pton(AF_INET, address.c_str(), bytes.data()) == 1)
    return percent == std::string_view::npos;
  if (::inet_pton(AF_INET6, address.c_str(), bytes.data()) != 1) return false;
  if (percent == std::string_view::npos) return true;
  const std::string_view interface = text.substr(percent + 1);
  return !interface.empty() && interface.size() < IF_NAMESIZE &&
         std::ranges::all_of(interface, [](char c) { return c > ' ' && c < 0x7F && c != '%'; });
}

}  // namespace muster::name_service
