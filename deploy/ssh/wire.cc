#include "deploy/ssh/wire.h"

#include <malloc.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "common/base/controls.h"

namespace muster::ssh {
namespace {

// libssh2 prepares libcrypto once, and that is not safe on two threads.
bool library_ready() {
  static const bool ready = libssh2_init(0) == 0;
  return ready;
}

void* allocate(std::size_t size, void**) { return ::malloc(size); }
void wipe_and_free(void* memory, void**) {
  if (memory == nullptr) return;
  ::explicit_bzero(memory, ::malloc_usable_size(memory));
  ::free(memory);
}
void* reallocate(void* memory, std::size_t size, void** abstract) {
  void* larger = ::malloc(size);
  if (larger == nullptr || memory == nullptr) return larger;
  ::memcpy(larger, memory, std::min(size, ::malloc_usable_size(memory)));
  wipe_and_free(memory, abstract);
  return larger;
}

}  // namespace

Result<std::unique_ptr<Wire>> Wire::create(io::UniqueFd socket, std::unique_ptr<Below> below) {
  std::unique_ptr<Wire> wire(new Wire(std::move(socket), std::move(below)));
  if (library_ready())
    wire->session_ = libssh2_session_init_ex(&allocate, &wipe_and_free, &reallocate, wire.get());
  if (wire->session_ == nullptr)
    return fail(ErrorCode::Internal, "libssh2 cannot be prepared: is there memory?");
  libssh2_session_set_blocking(wire->session_, 0);
  libssh2_session_callback_set(wire->session_, LIBSSH2_CALLBACK_SEND,
                               reinterpret_cast<void*>(&Wire::send_bytes));
  libssh2_session_callback_set(wire->session_, LIBSSH2_CALLBACK_RECV,
                               reinterpret_cast<void*>(&Wire::receive_bytes));
  return wire;
}

Wire::~Wire() {
  if (session_ == nullptr) return;
  if (!closed_) {
    libssh2_session_disconnect_ex(session_, SSH_DISCONNECT_BY_APPLICATION, "done", "");
    flush();
  }
  // Freeing would wait for the other end to close its channels.
  closed_ = true;
  libssh2_session_free(session_);
}

ssize_t Wire::send_bytes(libssh2_socket_t, const void* bytes, std::size_t size, int,
                         void** abstract) {
  Wire& wire = *static_cast<Wire*>(*abstract);
  if (wire.closed_ || wire.out_.size() + size > kWaitingBytesMost) return -ECONNRESET;
  wire.out_.append(static_cast<const char*>(bytes), size);
  wire.flush();
  return static_cast<ssize_t>(size);
}

ssize_t Wire::receive_bytes(libssh2_socket_t, void* bytes, std::size_t size, int, void** abstract) {
  Wire& wire = *static_cast<Wire*>(*abstract);
  if (wire.closed_ || wire.late()) return -ECONNRESET;
  for (;;) {
    const ssize_t count = ::recv(wire.fd(), bytes, size, 0);
    if (count >= 0) {
      wire.received_ += static_cast<std::uint64_t>(count);
      return count;
    }
    if (errno == EINTR) continue;
    const int error = errno;
    wire.note_failure(error);
    return -error;
  }
}

// An error is reported once: if sending meets it, receiving only sees the end.
void Wire::note_failure(int error_number) {
  if (error_number != EAGAIN && error_number != EPIPE && error_number != ECONNRESET)
    lost_ = error_number;
}

void Wire::flush() {
  std::size_t sent = 0;
  while (sent < out_.size() && !closed_) {
    const ssize_t count =
        ::send(fd(), out_.data() + sent, out_.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) break;
    // What the other end has sent before can still be read, so reading reports the end.
    if (count < 0) {
      note_failure(errno);
      sent = out_.size();
    }
    if (count > 0) sent += static_cast<std::size_t>(count);
  }
  out_.erase(0, sent);
}

Result<void> Wire::wait(Deadline until) {
  flush();
  if (!closed_ && !late()) {
    pollfd ready{.fd = fd(), .events = POLLIN, .revents = 0};
    if (!out_.empty()) ready.events |= POLLOUT;
    ::poll(&ready, 1, milliseconds_until(std::min(deadline_, until)));
    flush();
  }
  if (closed_) return fail(ErrorCode::Unreachable, "the session is closed");
  if (!late()) return {};
  closed_ = true;
  return fail(ErrorCode::TimedOut, "the host did not answer in time");
}

std::string Wire::last_text() const {
  char* text = nullptr;
  int size = 0;
  libssh2_session_last_error(session_, &text, &size, 0);
  return text == nullptr ? "" : without_controls({text, static_cast<std::size_t>(size)});
}

Error Wire::failure(int rc) const {
  if (late()) return {ErrorCode::TimedOut, "the host did not answer in time"};
  if (lost_ != 0)
    return {ErrorCode::Unreachable,
            "the connection was lost: " + std::string(::strerrordesc_np(lost_))};
  if (rc == LIBSSH2_ERROR_SOCKET_DISCONNECT || rc == LIBSSH2_ERROR_SOCKET_RECV ||
      rc == LIBSSH2_ERROR_SOCKET_SEND || rc == LIBSSH2_ERROR_BANNER_RECV)
    return {ErrorCode::Unreachable, "the host closed the connection"};
  if (rc == LIBSSH2_ERROR_SOCKET_NONE || rc == LIBSSH2_ERROR_SOCKET_TIMEOUT ||
      rc == LIBSSH2_ERROR_BAD_SOCKET)
    return {ErrorCode::Unreachable, "the connection was lost"};
  // libssh2 has its own bound for an answer, a minute.
  if (rc == LIBSSH2_ERROR_TIMEOUT) return {ErrorCode::TimedOut, "the host did not answer in time"};
  return {ErrorCode::Unreachable, last_text()};
}

}  // namespace muster::ssh
