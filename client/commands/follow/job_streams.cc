#include "client/commands/follow/job_streams.h"

#include <utility>

#include "client/commands/follow/lasting_streams.h"
#include "client/commands/follow/log_label.h"

namespace muster::client {

JobStreams::JobStreams(const Session& session, std::string job_id, bool logs, NewsQueue& news)
    : session_(session), job_id_(std::move(job_id)), with_logs_(logs), news_(news), events_([this] {
        read_events();
      }) {
  if (!logs) news_.push(LogsEnded{});
}

JobStreams::~JobStreams() {
  news_.close();
  calls_.cancel();
  events_.join();
  if (logs_.joinable()) logs_.join();
}

void JobStreams::begin_logs(std::uint64_t tail) {
  if (with_logs_ && !logs_.joinable()) logs_ = std::thread([this, tail] { read_logs(tail); });
}

void JobStreams::read_events() {
  v1::WatchRequest request;
  request.set_job(job_id_);
  request.set_samples(true);
  request.set_until_final(true);
  const auto status = client::read_events(session_, calls_, request, OnLoss::Wait,
                                          [this](v1::WatchResponse& response) {
                                            news_.push(std::move(response));
                                            return true;
                                          });
  news_.push(EventsEnded{status.ok() ? Result<void>() : fail(to_error(session_, status))});
}

void JobStreams::read_logs(std::uint64_t tail) {
  v1::ReadLogsRequest request;
  request.set_job(job_id_);
  request.set_all_attempts(tail == 0);
  request.set_tail_lines(tail);
  request.set_follow(true);
  request.add_node_logs(kFailedSetups);
  const auto status =
      client::read_logs(session_, calls_, request, OnLoss::Wait,
                        [this](v1::ReadLogsResponse& chunk) { news_.push(std::move(chunk)); });
  news_.push(LogsEnded{status.ok() ? Result<void>() : fail(to_error(session_, status))});
}

}  // namespace muster::client
