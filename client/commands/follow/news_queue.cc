#include "client/commands/follow/news_queue.h"

#include <utility>

namespace muster::client {

void NewsQueue::push(News news) {
  const MutexLock lock(mutex_);
  while (news_.size() >= kMost && !closed_) room_.wait(mutex_);
  if (closed_) return;
  news_.push_back(std::move(news));
  ready_.notify_one();
}

std::deque<News> NewsQueue::take(std::chrono::steady_clock::time_point until) {
  const MutexLock lock(mutex_);
  while (news_.empty() && !closed_ && ready_.wait_until(mutex_, until)) {
  }
  room_.notify_all();
  return std::exchange(news_, {});
}

void NewsQueue::close() {
  const MutexLock lock(mutex_);
  closed_ = true;
  ready_.notify_all();
  room_.notify_all();
}

}  // namespace muster::client
