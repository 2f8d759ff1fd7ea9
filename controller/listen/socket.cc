#include "controller/listen/socket.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <expected>
#include <optional>
#include <utility>

#include "common/base/host_port.h"
#include "common/name_service/hosts.h"
#include "common/rpc/connection_times.h"

namespace muster::controller {
namespace {

constexpr int kBacklog = INT_MAX;  // the kernel takes its own limit (net.core.somaxconn)

io::UniqueFd make_socket(int family) {
  return io::UniqueFd(::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

bool set(const io::UniqueFd& fd, int level, int name, int value) {
  return ::setsockopt(fd.get(), level, name, &value, sizeof(value)) == 0;
}

// Accepted sockets inherit the options.
bool set_tcp_options(const io::UniqueFd& fd) {
  return set(fd, SOL_SOCKET, SO_REUSEADDR, 1) && set(fd, IPPROTO_TCP, TCP_NODELAY, 1) &&
         set(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, static_cast<int>(rpc::kKeepaliveTimeout.count()));
}

std::unexpected<Error> reason(std::string_view doing, int error_number) {
  if (error_number == EADDRINUSE || error_number == EADDRNOTAVAIL)
    return fail(ErrorCode::Io,
                "the address is taken, or not this machine's; choose another one, or port 0 for a "
                "free one");
  return fail_errno(doing, error_number);
}

struct Failure {
  std::string_view doing;
  int error_number;
};

std::expected<ListeningSocket, Failure> bind_tcp(const sockaddr_storage& wanted,
                                                 bool both_families) {
  const auto failure = [](std::string_view doing) {
    return std::unexpected(Failure{.doing = doing, .error_number = errno});
  };
  io::UniqueFd fd = make_socket(wanted.ss_family);
  if (!fd) return failure("making a socket");
  if (!set_tcp_options(fd) ||
      (wanted.ss_family == AF_INET6 && !set(fd, IPPROTO_IPV6, IPV6_V6ONLY, both_families ? 0 : 1)))
    return failure("setting the options of a socket");
  sockaddr_storage bound{};
  socklen_t size = sizeof(bound);
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&wanted), name_service::size_of(wanted)) !=
          0 ||
      ::listen(fd.get(), kBacklog) != 0 ||
      ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&bound), &size) != 0)
    return failure("binding a socket");
  sockaddr_in6 v6{};  // the port is at the same place in both families
  std::memcpy(&v6, &bound, sizeof(v6));
  return ListeningSocket{.fd = std::move(fd), .port = ntohs(v6.sin6_port)};
}

// The port of an address that is 0.0.0.0 or ::.
std::optional<std::uint16_t> port_of_wildcard(const sockaddr_storage& address) {
  sockaddr_in v4{};
  sockaddr_in6 v6{};
  std::memcpy(&v4, &address, sizeof(v4));
  std::memcpy(&v6, &address, sizeof(v6));
  if (address.ss_family == AF_INET && v4.sin_addr.s_addr == INADDR_ANY) return ntohs(v4.sin_port);
  if (address.ss_family == AF_INET6 && IN6_IS_ADDR_UNSPECIFIED(&v6.sin6_addr))
    return ntohs(v6.sin6_port);
  return std::nullopt;
}

}  // namespace

Result<ListeningSocket> listen_tcp(const std::string& address) {
  const auto parsed = parse_host_port(address);
  const auto wanted =
      parsed ? name_service::socket_address(parsed->host, parsed->port) : std::nullopt;
  if (!wanted) return fail(ErrorCode::Io, "'" + address + "' is no address with a port");
  return listen_tcp(*wanted);
}

Result<ListeningSocket> listen_tcp(const sockaddr_storage& address) {
  const auto port = port_of_wildcard(address);
  auto made =
      port ? bind_tcp(*name_service::socket_address("::", *port), true) : bind_tcp(address, false);
  // A machine without IPv6.
  if (!made && port &&
      (made.error().error_number == EAFNOSUPPORT || made.error().error_number == EADDRNOTAVAIL))
    made = bind_tcp(*name_service::socket_address("0.0.0.0", *port), false);
  if (!made) return reason(made.error().doing, made.error().error_number);
  return std::move(*made);
}

Result<ListeningSocket> listen_unix(const std::string& path) {
  sockaddr_un wanted{};
  wanted.sun_family = AF_UNIX;
  if (path.size() >= sizeof(wanted.sun_path))
    return fail(ErrorCode::Io, "the path is too long for a socket");
  std::ranges::copy(path, wanted.sun_path);
  struct stat there{};
  if (::stat(path.c_str(), &there) == 0 && S_ISSOCK(there.st_mode)) ::unlink(path.c_str());
  io::UniqueFd fd = make_socket(AF_UNIX);
  if (!fd) return fail_errno("making a socket", errno);
  // Made under umask 077, so no other user can connect in between.
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&wanted), sizeof(wanted)) != 0 ||
      ::chmod(path.c_str(), 0600) != 0 || ::listen(fd.get(), kBacklog) != 0)
    return reason("binding a socket", errno);
  return ListeningSocket{.fd = std::move(fd), .port = 0};
}

Result<io::UniqueFd> lock_unix(const std::string& path) {
  const std::string file = path + ".lock";
  io::UniqueFd lock(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!lock) return fail_errno("opening its lock file '" + file + "'", errno);
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) == 0) return lock;
  if (errno != EWOULDBLOCK) return fail_errno("locking '" + file + "'", errno);
  return fail(ErrorCode::Io, "another controller serves this socket (it holds '" + file +
                                 "'); stop that one, or choose another path");
}

}  // namespace muster::controller
