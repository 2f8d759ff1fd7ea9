#include "controller/listen/received.h"

// glibc's <netinet/tcp.h> has an older tcp_info, and the two cannot be in one file.
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstddef>

namespace muster::controller {

std::uint64_t received_by(int fd) {
  tcp_info info{};
  socklen_t size = sizeof(info);
  constexpr std::size_t kNeeded =
      offsetof(tcp_info, tcpi_bytes_received) + sizeof(info.tcpi_bytes_received);
  const bool is_known =
      ::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 && size >= kNeeded;
  return is_known ? info.tcpi_bytes_received : 0;
}

}  // namespace muster::controller
