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
  void begin_thread() MUSTER_REQUIRES(mutex);
  void serve() MUSTER_EXCLUDES(mutex);
  // One piece of the lane. The mutex is free while the piece runs and its captures are destroyed.
  void serve(Lane lane) MUSTER_REQUIRES(mutex);

  const std::size_t most;
  Mutex mutex;
  std::map<Lane, Queue> lanes MUSTER_GUARDED_BY(mutex);  // lanes with work
  std::deque<Lane> waiting MUSTER_GUARDED_BY(mutex);     // lanes with work and without a thread
  std::size_t threads MUSTER_GUARDED_BY(mutex) = 0;
  bool closed MUSTER_GUARDED_BY(mutex) = false;
  std::error_code refused MUSTER_GUARDED_BY(mutex);  // error of the last refused thread
};

ScanThreads::ScanThreads(std::size_t most) : state_(std::make_shared<State>(most)) {}

void ScanThreads::State::serve(Lane lane) {
  Queue& queue = lanes[lane];
  queue.at_work = true;
  {
    Work work = std::move(queue.work.front());
    queue.work.pop_front();
    mutex.unlock();
    work();
  }
  mutex.lock();
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
  while (!closed && !waiting.empty()) {
    const Lane lane = waiting.front();
    waiting.pop_front();
    serve(lane);
  }
  --threads;
}

void ScanThreads::State::begin_thread() {
  if (threads >= most) return;
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

std::string ScanThreads::why_waiting() const {
  const MutexLock lock(state_->mutex);
  if (state_->refused) return "no thread is to be had: " + state_->refused.message();
  if (state_->threads < state_->most) return {};
  return "all " + std::to_string(state_->most) +
         " threads for such scans wait for file systems that do not answer";
}

void ScanThreads::kick() {
  const MutexLock lock(state_->mutex);
  if (!state_->closed && !state_->waiting.empty()) state_->begin_thread();
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
