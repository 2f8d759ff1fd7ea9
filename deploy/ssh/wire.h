// A Wire owns one session of libssh2, its socket, and the bytes that wait to be sent. It makes
// every step of libssh2 end by a deadline. One thread at a time.
//
// libssh2 runs without blocking, on two callbacks: sending never fails for a full socket, because
// the Wire keeps the bytes (libssh2 1.10 cannot read while a packet is half sent); and receiving
// fails once the deadline has passed, so a server that sends without end cannot keep a step
// running. After a deadline the Wire is closed: every later step fails at once. All memory of
// libssh2 is wiped when it is freed, because passwords and keys are in it.
//
// Errors are reasons without a context. TimedOut: the deadline passed. Unreachable: the connection
// broke.
#pragma once

#include <libssh2.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "common/base/error.h"
#include "common/io/unique_fd.h"
#include "deploy/ssh/deadline.h"
#include "deploy/ssh/secret.h"
#include "deploy/ssh/ssh_config.h"

namespace muster::ssh {

// More bytes than these wait only when the other end lets us send answers without reading them.
inline constexpr std::size_t kWaitingBytesMost = std::size_t{1} << 20U;
// More data of a command is given to libssh2 only below this.
inline constexpr std::size_t kWaitingDataMost = std::size_t{256} << 10U;

// Something that must live as long as the socket: the tunnel through a jump host.
class Below {
 public:
  virtual ~Below() = default;
};

class Wire {
 public:
  // The socket does not block.
  static Result<std::unique_ptr<Wire>> create(io::UniqueFd socket, std::unique_ptr<Below> below);
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;
  ~Wire();  // says goodbye if the socket takes it at once

  [[nodiscard]] LIBSSH2_SESSION* session() const { return session_; }
  [[nodiscard]] int fd() const { return socket_.get(); }
  void set_deadline(Deadline deadline) { deadline_ = deadline; }
  [[nodiscard]] Deadline deadline() const { return deadline_; }
  [[nodiscard]] bool late() const { return passed(deadline_); }
  void set_alive(const Alive& alive) { alive_ = alive; }
  [[nodiscard]] const Alive& alive() const { return alive_; }

  // Repeats a call of libssh2 until it does not answer EAGAIN. Returns its answer, which may be
  // another error of libssh2. Errors: the deadline passed.
  template <std::invocable Step>
  Result<int> finish(Step step) {
    for (;;) {
      const int rc = static_cast<int>(step());
      if (rc != LIBSSH2_ERROR_EAGAIN) return rc;
      if (auto ready = wait(); !ready) return fail(std::move(ready).error());
    }
  }
  // Sends what waits, then waits until the socket can be read, or can be written where bytes wait,
  // or until `until`.
  Result<void> wait(Deadline until = Deadline::max());
  // Sends what the socket takes at once.
  void flush();
  [[nodiscard]] std::size_t waiting() const { return out_.size(); }
  // All bytes that libssh2 has taken from the socket so far.
  [[nodiscard]] std::uint64_t received() const { return received_; }

  // The sentence for an error of libssh2: TimedOut if the deadline has passed, else Unreachable:
  // what became of the socket, or libssh2's text. `rc` is of the last call.
  [[nodiscard]] Error failure(int rc) const;
  // The last text of libssh2, without control characters.
  [[nodiscard]] std::string last_text() const;
  void close() { closed_ = true; }
  [[nodiscard]] bool closed() const { return closed_; }

  // What authenticate.cc answers to a question of keyboard-interactive.
  const Secret* password = nullptr;

 private:
  Wire(io::UniqueFd socket, std::unique_ptr<Below> below)
      : below_(std::move(below)), socket_(std::move(socket)) {}
  static ssize_t send_bytes(libssh2_socket_t socket, const void* bytes, std::size_t size, int flags,
                            void** abstract);
  static ssize_t receive_bytes(libssh2_socket_t socket, void* bytes, std::size_t size, int flags,
                               void** abstract);
  void note_failure(int error_number);

  std::unique_ptr<Below> below_;  // destroyed after the socket
  io::UniqueFd socket_;
  LIBSSH2_SESSION* session_ = nullptr;
  std::string out_;
  std::uint64_t received_ = 0;
  Deadline deadline_{};
  Alive alive_;
  int lost_ = 0;  // why the socket failed, if the other end did not close it
  bool closed_ = false;
};

}  // namespace muster::ssh
