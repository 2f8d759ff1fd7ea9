#include "deploy/hosts/values.h"

#include <algorithm>
#include <charconv>

#include "common/base/controls.h"

namespace muster::hosts {
namespace {

constexpr std::size_t kTextMost = 1024, kNameMost = 255;

bool letter_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool made_of(std::string_view value, std::string_view others) {
  return !value.empty() && value.size() <= kNameMost && value.front() != '-' &&
         std::ranges::all_of(value, [&](char c) {
           return letter_or_digit(c) || others.find(c) != std::string_view::npos;
         });
}

bool is_number(std::string_view value, unsigned long least, unsigned long most) {
  unsigned long number = 0;
  const char* const end = value.data() + value.size();
  const auto [rest, error] = std::from_chars(value.data(), end, number);
  return !value.empty() && error == std::errc() && rest == end && number >= least && number <= most;
}

// A state directory is made, and with `down --purge` removed, by this name. So it is written in one
// way only, and is no directory of the system such as /data.
bool is_path(std::string_view value) {
  if (!value.starts_with('/')) return false;
  std::size_t names = 0;
  while (!value.empty()) {
    value.remove_prefix(1);  // the '/'
    const std::string_view name = value.substr(0, value.find('/'));
    value.remove_prefix(name.size());
    if (name.empty() && value.empty()) break;  // a '/' at the end
    if (name.empty() || name == "." || name == "..") return false;
    ++names;
  }
  return names >= 2;
}

bool is_address(std::string_view value) {
  const HostPort parts = split_address(value);
  // "h:99999" is not a host with a colon in its name, but a wrong port.
  return made_of(parts.host, ".:-_%") && std::ranges::count(parts.host, ':') != 1 &&
         (parts.port != 0 || value == parts.host || value == "[" + parts.host + "]");
}

}  // namespace

HostPort split_address(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  std::string_view host = text;
  unsigned port = 0;
  const bool bare_v6 = !text.starts_with('[') && std::ranges::count(text, ':') > 1;
  if (colon != std::string_view::npos && !bare_v6 && is_number(text.substr(colon + 1), 1, 65'535)) {
    std::from_chars(text.data() + colon + 1, text.data() + text.size(), port);
    host = text.substr(0, colon);
  }
  if (host.size() > 2 && host.front() == '[' && host.back() == ']')
    host = host.substr(1, host.size() - 2);
  return {.host = std::string(host), .port = port};
}

std::string why_not(ValueKind kind, std::string_view value) {
  if (value.empty()) return "the value is empty";
  if (value.size() > kTextMost) return "more than 1024 bytes";
  if (has_controls(value)) return "a control character";
  switch (kind) {
    case ValueKind::Host:
      return made_of(value, ".:-_%")
                 ? ""
                 : "not a host: a name or an address of letters, digits and . : - _";
    case ValueKind::User:
      // A part of what deploy/ssh/ssh_config.h takes for a name.
      return made_of(value, "._-@+") ? "" : "not a login name of letters, digits and . _ - @ +";
    case ValueKind::Jump:
      return made_of(value, ".:-_@,[]%") ? "" : "not a jump: [USER@]HOST[:PORT][,...], or none";
    case ValueKind::Port: return is_number(value, 1, 65'535) ? "" : "not a port: 1 to 65535";
    case ValueKind::Number:
      return is_number(value, 0, 1UL << 50U) ? "" : "not a number: decimal digits";
    case ValueKind::Bool:
      return value == "true" || value == "false" ? "" : "neither true nor false";
    case ValueKind::Path:
      return is_path(value) ? ""
                            : "not an absolute path on the host, of two names or more and without "
                              "//, /./ and /../, as in /data/muster";
    case ValueKind::PathOrNone: return value == "none" ? "" : why_not(ValueKind::Path, value);
    case ValueKind::HomePath:
      return value.front() == '/' || value.starts_with("~/") ? ""
                                                             : "neither /ABSOLUTE nor ~/BELOW-HOME";
    case ValueKind::HostKeys:
      return value == "strict" || value == "accept_new" ? "" : "neither strict nor accept_new";
    case ValueKind::Address: return is_address(value) ? "" : "not an address: HOST or HOST:PORT";
    case ValueKind::AddressOrNone: return value == "none" ? "" : why_not(ValueKind::Address, value);
    case ValueKind::Text:
    case ValueKind::Words:
      return value.front() == '-' && kind == ValueKind::Text ? "it begins with '-'" : "";
    case ValueKind::Labels:
    case ValueKind::Refused: return "";
  }
  return "";
}

}  // namespace muster::hosts
