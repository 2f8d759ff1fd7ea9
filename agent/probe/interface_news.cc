#include "agent/probe/interface_news.h"

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>

namespace muster::agent {

Result<InterfaceNews> InterfaceNews::open() {
  constexpr const char* kDoing = "listening for changes of the network interfaces";
  io::UniqueFd socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE));
  if (!socket) return fail_errno(kDoing, errno);
  sockaddr_nl own{};
  own.nl_family = AF_NETLINK;
  constexpr unsigned kIpv6Rule = 1U << (RTNLGRP_IPV6_RULE - 1);  // the headers have no name for it
  own.nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR | RTMGRP_IPV4_ROUTE |
                  RTMGRP_IPV6_ROUTE | RTMGRP_IPV4_RULE | kIpv6Rule;
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&own), sizeof(own)) != 0)
    return fail_errno(kDoing, errno);
  return InterfaceNews(std::move(socket));
}

void InterfaceNews::take() {
  constexpr int kMessagesMost = 1000;  // in one call; the descriptor stays readable
  std::array<char, 256> part{};        // part of a message; the rest is dropped
  for (int message = 0; message < kMessagesMost; ++message) {
    // ENOBUFS: some messages were lost, and the next call continues.
    if (::recv(socket_.get(), part.data(), part.size(), 0) < 0 && errno != ENOBUFS &&
        errno != EINTR)
      return;
  }
}

}  // namespace muster::agent
