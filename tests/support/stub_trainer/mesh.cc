#include "tests/support/stub_trainer/mesh.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "tests/support/stub_trainer/stamp.h"

namespace stub {
namespace {

constexpr std::uint64_t kRendezvousNs = 60'000'000'000;
constexpr int kConnectAgainMs = 2;

struct Message {
  std::int64_t step = 0;
  std::uint64_t value = 0;
};

bool send_all(int fd, const void* data, std::size_t size) {
  for (std::size_t done = 0; done < size;) {
    const ssize_t count =
        ::send(fd, static_cast<const char*>(data) + done, size - done, MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    done += static_cast<std::size_t>(count);
  }
  return true;
}

bool receive_all(int fd, void* data, std::size_t size) {
  for (std::size_t done = 0; done < size;) {
    const ssize_t count = ::recv(fd, static_cast<char*>(data) + done, size - done, 0);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    done += static_cast<std::size_t>(count);
  }
  return true;
}

sockaddr_in address_of(const Options& options) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(options.master_port);
  if (::inet_pton(AF_INET, options.master_address.c_str(), &address.sin_addr) != 1)
    ::inet_pton(AF_INET, "127.0.0.1", &address.sin_addr);
  return address;
}

int new_socket() {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  return fd;
}

}  // namespace

void die_like_python(const Options& options, const char* error) {
  char text[512];
  const int length = std::snprintf(text, sizeof text,
                                   "Traceback (most recent call last):\n  File \"train.py\", line "
                                   "1, in <module>\nRuntimeError: [rank%u] %s\n",
                                   options.rank, error);
  (void)!::write(2, text, static_cast<std::size_t>(length));
  ::_exit(1);
}

Mesh::Mesh(const Options& options)
    : options_(options),
      alone_(options.world == 1 || options.master_port == 0 || !options.barrier) {
  if (alone_) return;
  if (options.rank == 0) {
    listen_for_peers();
  } else {
    connect_to_master();
  }
}

Mesh::~Mesh() {
  for (const int fd : peers_) ::close(fd);
}

void Mesh::listen_for_peers() {
  const int listener = new_socket();
  const auto address = address_of(options_);
  if (::bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(listener, 4096) != 0) {
    die_like_python(options_,
                    ("The server socket has failed to listen on any local network address: " +
                     std::string(std::strerror(errno)))
                        .c_str());
  }
  peers_.assign(options_.world - 1, -1);
  const std::uint64_t end = monotonic_ns() + kRendezvousNs;
  for (std::uint32_t known = 1; known < options_.world; ++known) {
    pollfd poll{.fd = listener, .events = POLLIN, .revents = 0};
    const auto now = monotonic_ns();
    if (now >= end || ::poll(&poll, 1, static_cast<int>((end - now) / 1'000'000)) != 1)
      die_like_python(options_, "Timed out waiting for clients to join");
    const int fd = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    const int on = 1;
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    std::uint32_t rank = 0;
    if (!receive_all(fd, &rank, sizeof rank) || rank == 0 || rank >= options_.world ||
        peers_[rank - 1] >= 0)
      die_like_python(options_, "A client that is no peer has connected");
    peers_[rank - 1] = fd;
  }
  ::close(listener);
}

void Mesh::connect_to_master() {
  const auto address = address_of(options_);
  const std::uint64_t end = monotonic_ns() + kRendezvousNs;
  for (;;) {
    const int fd = new_socket();
    if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
      if (!send_all(fd, &options_.rank, sizeof options_.rank))
        die_like_python(options_, "Connection reset by peer");
      peers_.push_back(fd);
      return;
    }
    ::close(fd);
    if (monotonic_ns() > end)
      die_like_python(options_, "The client socket has timed out while trying to connect");
    // The master may not listen yet, and a socket without a listener gives no event.
    ::poll(nullptr, 0, kConnectAgainMs);
  }
}

std::uint64_t Mesh::sum(std::int64_t step, std::uint64_t value) {
  if (alone_) return value;
  Message message{.step = step, .value = value};
  if (options_.rank != 0) {
    if (!send_all(peers_[0], &message, sizeof message) ||
        !receive_all(peers_[0], &message, sizeof message) || message.step != step) {
      die_like_python(options_, "Connection closed by peer");
    }
    return message.value;
  }
  for (const int peer : peers_) {
    Message theirs;
    if (!receive_all(peer, &theirs, sizeof theirs))
      die_like_python(options_, "Connection closed by peer");
    if (theirs.step != step) die_like_python(options_, "Ranks are at different steps");
    message.value += theirs.value;
  }
  for (const int peer : peers_) {
    if (!send_all(peer, &message, sizeof message))
      die_like_python(options_, "Connection closed by peer");
  }
  return message.value;
}

}  // namespace stub
