#include "client/commands/call/interrupt.h"

#include <pthread.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <ctime>

namespace muster::client {
namespace {

using Clock = std::chrono::steady_clock;

sigset_t waited_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGUSR1);  // muster's own signal: stop waiting
  return set;
}

}  // namespace

Interrupt::Interrupt(std::optional<std::chrono::milliseconds> timeout) {
  const sigset_t set = waited_signals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  thread_ = std::thread([this, timeout] { run(timeout); });
}

Interrupt::~Interrupt() {
  stop_ = true;
  pthread_kill(thread_.native_handle(), SIGUSR1);
  thread_.join();
}

void Interrupt::run(std::optional<std::chrono::milliseconds> timeout) {
  const sigset_t set = waited_signals();
  const auto deadline = Clock::now() + timeout.value_or(std::chrono::hours(24 * 365));
  while (!stop_) {
    const auto left =
        std::max(std::chrono::nanoseconds(0),
                 std::chrono::duration_cast<std::chrono::nanoseconds>(deadline - Clock::now()));
    const timespec wait{.tv_sec = left.count() / 1'000'000'000,
                        .tv_nsec = left.count() % 1'000'000'000};
    const int number = sigtimedwait(&set, nullptr, &wait);
    if (stop_ || number == SIGUSR1 || (number < 0 && errno == EINTR)) continue;
    return fire(number < 0 ? Reason::Time : Reason::Signal);
  }
}

void Interrupt::fire(Reason reason) {
  // All of this is under the lock. A callback that is set at the same time is called by one of the
  // two sides. After a callback is removed, no thread is inside it.
  const MutexLock lock(mutex_);
  reason_ = reason;
  calls_.cancel();
  if (on_fire_) on_fire_();
}

Interrupt::OnFire::OnFire(Interrupt& owner, std::function<void()> callback) : owner_(owner) {
  const MutexLock lock(owner_.mutex_);
  owner_.on_fire_ = std::move(callback);
  if (owner_.fired()) owner_.on_fire_();
}

Interrupt::OnFire::~OnFire() {
  const MutexLock lock(owner_.mutex_);
  owner_.on_fire_ = nullptr;
}

}  // namespace muster::client
