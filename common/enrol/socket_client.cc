// The client's half of the enrolment socket (client.h).
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "common/enrol/answer.h"
#include "common/enrol/client.h"
#include "common/enrol/frame.h"
#include "common/enrol/login.h"
#include "common/enrol/socket_place.h"
#include "common/io/unique_fd.h"

namespace muster::enrol {
namespace {

using SocketClock = std::chrono::steady_clock;

// For everything. The controller looks the user up meanwhile, which may take it seconds.
constexpr auto kSocketMost = std::chrono::seconds(10);

std::unexpected<Error> socket_failed(int error) {
  if (error == ENOENT) return fail(ErrorCode::NotFound, "there is no such socket");
  if (error == ECONNREFUSED)
    return fail(ErrorCode::Unreachable, "nobody answers; is the controller running?");
  if (error == EAGAIN) return fail(ErrorCode::TimedOut, "no answer within its time");
  if (error == ECONNRESET || error == EPIPE)
    return fail(ErrorCode::Unreachable, "the other end closed the connection");
  return fail_errno("using the socket", error);
}

Result<io::UniqueFd> connect_to_socket(const std::string& path) {
  sockaddr_un wanted{};
  wanted.sun_family = AF_UNIX;
  std::ranges::copy(path, wanted.sun_path);  // check_socket_place() has checked its length
  io::UniqueFd made(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!made) return fail_errno("making a socket", errno);
  // It bounds each step, also the connect; the deadline bounds them together.
  const timeval step{.tv_sec = 10, .tv_usec = 0};
  (void)::setsockopt(made.get(), SOL_SOCKET, SO_SNDTIMEO, &step, sizeof step);
  (void)::setsockopt(made.get(), SOL_SOCKET, SO_RCVTIMEO, &step, sizeof step);
  if (::connect(made.get(), reinterpret_cast<const sockaddr*>(&wanted), sizeof wanted) != 0)
    return socket_failed(errno);
  return made;
}

// Of whoever listens (unix(7)).
Result<std::uint32_t> uid_of_server(int fd) {
  ucred server{};
  socklen_t size = sizeof server;
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &server, &size) != 0)
    return fail_errno("asking who answers at the socket", errno);
  return server.uid;
}

Result<void> send_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return socket_failed(errno);
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return {};
}

Result<std::string> receive(int fd, std::size_t size, SocketClock::time_point until) {
  std::string bytes(size, '\0');
  std::size_t done = 0;
  while (done < size) {
    if (SocketClock::now() >= until) return socket_failed(EAGAIN);
    const ssize_t got = ::recv(fd, bytes.data() + done, size - done, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return socket_failed(errno);
    if (got == 0) return socket_failed(ECONNRESET);
    done += static_cast<std::size_t>(got);
  }
  return bytes;
}

Result<v1::EnrolResponse> exchange_at_socket(const std::string& path, const std::string& request) {
  if (auto place = check_socket_place(path); !place) return fail(std::move(place.error()));
  const auto until = SocketClock::now() + kSocketMost;
  const auto fd = connect_to_socket(path);
  if (!fd) return fail(Error(fd.error()));
  const auto server = uid_of_server(fd->get());
  if (!server) return fail(Error(server.error()));
  if (auto owner = check_socket_owner(path, *server); !owner) return fail(std::move(owner.error()));
  // The controller may have said already that it has no room, and closed.
  const auto sent = send_all(fd->get(), in_frame(request));
  const auto length_bytes = receive(fd->get(), kLengthBytes, until);
  if (!length_bytes) return fail(Error(sent ? length_bytes.error() : sent.error()));
  LengthBytes bytes{};
  std::ranges::copy(*length_bytes, bytes.begin());
  const auto length = length_in(bytes);
  if (!length) return fail(ErrorCode::InvalidArgument, "it answers with what no controller sends");
  const auto answer = receive(fd->get(), *length, until);
  if (!answer) return fail(Error(answer.error()));
  return parse_answer(*answer);
}

}  // namespace

Result<Issued> login_at_socket(const std::string& path, const pki::Key& key, Duration lifetime) {
  const std::string doing = "logging in at the controller's socket '" + path + "'";
  const auto request = socket_login_request(key, lifetime);
  if (!request) return fail(Error(request.error()).in(doing));
  const auto response = exchange_at_socket(path, *request);
  if (!response) return fail(Error(response.error()).in(doing));
  return issued_of(*response, doing);
}

}  // namespace muster::enrol
