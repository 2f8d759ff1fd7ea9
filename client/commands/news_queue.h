// What the reading threads of a followed job hand to the thread that prints. Bounded: a reader
// waits when the terminal is slower than the job. Any thread.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <variant>

#include "common/base/error.h"
#include "muster/v1/job_service.pb.h"

namespace muster::client {

// Of one of the two streams; an error ended it for good.
struct EventsEnded {
  Result<void> how;
};
struct LogsEnded {
  Result<void> how;
};
using News = std::variant<v1::WatchResponse, v1::ReadLogsResponse, EventsEnded, LogsEnded>;

class NewsQueue {
 public:
  static constexpr std::size_t kMost = 4096;

  void push(News news);
  // Everything there is; waits until there is something, for `until`, or for close().
  std::deque<News> take(std::chrono::steady_clock::time_point until);
  // Nobody waits any more, on either side.
  void close();

 private:
  std::mutex mutex_;
  std::condition_variable ready_, room_;
  std::deque<News> news_;
  bool closed_ = false;
};

}  // namespace muster::client
