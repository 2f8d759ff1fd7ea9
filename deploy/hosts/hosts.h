// HostsFile holds what an operator wants deployed: one controller, and agents on hosts that SSH
// reaches. Plain values. read_hosts() is pure; it reads the text of a hosts.yaml.
//
// The format is described in docs/operations/deploy.md. Keys are in key_table.h.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/spec/parse.h"

namespace muster::hosts {

// How a host is reached, and as whom programs are installed and run there.
struct Login {
  std::string host;         // a name, an address, or an alias of ssh_config
  std::string address;      // where `host` is, if a name service does not say so; empty: it does
  std::uint16_t port = 0;   // 0: ssh_config's, or 22
  std::string user;         // empty: ssh_config's, or the operator
  std::string identity;     // a key file; "~/" at the front is the operator's home
  std::string jump;         // as ProxyJump of ssh_config(5)
  std::string known_hosts;  // a file; empty: OpenSSH's own
  bool accept_new = false;  // a key that no file names is recorded
  bool sudo = false;        // everything on the host is done by root, through sudo
  std::string prefix;       // absolute; empty: /opt/muster of root, else ~/.muster

  friend bool operator==(const Login&, const Login&) = default;
};

struct Controller {
  Login login;
  std::string listen = "0.0.0.0:7070";
  std::string address;               // host:port, by which agents reach it
  std::string state_dir;             // absolute; empty: by the user (rollout/places.h)
  std::string login_socket;          // absolute, "none", or empty: as wanted.cc says
  std::vector<std::string> options;  // further words of muster-controller's command line
};

struct Agent {
  std::string name;  // a node name (common/base/names.h)
  Login login;
  std::string state_dir;
  std::vector<std::string> options;  // further words of muster-agent's command line
};

struct HostsFile {
  std::string cluster;  // a name for people; empty: none
  Controller controller;
  std::vector<Agent> agents;  // in the order of the file; names and hosts differ
};

struct ReadHosts {
  HostsFile file;                       // valid only if problems is empty
  std::vector<spec::Problem> problems;  // sorted by position; spec::format() makes text of them
};

inline constexpr std::size_t kAgentsMost = 1024;

// Reports every problem at once.
ReadHosts read_hosts(std::string_view text);

}  // namespace muster::hosts
