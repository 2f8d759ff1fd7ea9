#include "common/name_service/hosts.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>

#include <array>
#include <charconv>
#include <cstring>
#include <utility>

#include "common/name_service/entries.h"

namespace muster::name_service {
namespace {

std::unexpected<Error> unknown_host() { return fail(ErrorCode::NotFound, "it does not resolve"); }

// The number of an interface, by its name or as it is; 0: there is none.
std::uint32_t interface_number(const std::string& interface) {
  std::uint32_t number = 0;
  const char* end = interface.data() + interface.size();
  const auto [rest, error] = std::from_chars(interface.data(), end, number);
  return error == std::errc() && rest == end ? number : ::if_nametoindex(interface.c_str());
}

}  // namespace

Result<std::vector<std::string>> addresses_of(const std::string& host, const Tables& tables) {
  if (is_address(host)) return std::vector{host};
  if (host == "localhost") return std::vector<std::string>{"127.0.0.1", "::1"};
  if (!may_be_name(host)) return unknown_host();
  const auto answer = ask_getent(tables, "ahosts", host);
  if (!answer)
    return answer.error().code == ErrorCode::NotFound ? unknown_host() : fail(answer.error());
  if (*answer) {
    auto addresses = parse_addresses(**answer);
    if (!addresses) return fail(ErrorCode::Unreachable, "getent printed no addresses of it");
    return *std::move(addresses);
  }
  const auto text = read_table(tables.hosts);
  if (!text) return fail(text.error());
  auto addresses = addresses_in(*text, host);
  if (addresses.empty()) return unknown_host();
  return addresses;
}

std::optional<sockaddr_storage> socket_address(const std::string& address, std::uint16_t port) {
  if (!is_address(address)) return std::nullopt;
  sockaddr_storage storage{};
  sockaddr_in v4{};
  if (::inet_pton(AF_INET, address.c_str(), &v4.sin_addr) == 1) {
    v4.sin_family = AF_INET;
    v4.sin_port = htons(port);
    std::memcpy(&storage, &v4, sizeof(v4));
    return storage;
  }
  sockaddr_in6 v6{};
  const std::size_t percent = address.find('%');
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(port);
  ::inet_pton(AF_INET6, address.substr(0, percent).c_str(), &v6.sin6_addr);
  if (percent != std::string::npos) {
    v6.sin6_scope_id = interface_number(address.substr(percent + 1));
    if (v6.sin6_scope_id == 0) return std::nullopt;
  }
  std::memcpy(&storage, &v6, sizeof(v6));
  return storage;
}

socklen_t size_of(const sockaddr_storage& address) {
  return address.ss_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
}

std::string address_text(const sockaddr_storage& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (address.ss_family == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, &address, sizeof(v4));
    ::inet_ntop(AF_INET, &v4.sin_addr, text.data(), text.size());
    return text.data();
  }
  if (address.ss_family != AF_INET6) return {};
  sockaddr_in6 v6{};
  std::memcpy(&v6, &address, sizeof(v6));
  ::inet_ntop(AF_INET6, &v6.sin6_addr, text.data(), text.size());
  if (v6.sin6_scope_id == 0) return text.data();
  std::array<char, IF_NAMESIZE> interface{};
  const bool named = ::if_indextoname(v6.sin6_scope_id, interface.data()) != nullptr;
  return std::string(text.data()) + "%" +
         (named ? interface.data() : std::to_string(v6.sin6_scope_id));
}

}  // namespace muster::name_service
