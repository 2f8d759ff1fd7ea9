// The bounds of the enrolment port, and the count of its connections against them. Plain values;
// whoever owns a count decides the thread.
//
// Anybody who reaches the port may open connections, so an address has a share. IPv6 addresses
// count by their /64: a machine has as many of them as it likes.
#pragma once

#include <array>
#include <boost/asio/ip/address.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>

#include "common/base/time.h"

namespace muster::controller {

struct EnrolLimits {
  std::size_t connections = 256;
  std::size_t of_an_address = 16;
  Duration most = std::chrono::seconds(5);  // for everything on one connection
};
// For a process that may have so many descriptors. Where there are few, a quarter of them may be
// connections of this port: callers without a certificate take none from the unix socket, the
// journal and files.
[[nodiscard]] EnrolLimits enrol_limits_for(std::size_t descriptors);

class ConnectionCount {
 public:
  explicit ConnectionCount(EnrolLimits limits) : limits_(limits) {}

  enum class Room { There, AddressFull, Full };
  // There: it is counted, until leave().
  [[nodiscard]] Room enter(const boost::asio::ip::address& from);
  void leave(const boost::asio::ip::address& from);

 private:
  EnrolLimits limits_;
  std::size_t all_ = 0;
  std::map<std::array<std::uint8_t, 16>, std::size_t> of_;  // by part_of()
};

}  // namespace muster::controller
