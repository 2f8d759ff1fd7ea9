#include "agent/enrol/cancel.h"

#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>

#include "common/base/assert.h"

namespace muster::agent {
namespace {

// True: `event` can be read. False: `other` can, or the time is over.
bool wait_for_one(Duration most, int event, int other) {
  using std::chrono::milliseconds;
  using Steady = std::chrono::steady_clock;
  constexpr milliseconds kPollMost = std::chrono::hours(24);
  const auto until = Steady::now() + std::min<Duration>(most, kPollMost);
  for (;;) {
    const auto left = std::chrono::ceil<milliseconds>(until - Steady::now());
    std::array<pollfd, 2> waited{{{event, POLLIN, 0}, {other, POLLIN, 0}}};
    const int ready = ::poll(waited.data(), waited.size(),
                             static_cast<int>(std::max(left, milliseconds::zero()).count()));
    if (ready >= 0) return waited[0].revents != 0;
    MUSTER_ASSERT(errno == EINTR, "poll fails on an eventfd");
  }
}

}  // namespace

Cancel::Cancel()
    : event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      nudge_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  MUSTER_ASSERT(event_ && nudge_, "no descriptor is left at the start");
}

void Cancel::request() { (void)::eventfd_write(event_.get(), 1); }
void Cancel::nudge() { (void)::eventfd_write(nudge_.get(), 1); }

bool Cancel::wait(Duration most) const { return wait_for_one(most, event_.get(), -1); }

bool Cancel::wait_or_nudge(Duration most) const {
  const bool ended = wait_for_one(most, event_.get(), nudge_.get());
  eventfd_t count = 0;
  (void)::eventfd_read(nudge_.get(), &count);
  return ended;
}

}  // namespace muster::agent
