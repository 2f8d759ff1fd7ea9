#include "agent/enrol/cancel.h"

#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

#include "common/base/assert.h"

namespace muster::agent {

Cancel::Cancel() : event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  MUSTER_ASSERT(event_, "no descriptor is left at the start");
}

void Cancel::request() { (void)::eventfd_write(event_.get(), 1); }

bool Cancel::wait(Duration most) const {
  using std::chrono::milliseconds;
  using Steady = std::chrono::steady_clock;
  constexpr milliseconds kPollMost = std::chrono::hours(24);
  const auto until = Steady::now() + std::min<Duration>(most, kPollMost);
  for (;;) {
    const auto left = std::chrono::ceil<milliseconds>(until - Steady::now());
    pollfd waited{event_.get(), POLLIN, 0};
    const int ready =
        ::poll(&waited, 1, static_cast<int>(std::max(left, milliseconds::zero()).count()));
    if (ready > 0) return true;
    if (ready == 0) return false;
    MUSTER_ASSERT(errno == EINTR, "poll fails on an eventfd");
  }
}

}  // namespace muster::agent
