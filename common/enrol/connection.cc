#include "common/enrol/connection.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

#include "common/enrol/address.h"
#include "common/name_service/hosts.h"
#include "common/pki/openssl.h"

namespace muster::enrol {
namespace {

using Steady = std::chrono::steady_clock;

// Nothing within `until`, or cancelled: TimedOut.
Result<void> wait_for(int fd, short events, Connection::Deadline until, int cancel) {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Steady::now()).count();
    if (left <= 0) return fail(ErrorCode::TimedOut, "no answer within its time");
    std::array<pollfd, 2> waited{{{fd, events, 0}, {cancel, POLLIN, 0}}};
    const int ready = ::poll(waited.data(), waited.size(), static_cast<int>(left));
    if (ready < 0 && errno != EINTR) return fail_errno("waiting for the connection", errno);
    if (ready > 0 && waited[1].revents != 0) return fail(ErrorCode::TimedOut, "it was cancelled");
    if (ready > 0 && waited[0].revents != 0) return {};
  }
}

Result<io::UniqueFd> connect_to(const sockaddr_storage& address, Connection::Deadline until,
                                int cancel) {
  io::UniqueFd made(
      ::socket(address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP));
  if (!made) return fail_errno("making a socket", errno);
  const int on = 1;  // best effort
  (void)::setsockopt(made.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (::connect(made.get(), reinterpret_cast<const sockaddr*>(&address),
                name_service::size_of(address)) == 0)
    return made;
  int error = errno;
  if (error == EINPROGRESS) {
    if (auto ready = wait_for(made.get(), POLLOUT, until, cancel); !ready)
      return fail(std::move(ready.error()));
    socklen_t size = sizeof error;
    if (::getsockopt(made.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
  }
  if (error != 0) return fail(ErrorCode::Unreachable, std::strerror(error));
  return made;
}

// An address that does not answer leaves the others their share of the time.
Result<io::UniqueFd> connect_to_one(const std::vector<sockaddr_storage>& addresses,
                                    Connection::Deadline until, int cancel) {
  Result<io::UniqueFd> made = fail(ErrorCode::Unreachable, "it has no address");
  for (std::size_t i = 0; i < addresses.size() && !made; ++i) {
    const auto now = Steady::now();
    const auto share = (until - now) / static_cast<int>(addresses.size() - i);
    made = connect_to(addresses[i], now + share, cancel);
  }
  return made;
}

}  // namespace

Result<Connection> Connection::open(const std::string& address, Deadline until, int cancel,
                                    TrustedCas& trusted) {
  const auto addresses = socket_addresses(address, 1);
  if (!addresses) return fail(Error(addresses.error()));
  auto socket = connect_to_one(*addresses, until, cancel);
  if (!socket) return fail(std::move(socket.error()));
  Connection made(std::move(*socket), until, cancel);
  auto context = client_context(trusted);
  if (!context) return fail(std::move(context.error()));
  made.context_ = std::move(*context);
  made.tls_.reset(::SSL_new(made.context_.get()));
  if (!made.tls_ || ::SSL_set_fd(made.tls_.get(), made.socket_.get()) != 1 ||
      (!trusted.digests.empty() && !ask_for(made.tls_.get(), trusted.digests.front())))
    return pki::openssl_failed(ErrorCode::Internal, "preparing TLS");
  auto shaken = made.finish([tls = made.tls_.get()] { return ::SSL_connect(tls); });
  if (shaken) return made;
  if (!trusted.refused.empty()) return fail(ErrorCode::Unsupported, trusted.refused);
  return fail(std::move(shaken.error()));
}

Result<void> Connection::finish(const std::function<int()>& operation) {
  const pki::OpenSslErrors errors;
  for (;;) {
    ::ERR_clear_error();
    errno = 0;
    const int result = operation();
    if (result > 0) return {};
    const int error_number = errno;
    short events = 0;
    switch (::SSL_get_error(tls_.get(), result)) {
      case SSL_ERROR_WANT_READ: events = POLLIN; break;
      case SSL_ERROR_WANT_WRITE: events = POLLOUT; break;
      case SSL_ERROR_ZERO_RETURN:
        return fail(ErrorCode::Unreachable, "the other end closed the connection");
      case SSL_ERROR_SYSCALL:
        return fail(ErrorCode::Unreachable, error_number == 0
                                                ? "the other end closed the connection"
                                                : std::strerror(error_number));
      case SSL_ERROR_SSL:
        if (ERR_GET_REASON(::ERR_peek_last_error()) == SSL_R_UNEXPECTED_EOF_WHILE_READING)
          return fail(ErrorCode::Unreachable, "the other end closed the connection");
        return pki::openssl_failed(ErrorCode::Unreachable, "TLS failed");
    }
    if (events == 0) return fail(ErrorCode::Internal, "TLS cannot go on");
    if (auto ready = wait_for(socket_.get(), events, until_, cancel_); !ready) return ready;
  }
}

Result<void> Connection::write(std::string_view bytes) {
  return finish([&] {
    std::size_t written = 0;
    return ::SSL_write_ex(tls_.get(), bytes.data(), bytes.size(), &written);
  });
}

Result<std::string> Connection::read(std::size_t size) {
  std::string bytes(size, '\0');
  std::size_t done = 0;
  while (done < size) {
    std::size_t got = 0;
    auto some =
        finish([&] { return ::SSL_read_ex(tls_.get(), bytes.data() + done, size - done, &got); });
    if (!some) return fail(std::move(some.error()));
    done += got;
  }
  return bytes;
}

void Connection::close() {
  const pki::OpenSslErrors errors;
  (void)::SSL_shutdown(tls_.get());
}

}  // namespace muster::enrol
