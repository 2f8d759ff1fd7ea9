#include "client/commands/interrupt.h"

#include <pthread.h>

#include <csignal>
#include <ctime>

namespace muster::client {
namespace {

sigset_t waited_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGUSR1);  // our own: stop waiting
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
  const auto deadline = std::chrono::steady_clock::now() + timeout.value_or(std::chrono::hours(24 * 365));
  while (!stop_) {
    const auto left = std::max(std::chrono::nanoseconds(0), std::chrono::duration_cast<std::chrono::nanoseconds>(deadline - std::chrono::steady_clock::now()));
    const timespec wait{.tv_sec = left.count() / 1'000'000'000, .tv_nsec = left.count() % 1'000'000'000};
    const int number = sigtimedwait(&set, nullptr, &wait);
    if (stop_ || (number < 0 && errno == EINTR)) continue;
    if (number == SIGUSR1) continue;
    (number < 0 ? timed_out_ : interrupted_) = true;
    // The callback under the lock: whoever has taken it back by on_fire({}) may destroy what it refers to.
    const std::scoped_lock lock(mutex_);
    for (grpc::ClientContext* call : calls_) call->TryCancel();
    if (on_fire_) on_fire_();
    return;
  }
}

void Interrupt::on_fire(std::function<void()> callback) {
  {
    const std::scoped_lock lock(mutex_);
    on_fire_ = callback;
  }
  if (fired() && callback) callback();
}

Interrupt::Guard::Guard(Interrupt& owner, grpc::ClientContext& call) : owner_(owner), call_(call) {
  const std::scoped_lock lock(owner_.mutex_);
  owner_.calls_.insert(&call_);
  if (owner_.fired()) call_.TryCancel();
}

Interrupt::Guard::~Guard() {
  const std::scoped_lock lock(owner_.mutex_);
  owner_.calls_.erase(&call_);
}

}  // namespace muster::client
