#include "client/commands/follow/news_queue.h"

#include <utility>

namespace muster::client {

void NewsQueue::push(News news) {
  std::unique_lock lock(mutex_);
  room_.wait(lock, [this] { return news_.size() < kMost || closed_; });
  if (closed_) return;
  news_.push_back(std::move(news));
  ready_.notify_one();
}

std::deque<News> NewsQueue::take(std::chrono::steady_clock::time_point until) {
  std::unique_lock lock(mutex_);
  ready_.wait_until(lock, until, [this] { return !news_.empty() || closed_; });
  room_.notify_all();
  return std::exchange(news_, {});
}

void NewsQueue::close() {
  const std::scoped_lock lock(mutex_);
  closed_ = true;
  ready_.notify_all();
  room_.notify_all();
}

}  // namespace muster::client
