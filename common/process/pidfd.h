// A Pidfd is a handle on one process and owns its descriptor. Its creator owns it, mostly the
// agent's host. Any thread.
//
// open() checks the start time, so that a signal can never reach a stranger that got the pid later.
// The descriptor is readable (poll, epoll, asio) once the process has exited.
#pragma once

#include "common/io/unique_fd.h"
#include "common/process/identity.h"

namespace muster::process {

class Pidfd {
 public:
  // NotFound: the process is gone, or another process has the pid now.
  static Result<Pidfd> open(const ProcessId& process);
  // For our own child that we have not reaped yet: it needs no check.
  static Result<Pidfd> open_child(pid_t pid);

  [[nodiscard]] int fd() const { return fd_.get(); }
  int release() { return fd_.release(); }
  // NotFound: the process has been reaped. A zombie accepts signals and ignores them.
  Result<void> signal(int number) const;
  [[nodiscard]] bool exited() const;

 private:
  explicit Pidfd(io::UniqueFd fd) : fd_(std::move(fd)) {}
  io::UniqueFd fd_;
};

}  // namespace muster::process
