// What OpenSSH's configuration says about one host, from the output of `ssh -G`; and the jump hosts
// that are written as in ProxyJump. Pure: text in, values out.
//
// Source: ssh(1), -G and -J; ssh_config(5). `ssh -G` prints "key value" lines with keys in lower
// case. It expands '~' in the names of known_hosts files, but not in IdentityFile.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"
#include "deploy/ssh/session.h"

namespace muster::ssh {

inline constexpr std::size_t kConfigBytesMost = std::size_t{256} << 10U;
inline constexpr std::size_t kJumpsMost = 4;

// How long a host may be silent until its connection counts as lost: `count` times `interval`.
struct Alive {
  std::chrono::seconds interval{15};
  unsigned count = 3;

  [[nodiscard]] std::chrono::seconds most() const { return interval * count; }
};

// One host of a connection: a jump host or the target itself.
struct Hop {
  std::string alias;      // as it was written; ssh_config is asked for it
  std::string host_name;  // what to connect to
  std::uint16_t port = 22;
  std::string user;
  std::vector<std::string> identity_files;
  bool identities_only = false;
  std::string identity_agent;            // a socket; "none", or empty for SSH_AUTH_SOCK
  std::vector<std::string> known_hosts;  // the first one gets new keys
  std::string host_key_alias;
  bool hash_known_hosts = false;
  std::string proxy_jump;     // empty: none
  std::string proxy_command;  // empty: none; only `ssh` runs it
  std::vector<std::string> certificate_files;
  // A setting about host keys that only `ssh` obeys: "RevokedHostKeys". Empty: there is none.
  std::string key_setting;
  Alive alive;

  // The name of known_hosts files.
  [[nodiscard]] const std::string& key_name() const {
    return host_key_alias.empty() ? host_name : host_key_alias;
  }
  // The port of known_hosts files. As with ssh(1), an alias counts for every port.
  [[nodiscard]] std::uint16_t key_port() const {
    return host_key_alias.empty() ? port : std::uint16_t{22};
  }
  // For people: "USER@NAME", with ":PORT" for another port than 22.
  [[nodiscard]] std::string text() const;
};

struct Defaults {
  std::string user, home;
};

// The hop without a configuration: the defaults of ssh_config(5), and what the target says.
Hop plain_hop(const Target& target, const Defaults& defaults);
// `config` is the output of `ssh -G`, which was given the target's identity file. What the target
// says of the rest comes first.
Result<Hop> configured_hop(const Target& target, std::string_view config, const Defaults& defaults);

// "[USER@]HOST[:PORT]" or "ssh://[USER@]HOST[:PORT]", with commas between them; IPv6 addresses in
// brackets. "none" and the empty text are no jumps. InvalidArgument: it cannot be read, or it has
// more than kJumpsMost.
Result<std::vector<Target>> parse_jumps(std::string_view text);
// Refuses names that programs would take as an option, and characters that no name has.
Result<void> check_target(const Target& target);

}  // namespace muster::ssh
