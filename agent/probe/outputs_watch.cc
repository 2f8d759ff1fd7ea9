#include "agent/probe/outputs_watch.h"

#include <fmt/format.h>
#include <google/protobuf/util/message_differencer.h>
#include <pthread.h>

#include <chrono>
#include <system_error>
#include <thread>
#include <utility>

#include "common/base/mutex.h"

namespace muster::agent::probe {
namespace {

using Steady = std::chrono::steady_clock;

// from a check that ends to the end of the thread
constexpr auto kThreadEnds = std::chrono::milliseconds(200);

}  // namespace

struct OutputsWatch::Shared {
  OutputsWatchOptions options;
  std::thread thread;

  Mutex mutex;  // never locked while the file system is used
  CondVar changed;
  std::string root MUSTER_GUARDED_BY(mutex);
  std::optional<Steady::time_point> since MUSTER_GUARDED_BY(mutex);  // the first check of `root`
  std::optional<Steady::time_point> began
      MUSTER_GUARDED_BY(mutex);  // of the check that is made now
  std::optional<v1::OutputsReading> latest MUSTER_GUARDED_BY(mutex);
  bool taken MUSTER_GUARDED_BY(mutex) = false;
  bool stopped MUSTER_GUARDED_BY(mutex) = false;
  bool ended MUSTER_GUARDED_BY(mutex) = false;

  void run() {
    ::pthread_setname_np(::pthread_self(), "agent-outputs");
    while (const auto dir = next()) {
      v1::OutputsReading reading = options.check(*dir);
      const MutexLock lock(mutex);
      began.reset();
      if (*dir == root) set(std::move(reading));
    }
    const MutexLock lock(mutex);
    ended = true;
    changed.notify_all();
  }

  // The directory to check, when it is time. Nothing: stopped.
  std::optional<std::string> next() {
    const MutexLock lock(mutex);
    if (since) {
      const Steady::time_point now = Steady::now();
      const Duration gap =
          now - *since < options.at_first_for ? options.at_first : options.interval;
      const auto until = now + gap;
      while (!stopped && since && changed.wait_until(mutex, until)) {
      }
    }
    if (stopped) return std::nullopt;
    began = Steady::now();
    if (!since) since = began;
    return root;
  }

  void set(v1::OutputsReading reading) MUSTER_REQUIRES(mutex) {
    if (latest && google::protobuf::util::MessageDifferencer::Equals(*latest, reading)) return;
    latest = std::move(reading);
    taken = false;
  }
};

Result<std::unique_ptr<OutputsWatch>> OutputsWatch::start(std::string root,
                                                          OutputsWatchOptions options) {
  auto shared = std::make_shared<Shared>();
  shared->options = std::move(options);
  {
    const MutexLock lock(shared->mutex);
    shared->root = std::move(root);
  }
  try {
    shared->thread = std::thread([shared] { shared->run(); });
  } catch (const std::system_error& error) {
    return fail_errno("starting a thread that checks the directory of outputs",
                      error.code().value());
  }
  return std::unique_ptr<OutputsWatch>(new OutputsWatch(std::move(shared)));
}

OutputsWatch::~OutputsWatch() { stop(); }

void OutputsWatch::watch(std::string root) {
  const MutexLock lock(shared_->mutex);
  if (shared_->root == root) return;
  shared_->root = std::move(root);
  shared_->since.reset();
  shared_->latest.reset();
  shared_->changed.notify_all();
}

std::optional<v1::OutputsReading> OutputsWatch::take() {
  const MutexLock lock(shared_->mutex);
  if (shared_->began && Steady::now() - *shared_->began > shared_->options.hangs_after) {
    v1::OutputsReading hangs;
    hangs.set_root(shared_->root);
    hangs.set_trouble(fmt::format("'{}' does not answer: is the server of its file system there?",
                                  shared_->root));
    shared_->set(std::move(hangs));
  }
  if (!shared_->latest || std::exchange(shared_->taken, true)) return std::nullopt;
  return shared_->latest;
}

void OutputsWatch::send_again() {
  const MutexLock lock(shared_->mutex);
  shared_->taken = false;
}

void OutputsWatch::stop() {
  if (!shared_->thread.joinable()) return;
  bool ended = false;
  {
    const MutexLock lock(shared_->mutex);
    shared_->stopped = true;
    shared_->changed.notify_all();
    const auto until = Steady::now() + kThreadEnds;
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
