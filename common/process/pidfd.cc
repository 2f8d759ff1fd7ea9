#include "common/process/pidfd.h"

#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <string>

namespace muster::process {
namespace {

std::unexpected<Error> failed(const std::string& doing, int error) {
  auto result = fail_errno(doing, error);
  if (error == ESRCH) result.error().code = ErrorCode::NotFound;
  return result;
}

}  // namespace

Result<Pidfd> Pidfd::open_child(pid_t pid) {
  io::UniqueFd fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));  // close-on-exec by itself
  if (!fd) return failed("opening process " + std::to_string(pid), errno);
  return Pidfd(std::move(fd));
}

Result<Pidfd> Pidfd::open(const ProcessId& process) {
  auto pidfd = open_child(process.pid);
  if (!pidfd) return pidfd;
  // Open the handle first and read the start time second. If the start time matches now, the pid
  // belonged to this process all the time, so the handle is on it.
  const auto seen = identify(process.pid);
  if (!seen) return fail(Error(seen.error()));
  if (seen->start_time != process.start_time) {
    return fail(ErrorCode::NotFound,
                "opening process " + std::to_string(process.pid) + ": it is another one now");
  }
  return pidfd;
}

Result<void> Pidfd::signal(int number) const {
  if (::syscall(SYS_pidfd_send_signal, fd_.get(), number, nullptr, 0) != 0)
    return failed("signalling a process", errno);
  return {};
}

bool Pidfd::exited() const {
  pollfd poll{.fd = fd_.get(), .events = POLLIN, .revents = 0};
  return ::poll(&poll, 1, 0) == 1;
}

}  // namespace muster::process
