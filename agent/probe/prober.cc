#include "agent/probe/prober.h"

#include <pthread.h>
#include <sys/eventfd.h>

#include <cerrno>
#include <system_error>
#include <thread>

#include "common/base/mutex.h"
#include "common/io/unique_fd.h"

namespace muster::agent::probe {
namespace {

// from the end of all tools to the end of the thread
constexpr auto kStopBound = std::chrono::seconds(2);

}  // namespace

struct Prober::Shared {
  ProbeOptions options;
  Duration interval{};
  OnProbed on_probed;
  io::UniqueFd cancel;
  process::ToolRunner tools;
  std::thread thread;

  Mutex mutex;  // locked while on_probed runs, so that stop() waits for it
  CondVar changed;
  bool stopped MUSTER_GUARDED_BY(mutex) = false;
  bool ended MUSTER_GUARDED_BY(mutex) = false;

  void run() {
    ::pthread_setname_np(::pthread_self(), "agent-probe");
    for (bool first = true;; first = false) {
      if (!first && !wait()) break;
      Probed probed = probe_devices(tools, options);
      const MutexLock lock(mutex);
      if (stopped) break;
      on_probed(std::move(probed));
    }
    const MutexLock lock(mutex);
    ended = true;
    changed.notify_all();
  }
  // Returns false if no other probe follows.
  bool wait() {
    const MutexLock lock(mutex);
    if (interval <= Duration::zero()) {
      while (!stopped) changed.wait(mutex);
    } else {
      const auto until = std::chrono::steady_clock::now() + interval;
      while (!stopped && changed.wait_until(mutex, until)) {
      }
    }
    return !stopped;
  }
};

Result<std::unique_ptr<Prober>> Prober::start(ProbeOptions options, Duration interval,
                                              OnProbed on_probed) {
  auto shared = std::make_shared<Shared>();
  shared->cancel = io::UniqueFd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!shared->cancel) return fail_errno("starting to probe devices", errno);
  shared->options = std::move(options);
  shared->options.cancel_fd = shared->cancel.get();
  shared->interval = interval;
  shared->on_probed = std::move(on_probed);
  try {
    shared->thread = std::thread([shared] { shared->run(); });
  } catch (const std::system_error& error) {
    return fail_errno("starting a thread that probes devices", error.code().value());
  }
  return std::unique_ptr<Prober>(new Prober(std::move(shared)));
}

Prober::~Prober() { stop(); }

void Prober::stop() {
  if (!shared_->thread.joinable()) return;
  bool ended = false;
  {
    const MutexLock lock(shared_->mutex);
    shared_->stopped = true;
    (void)::eventfd_write(shared_->cancel.get(), 1);
    shared_->changed.notify_all();
    const auto until = std::chrono::steady_clock::now() + kStopBound;
    while (!shared_->ended && shared_->changed.wait_until(shared_->mutex, until)) {
    }
    ended = shared_->ended;
  }
  if (ended) {
    shared_->thread.join();
  } else {
    shared_->thread.detach();
  }
}

}  // namespace muster::agent::probe
