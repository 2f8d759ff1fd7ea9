// The keys of hosts.yaml: where each may stand, what its value is, and which flag of a daemon it
// becomes. Pure; the table is constant.
//
// A key whose behaviour no daemon has yet is in the table, too, with what to do in its place: it is
// refused by name.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace muster::hosts {

enum class ValueKind : std::uint8_t {
  Text,      // UTF-8 without control characters, at most 1,024 bytes
  Host,      // a name or an address
  User,      // as a login name
  Jump,      // as ProxyJump
  Port,      // 1 to 65535
  Number,    // decimal digits
  Bool,      // true or false
  Path,      // absolute
  PathOrNone,
  HomePath,  // absolute, or it begins with "~/"; on the operator's machine
  HostKeys,  // strict or accept_new
  Address,   // host, or host:port
  AddressOrNone,
  Labels,    // a map of texts
  Words,     // a text, or a list of texts
  Refused,
};

// Where a key may stand. Keys of a login in `defaults` are for the controller, too.
enum class Section : std::uint8_t { Login, Agent, Controller };

struct HostKey {
  std::string_view name;
  Section section = Section::Login;
  ValueKind kind = ValueKind::Text;
  std::string_view flag;  // of the daemon; empty: it is for muster deploy itself
  std::string_view help;  // Refused: what to do in its place
};

std::span<const HostKey> host_keys();
// Nothing: there is no such key in these sections.
const HostKey* find_host_key(std::string_view name, std::span<const Section> sections);
std::vector<std::string_view> host_key_names(std::span<const Section> sections);

}  // namespace muster::hosts
