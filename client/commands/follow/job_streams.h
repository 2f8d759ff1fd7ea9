// JobStreams reads the two streams of a followed job: events with samples, and the logs of all
// attempts with those of setups that failed. The Follower of follow.cc creates and destroys it, and
// calls begin_logs(), on one thread. Each stream has a thread of its own.
//
// The threads read on over restarts of the controller, until the job has ended or the object is
// destroyed.
#pragma once

#include <cstdint>
#include <string>
#include <thread>

#include "client/commands/call/call_group.h"
#include "client/commands/call/context.h"
#include "client/commands/follow/news_queue.h"

namespace muster::client {

class JobStreams {
 public:
  // `session` and `news` must outlive the object. Without `logs` a LogsEnded comes at once. With
  // `logs` no log is read before begin_logs().
  JobStreams(const Session& session, std::string job_id, bool logs, NewsQueue& news);
  // Closes `news`.
  ~JobStreams();
  JobStreams(const JobStreams&) = delete;
  JobStreams& operator=(const JobStreams&) = delete;

  // Starts the logs once; a second call does nothing. With `tail` the stream starts at the current
  // attempt, that many lines before the end of each log, and goes on with later attempts. 0 means
  // all logs.
  void begin_logs(std::uint64_t tail);

 private:
  void read_events();
  void read_logs(std::uint64_t tail);

  const Session& session_;
  const std::string job_id_;
  const bool with_logs_;
  NewsQueue& news_;
  CallGroup calls_;
  std::thread events_, logs_;
};

}  // namespace muster::client
