#include "client/commands/job_streams.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <utility>

#include "common/rpc/backoff.h"

namespace muster::client {

JobStreams::JobStreams(const Session& session, std::string job_id, bool logs, NewsQueue& news)
    : session_(session), job_id_(std::move(job_id)), news_(news), events_([this] { read_events(); }) {
  if (logs)
    logs_ = std::thread([this] { read_logs(); });
  else
    news_.push(LogsEnded{});
}

JobStreams::~JobStreams() {
  news_.close();
  calls_.cancel();
  events_.join();
  if (logs_.joinable()) logs_.join();
}

// Runs `read` on a call, again and again with back-off until it says that it is done or the group is cancelled.
template <class Read>
void JobStreams::with_retries(Read read) {
  rpc::Backoff backoff(std::random_device{}());
  do {
    grpc::ClientContext call;
    session_.prepare(call, std::nullopt);
    const CallGroup::Member member(calls_, call);
    if (read(call, backoff)) return;
  } while (!calls_.wait_for(backoff.next()));
}

namespace {

// Worth another try: the controller is away or going down, or has too much to do.
bool passing(const grpc::Status& status) {
  constexpr std::array kCodes = {grpc::StatusCode::UNAVAILABLE, grpc::StatusCode::CANCELLED, grpc::StatusCode::RESOURCE_EXHAUSTED};
  return std::ranges::find(kCodes, status.error_code()) != kCodes.end();
}

}  // namespace

void JobStreams::read_events() {
  std::uint64_t index = 0;
  with_retries([&](grpc::ClientContext& call, rpc::Backoff& backoff) {
    v1::WatchRequest request;
    request.set_job(job_id_);
    request.set_from_index(index);
    request.set_samples(true);
    request.set_until_final(true);
    const auto stream = session_.jobs->Watch(&call, request);
    v1::WatchResponse response;
    while (stream->Read(&response)) {
      backoff.reset();
      if (response.has_event()) index = std::max(index, response.event().index());
      news_.push(response);
    }
    const grpc::Status status = stream->Finish();
    if (passing(status)) return false;
    news_.push(EventsEnded{status.ok() ? Result<void>() : fail(to_error(session_, status))});
    return true;
  });
}

void JobStreams::read_logs() {
  // Offsets a rank and attempt, so that a lost controller costs no line and doubles none.
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> seen;
  with_retries([&](grpc::ClientContext& call, rpc::Backoff& backoff) {
    v1::ReadLogsRequest request;
    request.set_job(job_id_);
    request.set_all_attempts(true);
    request.set_follow(true);
    const auto stream = session_.jobs->ReadLogs(&call, request);
    v1::ReadLogsResponse response;
    while (stream->Read(&response)) {
      backoff.reset();
      std::uint64_t& have = seen[{response.attempt(), response.rank()}];
      const std::uint64_t end = response.offset() + response.data().size();
      if (end <= have) continue;
      if (response.offset() < have) {
        response.mutable_data()->erase(0, have - response.offset());
        response.clear_gap();  // told before
      }
      have = end;
      news_.push(response);
    }
    const grpc::Status status = stream->Finish();
    if (passing(status)) return false;
    news_.push(LogsEnded{status.ok() ? Result<void>() : fail(to_error(session_, status))});
    return true;
  });
}

}  // namespace muster::client
