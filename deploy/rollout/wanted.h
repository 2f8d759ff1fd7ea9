// Wanted says what one host should have: the daemon of one role, its programs, its command line.
// Plain values; one for each daemon, made from hosts.yaml and the programs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "deploy/hosts/hosts.h"

namespace muster::rollout {

enum class Role : std::uint8_t { Controller, Agent };
std::string_view to_string(Role role);                 // "controller", "agent"
std::string_view program_of(Role role);                // "muster-controller", "muster-agent"
std::vector<std::string_view> programs_of(Role role);  // what the role needs in one directory

struct Wanted {
  Role role = Role::Agent;
  std::string name;  // of the node; of the controller "controller"
  hosts::Login login;
  std::string state_dir;             // empty: by the user
  std::string address;               // controller: --listen; agent: the controller's host:port
  std::vector<std::string> options;  // further words of the command line
  std::string login_socket{};        // controller: as hosts::Controller has it
};

// HOST:PORT of its --enrol; empty: it has none.
std::string_view enrol_address(const Wanted& wanted);
std::string_view access_file(const Wanted& wanted);           // of its --access; empty: it has none
std::vector<Wanted> wanted_of(const hosts::HostsFile& file);  // the controller first

// Where things are on a host, once its user is known.
//
//   PREFIX/VERSION/bin/    programs
//   PREFIX/current         link to VERSION
//   PREFIX/ROLE/           mode 0700, all that `muster deploy` writes for a daemon:
//     command-line           its words, one a line (without systemd)
//     credentials.pem        of an agent; mode 0600
//     supervisor, lock, supervisor.log   of the supervisor (without systemd)
//   UNIT                   /etc/systemd/system/muster-ROLE.service (where systemd is process 1)
//   STATE_DIR/             the daemon's own
struct Places {
  std::string prefix;
  std::string state_dir;
  bool systemd = false;  // a unit supervises the daemon, else muster's own supervisor
  bool root = false;     // the daemon runs as root

  [[nodiscard]] std::string bin(std::string_view version) const;
  [[nodiscard]] std::string current() const;
  [[nodiscard]] std::string role_dir(Role role) const;
  [[nodiscard]] std::string credentials() const;
  [[nodiscard]] std::string config_file(Role role) const;
};
std::string unit_name(Role role);  // "muster-agent.service"

// The words of the daemon's command line. The first is the program below `current`.
std::vector<std::string> command_words(const Wanted& wanted, const Places& places);
// The text of config_file(): a systemd unit, or one word a line.
std::string config_text(const Wanted& wanted, const Places& places);
// How the ExecStart= line of the role's unit begins, with the program.
std::string unit_start(Role role, const Places& places);
// In the second line of a unit that `muster deploy` wrote.
inline constexpr std::string_view kUnitMark = "# Written by muster deploy; it replaces changes.";

}  // namespace muster::rollout
