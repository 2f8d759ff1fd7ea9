// A NewsQueue passes news from the reading threads of a followed job to the printing thread. The
// Follower of follow.cc owns one. Any thread.
//
// It is bounded: a reader waits when the terminal is slower than the job.
#pragma once

#include <chrono>
#include <deque>
#include <variant>

#include "common/base/error.h"
#include "common/base/mutex.h"
#include "muster/v1/job_service.pb.h"

namespace muster::client {

// The end of one of the two streams; an error means that it ended for good with that error.
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
  // Returns everything in the queue. Waits until there is something, until `until`, or until
  // close().
  std::deque<News> take(std::chrono::steady_clock::time_point until);
  // Ends all waits, on both sides.
  void close();

 private:
  Mutex mutex_;
  CondVar ready_, room_;
  std::deque<News> news_ MUSTER_GUARDED_BY(mutex_);
  bool closed_ MUSTER_GUARDED_BY(mutex_) = false;
};

}  // namespace muster::client
