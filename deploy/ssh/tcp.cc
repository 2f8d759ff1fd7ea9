#include "deploy/ssh/tcp.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <string_view>

#include "common/name_service/hosts.h"

namespace muster::ssh {
namespace {

std::string_view help(int error_number) {
  if (error_number == ECONNREFUSED) return "; is sshd running there, and on this port?";
  if (error_number == EHOSTUNREACH || error_number == ENETUNREACH)
    return "; is the host up, and is there a route to it?";
  return "";
}

void set_option(int fd, int level, int name, int value) {
  ::setsockopt(fd, level, name, &value, sizeof value);
}

// tcp(7). Keepalive is for a connection on which nothing is in flight, and the user's timeout for
// what was sent and is not acknowledged: without them the kernel waits for 2 hours and 15 minutes.
void set_alive(int fd, const Alive& alive) {
  const int interval = static_cast<int>(alive.interval.count());
  set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, interval);
  set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, interval);
  // The idle time is one of the intervals.
  set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, std::max(1, static_cast<int>(alive.count) - 1));
  set_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT,
             static_cast<int>(
                 std::chrono::duration_cast<std::chrono::milliseconds>(alive.most()).count()));
  set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
}

Result<io::UniqueFd> connect_address(const std::string& address, std::uint16_t port,
                                     Deadline deadline, const Alive& alive) {
  const std::string place = address + " port " + std::to_string(port);
  const auto socket_address = name_service::socket_address(address, port);
  if (!socket_address) return fail(ErrorCode::Unreachable, place + ": it is no address here");
  io::UniqueFd fd(
      ::socket(socket_address->ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return fail_errno("opening a socket", errno);
  int error = 0;
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&*socket_address),
                name_service::size_of(*socket_address)) != 0)
    error = errno;
  while (error == EINPROGRESS || error == EINTR) {
    pollfd ready{.fd = fd.get(), .events = POLLOUT, .revents = 0};
    const int count = ::poll(&ready, 1, milliseconds_until(deadline));
    if (count > 0) {
      socklen_t size = sizeof error;
      ::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    } else if (passed(deadline)) {
      return fail(ErrorCode::TimedOut, place +
                                           ": no answer to the connection; is the host up, and "
                                           "does a firewall drop the packets?");
    }
  }
  if (error == ETIMEDOUT)
    return fail(ErrorCode::TimedOut, place +
                                         ": no answer to the connection; is the host up, and "
                                         "does a firewall drop the packets?");
  if (error != 0)
    return fail(ErrorCode::Unreachable,
                place + ": " + ::strerrordesc_np(error) + std::string(help(error)));
  set_option(fd.get(), IPPROTO_TCP, TCP_NODELAY, 1);
  set_alive(fd.get(), alive);
  return fd;
}

}  // namespace

Result<io::UniqueFd> connect_tcp(const std::string& host, std::uint16_t port, Deadline deadline,
                                 const Alive& alive) {
  auto addresses = name_service::addresses_of(host);
  if (!addresses) return fail(std::move(addresses).error());
  Result<io::UniqueFd> last = fail(ErrorCode::NotFound, "it does not resolve");
  for (std::size_t i = 0; i < addresses->size(); ++i) {
    const auto now = std::chrono::steady_clock::now();
    const auto share = (deadline - now) / static_cast<std::int64_t>(addresses->size() - i);
    last = connect_address((*addresses)[i], port, std::min(deadline, now + share), alive);
    if (last) break;
  }
  return last;
}

}  // namespace muster::ssh
