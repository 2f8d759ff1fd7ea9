#include "controller/enrol/limits.h"

#include <algorithm>

namespace muster::controller {
namespace {

namespace ip = boost::asio::ip;

ip::address part_of(const ip::address& address) {
  if (address.is_v4()) return address;
  const ip::address_v6 six = address.to_v6();
  if (six.is_v4_mapped()) return ip::make_address_v4(ip::v4_mapped, six);
  auto bytes = six.to_bytes();
  std::ranges::fill(bytes.begin() + 8, bytes.end(), 0);
  return ip::address_v6(bytes);
}

}  // namespace

ConnectionCount::Room ConnectionCount::enter(const ip::address& from) {
  if (all_ >= limits_.connections) return Room::Full;
  const ip::address part = part_of(from);
  const auto found = of_.find(part);
  if (found != of_.end() && found->second >= limits_.of_an_address) return Room::AddressFull;
  ++of_[part];
  ++all_;
  return Room::There;
}

void ConnectionCount::leave(const ip::address& from) {
  const auto found = of_.find(part_of(from));
  if (found == of_.end()) return;
  if (--found->second == 0) of_.erase(found);
  --all_;
}

}  // namespace muster::controller
