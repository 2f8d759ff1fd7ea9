// Checks the values of hosts.yaml. Pure.
//
// A value becomes a word of a command line, on the operator's machine or on a host. So no host,
// user or jump may begin with '-': a program would take it for an option.
#pragma once

#include <string>
#include <string_view>

#include "deploy/hosts/key_table.h"

namespace muster::hosts {

// Empty: the value is of this kind. Otherwise what is wrong, with the accepted form.
std::string why_not(ValueKind kind, std::string_view value);

// "host:port" or "[v6]:port" split at the port; the port is 0 where there is none.
struct HostPort {
  std::string host;
  unsigned port = 0;
};
HostPort split_address(std::string_view text);

}  // namespace muster::hosts
