// Which of a controller's TCP addresses a client calls after a login. Pure.
#pragma once

#include <string>
#include <vector>

namespace muster::client {

// `addresses`: HOST:PORT, as the controller listens. `host`: by which it was reached just now (of
// --enrol), or empty: it is this machine. An address of all interfaces (0.0.0.0, [::]) becomes one
// of that host; another machine's loopback is taken last. Empty: there are no addresses.
std::string controller_address(const std::vector<std::string>& addresses, const std::string& host);

// "[fd00::1]:70" -> "[fd00::1]"
std::string host_of(const std::string& address);

}  // namespace muster::client
