#include "agent/logs/scan_threads.h"

#include <pthread.h>

#include <deque>
#include <map>
#include <system_error>
#include <thread>
#include <utility>

#include "common/base/mutex.h"

namespace muster::agent {

struct ScanThreads::State : std::enable_shared_from_this<State> {
  explicit State(std::size_t threads_most) : most(threads_most) {}
  struct Queue {
    std::deque<Work> work;
    bool at_work = false;
  };
  // Starts a thread if a lane waits that may have one.
  void begin_thread() MUSTER_REQUIRES(mutex);
  // False: enough lanes of its mount, whose file systems are unknown, too, are at work.
  [[nodiscard]] bool has_turn(Lane lane) const MUSTER_REQUIRES(mutex);
  // The first lane that waits and has its turn, or the end of `waiting`.
  [[nodiscard]] std::deque<Lane>::iterator next_turn() MUSTER_REQUIRES(mutex);
  void serve() MUSTER_EXCLUDES(mutex);
  // One piece of the lane. The mutex is free while the piece runs and its captures are destroyed.
  void serve(Lane lane) MUSTER_REQUIRES(mutex);

  const std::size_t most;
  Mutex mutex;
  std::map<Lane, Queue> lanes MUSTER_GUARDED_BY(mutex);  // lanes with work
  std::deque<Lane> waiting MUSTER_GUARDED_BY(mutex);     // lanes with work and without a thread
  // Number of threads that run lanes of unknown file systems, by mount.
  std::map<std::uint64_t, std::size_t> unknown MUSTER_GUARDED_BY(mutex);
  std::size_t threads MUSTER_GUARDED_BY(mutex) = 0;
  bool closed MUSTER_GUARDED_BY(mutex) = false;
  std::error_code refused MUSTER_GUARDED_BY(mutex);  // error of the last refused thread
};

ScanThreads::ScanThreads(std::size_t most) : state_(std::make_shared<State>(most)) {}

bool ScanThreads::State::has_turn(Lane lane) const {
  const auto at_work = unknown.find(lane.mount);
  return lane.kind == LaneKind::Device || at_work == unknown.end() ||
         at_work->second < kUnknownOfMount;
}

std::deque<ScanThreads::Lane>::iterator ScanThreads::State::next_turn() {
  auto at = waiting.begin();
  while (at != waiting.end() && !has_turn(*at)) ++at;
  return at;
}

void ScanThreads::State::serve(Lane lane) {
  Queue& queue = lanes[lane];
  queue.at_work = true;
  if (lane.kind == LaneKind::Run) ++unknown[lane.mount];
  {
    Work work = std::move(queue.work.front());
    queue.work.pop_front();
    mutex.unlock();
    work();
  }
  mutex.lock();
  if (lane.kind == LaneKind::Run && --unknown[lane.mount] == 0) unknown.erase(lane.mount);
  const auto found = lanes.find(lane);
  if (found == lanes.end()) return;  // closed meanwhile
  found->second.at_work = false;
  if (found->second.work.empty()) {
    lanes.erase(found);
  } else {
    waiting.push_back(lane);
  }
}

void ScanThreads::State::serve() {
  const MutexLock lock(mutex);
  for (auto turn = next_turn(); turn != waiting.end(); turn = next_turn()) {
    const Lane lane = *turn;
    waiting.erase(turn);
    serve(lane);
  }
  --threads;
}

void ScanThreads::State::begin_thread() {
  if (threads >= most || next_turn() == waiting.end()) return;
  try {
    std::thread([state = shared_from_this()] {
      (void)::pthread_setname_np(::pthread_self(), "agent-scan");
      state->serve();
    }).detach();
    ++threads;
    refused.clear();
    // the lane waits until another thread ends, or for kick()
  } catch (const std::system_error& error) {
    refused = error.code();
  }
}

void ScanThreads::run(Lane lane, Work work) {
  const MutexLock lock(state_->mutex);
  if (state_->closed) return;
  State::Queue& queue = state_->lanes[lane];
  const bool idle = queue.work.empty() && !queue.at_work;
  queue.work.push_back(std::move(work));
  if (!idle) return;
  state_->waiting.push_back(lane);
  state_->begin_thread();
}

bool ScanThreads::at_work(Lane lane) const {
  const MutexLock lock(state_->mutex);
  const auto found = state_->lanes.find(lane);
  return found != state_->lanes.end() && found->second.at_work;
}

std::string ScanThreads::why_waiting(Lane lane) const {
  const MutexLock lock(state_->mutex);
  if (state_->refused) return "no thread is to be had: " + state_->refused.message();
  if (state_->threads >= state_->most)
    return "all " + std::to_string(state_->most) +
           " threads for such scans wait for file systems that do not answer";
  if (!state_->has_turn(lane))
    return std::to_string(kUnknownOfMount) +
           " first scans of what is mounted there have no answer yet";
  return {};
}

void ScanThreads::kick() {
  const MutexLock lock(state_->mutex);
  if (!state_->closed) state_->begin_thread();
}

void ScanThreads::close() {
  std::map<Lane, State::Queue> dropped;
  {
    const MutexLock lock(state_->mutex);
    state_->closed = true;
    state_->waiting.clear();
    dropped.swap(state_->lanes);
  }
  // What the work has captured may be open files of a file system that hangs.
  for (auto& [lane, queue] : dropped) {
    if (queue.work.empty()) continue;
    try {
      std::thread([work = std::move(queue.work)] {}).detach();
    } catch (const std::system_error&) {
      continue;  // closed by this thread
    }
  }
}

}  // namespace muster::agent
