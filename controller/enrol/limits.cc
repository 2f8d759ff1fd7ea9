#include "controller/enrol/limits.h"

#include <algorithm>

#include "controller/listen/peer.h"

namespace muster::controller {
namespace {

namespace ip = boost::asio::ip;

// The address of one sender (Peer::sender()).
std::array<std::uint8_t, 16> part_of(const ip::address& address) {
  const ip::address_v6 six =
      address.is_v6() ? address.to_v6() : ip::make_address_v6(ip::v4_mapped, address.to_v4());
  return Peer{.address = six.to_bytes(), .port = 0}.sender();
}

}  // namespace

EnrolLimits enrol_limits_for(std::size_t descriptors) {
  constexpr std::size_t kConnectionsLeast = 4, kOfAnAddressLeast = 2;
  EnrolLimits limits;
  limits.connections = std::clamp(descriptors / 4, kConnectionsLeast, limits.connections);
  limits.of_an_address =
      std::clamp(limits.connections / 4, kOfAnAddressLeast, limits.of_an_address);
  return limits;
}

ConnectionCount::Room ConnectionCount::enter(const ip::address& from) {
  if (all_ >= limits_.connections) return Room::Full;
  const auto part = part_of(from);
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
