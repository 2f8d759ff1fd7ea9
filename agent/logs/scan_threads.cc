#include "agent/logs/scan_threads.h"

#include <pthread.h>

#include <deque>
#include <map>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

namespace muster::agent {

struct ScanThreads::State {
  explicit State(std::size_t most) : most(most) {}
  struct Queue {
    std::deque<Work> work;
    bool at_work = false;
  };
  const std::size_t most;
  std::mutex mutex;
  std::map<Lane, Queue> lanes;  // lanes with work
  std::deque<Lane> waiting;     // lanes with work and without a thread
  std::size_t threads = 0;
  bool closed = false;
  std::error_code refused;  // error of the last refused thread
};

ScanThreads::ScanThreads(std::size_t most) : state_(std::make_shared<State>(most)) {}

void ScanThreads::serve(const std::shared_ptr<State>& state) {
  std::unique_lock lock(state->mutex);
  while (!state->closed && !state->waiting.empty()) {
    const Lane lane = state->waiting.front();
    state->waiting.pop_front();
    {
      State::Queue& queue = state->lanes[lane];
      queue.at_work = true;
      Work work = std::move(queue.work.front());
      queue.work.pop_front();
      lock.unlock();
      work();
    }  // its captures are destroyed without the lock
    lock.lock();
    const auto found = state->lanes.find(lane);
    if (found == state->lanes.end()) continue;  // closed meanwhile
    found->second.at_work = false;
    if (found->second.work.empty()) {
      state->lanes.erase(found);
    } else {
      state->waiting.push_back(lane);
    }
  }
  --state->threads;
}

// The caller has the lock.
void ScanThreads::begin_thread(const std::shared_ptr<State>& state) {
  if (state->threads >= state->most) return;
  try {
    std::thread([state] {
      (void)::pthread_setname_np(::pthread_self(), "agent-scan");
      serve(state);
    }).detach();
    ++state->threads;
    state->refused.clear();
    // the lane waits until another thread ends, or for kick()
  } catch (const std::system_error& error) {
    state->refused = error.code();
  }
}

void ScanThreads::run(Lane lane, Work work) {
  const std::scoped_lock lock(state_->mutex);
  if (state_->closed) return;
  State::Queue& queue = state_->lanes[lane];
  const bool idle = queue.work.empty() && !queue.at_work;
  queue.work.push_back(std::move(work));
  if (!idle) return;
  state_->waiting.push_back(lane);
  begin_thread(state_);
}

bool ScanThreads::at_work(Lane lane) const {
  const std::scoped_lock lock(state_->mutex);
  const auto found = state_->lanes.find(lane);
  return found != state_->lanes.end() && found->second.at_work;
}

std::string ScanThreads::why_waiting() const {
  const std::scoped_lock lock(state_->mutex);
  if (state_->refused) return "no thread is to be had: " + state_->refused.message();
  if (state_->threads < state_->most) return {};
  return "all " + std::to_string(state_->most) +
         " threads for such scans wait for file systems that do not answer";
}

void ScanThreads::kick() {
  const std::scoped_lock lock(state_->mutex);
  if (!state_->closed && !state_->waiting.empty()) begin_thread(state_);
}

void ScanThreads::close() {
  std::map<Lane, State::Queue> dropped;
  const std::scoped_lock lock(state_->mutex);
  state_->closed = true;
  state_->waiting.clear();
  dropped.swap(state_->lanes);
}

}  // namespace muster::agent
