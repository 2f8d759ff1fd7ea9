#include "deploy/ssh/tunnel.h"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <utility>

namespace muster::ssh {
namespace {

class Tunnel final : public Below {
 public:
  Tunnel(std::unique_ptr<Wire> wire, LIBSSH2_CHANNEL* channel, io::UniqueFd end)
      : wire_(std::move(wire)), channel_(channel), end_(std::move(end)) {
    wire_->set_deadline(Deadline::max());
    thread_ = std::thread([this] { carry(); });
  }
  ~Tunnel() override {
    ::shutdown(end_.get(), SHUT_RDWR);
    thread_.join();
  }

 private:
  // Runs until either side has ended. Every call of libssh2 takes packets of all kinds, so it
  // waits only after a round in which nothing moved.
  void carry() {
    for (;;) {
      moved_ = false;
      if (!from_socket() || !to_socket()) break;
      const bool can_send = !out_.empty() && wire_->waiting() < kWaitingDataMost &&
                            libssh2_channel_window_write(channel_) > 0;
      if (moved_ || can_send) continue;
      wire_->flush();
      std::array<pollfd, 2> ready{pollfd{.fd = end_.get(), .events = 0, .revents = 0},
                                  pollfd{.fd = wire_->fd(), .events = 0, .revents = 0}};
      if (out_.empty()) ready[0].events |= POLLIN;
      if (!in_.empty()) ready[0].events |= POLLOUT;
      // While the socket takes nothing, libssh2's window ends the sending at the other side.
      if (in_.empty()) ready[1].events |= POLLIN;
      if (wire_->waiting() > 0) ready[1].events |= POLLOUT;
      if (ready[1].events == 0) ready[1].fd = -1;  // also no news of its end
      if (::poll(ready.data(), ready.size(), -1) < 0 && errno != EINTR) break;
      if ((ready[0].revents & (POLLERR | POLLHUP)) != 0) break;
    }
    ::shutdown(end_.get(), SHUT_RDWR);
  }

  // False: the channel or the socket has ended, and nothing is left to carry.
  bool to_socket() {
    for (;;) {
      if (in_.empty()) {
        std::array<char, 32768> part{};
        const auto count = libssh2_channel_read(channel_, part.data(), part.size());
        if (count == LIBSSH2_ERROR_EAGAIN) return true;
        if (count == 0) return libssh2_channel_eof(channel_) == 0;
        if (count < 0) return false;
        in_.assign(part.data(), static_cast<std::size_t>(count));
        moved_ = true;
      }
      const ssize_t count = ::send(end_.get(), in_.data(), in_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return errno == EAGAIN;
      in_.erase(0, static_cast<std::size_t>(count));
    }
  }
  bool from_socket() {
    if (out_.empty()) {
      std::array<char, 32768> part{};
      const ssize_t count = ::recv(end_.get(), part.data(), part.size(), MSG_DONTWAIT);
      if (count == 0) return false;
      if (count < 0) return errno == EAGAIN || errno == EINTR;
      out_.assign(part.data(), static_cast<std::size_t>(count));
    }
    while (!out_.empty() && wire_->waiting() < kWaitingDataMost) {
      const auto count = libssh2_channel_write(channel_, out_.data(), out_.size());
      if (count == LIBSSH2_ERROR_EAGAIN || count == 0) break;
      if (count < 0) return false;
      out_.erase(0, static_cast<std::size_t>(count));
      moved_ = true;
    }
    return true;
  }

  std::unique_ptr<Wire> wire_;
  LIBSSH2_CHANNEL* channel_;  // the session frees it
  io::UniqueFd end_;
  std::string in_, out_;
  bool moved_ = false;
  std::thread thread_;
};

}  // namespace

Result<TunnelEnd> open_tunnel(std::unique_ptr<Wire> wire, const std::string& jump,
                              const std::string& host, std::uint16_t port) {
  LIBSSH2_CHANNEL* channel = nullptr;
  const auto rc = wire->finish([&] {
    channel = libssh2_channel_direct_tcpip(wire->session(), host.c_str(), port);
    return channel != nullptr ? 0 : libssh2_session_last_errno(wire->session());
  });
  if (!rc) return fail(Error(rc.error()).in("over '" + jump + "'"));
  if (channel == nullptr) {
    const std::string text = wire->last_text();
    if (text.find("prohibited") != std::string::npos)
      return fail(ErrorCode::NotAllowed,
                  "the jump host '" + jump +
                      "' forwards no connection to it; set AllowTcpForwarding and PermitOpen in "
                      "its sshd_config, or use another jump host");
    if (text.find("connect failed") != std::string::npos)
      return fail(ErrorCode::Unreachable, "the jump host '" + jump + "' cannot connect to '" +
                                              host + "' port " + std::to_string(port) +
                                              "; is sshd running there?");
    return fail(wire->failure(*rc).in("over the jump host '" + jump + "'"));
  }
  int ends[2] = {-1, -1};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0)
    return fail_errno("making a socket pair", errno);
  TunnelEnd end{.socket = io::UniqueFd(ends[0]), .tunnel = nullptr};
  end.tunnel = std::make_unique<Tunnel>(std::move(wire), channel, io::UniqueFd(ends[1]));
  return end;
}

}  // namespace muster::ssh
