#include "agent/launch/abandoned.h"

#include <poll.h>
#include <sys/eventfd.h>

namespace muster::agent {

Abandoned::Abandoned() : fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

void Abandoned::set() {
  is_set_ = true;
  if (fd_) ::eventfd_write(fd_.get(), 1);
}

bool Abandoned::is_set() const { return is_set_; }

bool Abandoned::wait(std::chrono::milliseconds time) const {
  pollfd event{.fd = fd_.get(), .events = POLLIN, .revents = 0};
  if (!is_set_) ::poll(&event, 1, static_cast<int>(time.count()));
  return is_set_;
}

}  // namespace muster::agent
