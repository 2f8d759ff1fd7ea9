// The two streams of a followed job: events with samples, and the logs of all attempts, with those
// of setups that failed. A thread each, over restarts of the controller, until the job has ended or
// this is destroyed. One thread makes it, begins the logs and destroys it.
#pragma once

#include <cstdint>
#include <string>
#include <thread>

#include "client/commands/call_group.h"
#include "client/commands/context.h"
#include "client/commands/news_queue.h"

namespace muster::client {

class JobStreams {
 public:
  // `session` and `news` outlive it. Without `logs` a LogsEnded comes at once; with them none is
  // read before begin_logs().
  JobStreams(const Session& session, std::string job_id, bool logs, NewsQueue& news);
  // Closes `news`.
  ~JobStreams();
  JobStreams(const JobStreams&) = delete;
  JobStreams& operator=(const JobStreams&) = delete;

  // Once; a second call does nothing. `tail`: the logs of the attempt that is now, from so many
  // lines before their ends, and of later ones; 0: all.
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
