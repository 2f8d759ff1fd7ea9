#include "client/commands/login/controller_address.h"

#include <algorithm>

namespace muster::client {
namespace {

bool is_any(const std::string& host) { return host == "0.0.0.0" || host == "[::]" || host == "::"; }

bool is_loopback(const std::string& host) {
  return host.starts_with("127.") || host == "[::1]" || host == "::1" || host == "localhost";
}

}  // namespace

std::string host_of(const std::string& address) { return address.substr(0, address.rfind(':')); }

std::string controller_address(const std::vector<std::string>& addresses, const std::string& host) {
  if (addresses.empty()) return {};
  const bool is_elsewhere = !host.empty() && !is_loopback(host);
  const auto reachable = std::ranges::find_if(addresses, [&](const std::string& address) {
    return !is_elsewhere || !is_loopback(host_of(address));
  });
  const std::string& chosen = reachable == addresses.end() ? addresses.front() : *reachable;
  if (!is_any(host_of(chosen))) return chosen;
  const std::string here = host_of(chosen) == "0.0.0.0" ? "127.0.0.1" : "[::1]";
  return (host.empty() ? here : host) + chosen.substr(chosen.rfind(':'));
}

}  // namespace muster::client
