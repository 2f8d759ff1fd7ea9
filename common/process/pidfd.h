// Pidfd: a handle on one process, checked by start time when it is opened, so that a signal can
// never hit a stranger who got the pid. Owns the descriptor. Any thread. Readable (poll, epoll,
// asio) once the process has exited.
#pragma once

#include "common/io/unique_fd.h"
#include "common/process/identity.h"

namespace muster::process {

class Pidfd {
 public:
  // NotFound: gone, or another process has the pid now.
  static Result<Pidfd> open(const ProcessId& process);
  // Of our own child that we have not reaped: no check is needed.
  static Result<Pidfd> open_child(pid_t pid);

  [[nodiscard]] int fd() const { return fd_.get(); }
  int release() { return fd_.release(); }
  // NotFound: it has been reaped. A zombie takes signals and ignores them.
  Result<void> signal(int number) const;
  [[nodiscard]] bool exited() const;

 private:
  explicit Pidfd(io::UniqueFd fd) : fd_(std::move(fd)) {}
  io::UniqueFd fd_;
};

}  // namespace muster::process
