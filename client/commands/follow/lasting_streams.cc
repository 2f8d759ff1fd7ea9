#include "client/commands/follow/lasting_streams.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <optional>
#include <random>
#include <utility>

#include "client/commands/follow/log_label.h"
#include "common/rpc/backoff.h"

namespace muster::client {
namespace {

// True if another try may help: the controller is away, is stopping, or is overloaded.
bool passing(const grpc::Status& status) {
  constexpr std::array kCodes = {grpc::StatusCode::UNAVAILABLE, grpc::StatusCode::CANCELLED,
                                 grpc::StatusCode::RESOURCE_EXHAUSTED};
  return std::ranges::find(kCodes, status.error_code()) != kCodes.end();
}

// Runs `read(call, heard)` again and again with back-off, until its stream ends for good. `read`
// returns the status of its stream. It calls `heard()` when the controller has answered.
template <class Read>
grpc::Status with_retries(const Session& session, CallGroup& calls, OnLoss loss, Read read) {
  rpc::Backoff backoff(std::random_device{}());
  bool notified = false;
  const auto heard = [&] {
    backoff.reset();
    notified = false;
  };
  while (true) {
    grpc::Status status;
    {
      grpc::ClientContext call;
      session.prepare(call, std::nullopt);
      const CallGroup::Member member(calls, call);
      status = read(call, heard);
    }
    if (!passing(status) || loss == OnLoss::End || calls.cancelled()) return status;
    if (loss == OnLoss::Notify && !std::exchange(notified, true))
      fmt::print(stderr, "muster: the controller at {} is away: waiting for it (Ctrl-C leaves)\n",
                 session.where);
    if (calls.wait_for(backoff.next())) return status;
  }
}

}  // namespace

grpc::Status read_events(const Session& session, CallGroup& calls, v1::WatchRequest request,
                         OnLoss loss, const std::function<bool(v1::WatchResponse&)>& each) {
  return with_retries(session, calls, loss, [&](grpc::ClientContext& call, const auto& heard) {
    const auto stream = session.jobs->Watch(&call, request);
    v1::WatchResponse response;
    while (stream->Read(&response)) {
      heard();
      if (response.has_event())
        request.set_from_index(std::max(request.from_index(), response.event().index()));
      if (each(response)) continue;
      call.TryCancel();
      stream->Finish();
      return grpc::Status::OK;
    }
    return stream->Finish();
  });
}

grpc::Status read_logs(const Session& session, CallGroup& calls, v1::ReadLogsRequest request,
                       OnLoss loss, const std::function<void(v1::ReadLogsResponse&)>& each) {
  std::map<LogLabel, std::uint64_t> seen;  // the offset after the last byte
  return with_retries(session, calls, loss, [&](grpc::ClientContext& call, const auto& heard) {
    if (!seen.empty()) {
      // The lines before the end are different ones by now.
      request.clear_tail_lines();
      if (request.attempt() == 0) request.set_all_attempts(true);  // it may be another one by now
    }
    const std::uint32_t first = seen.empty() ? 0 : seen.begin()->first.attempt;
    const auto stream = session.jobs->ReadLogs(&call, request);
    v1::ReadLogsResponse response;
    while (stream->Read(&response)) {
      heard();
      if (!response.has_rank() && response.node_log().empty()) {
        call.TryCancel();
        stream->Finish();
        return grpc::Status(grpc::StatusCode::INTERNAL,
                            "a ReadLogsResponse has neither a rank nor a node_log");
      }
      if (response.attempt() < first) continue;
      std::uint64_t& have = seen[label_of(response)];
      const std::uint64_t end = response.offset() + response.data().size();
      if (end <= have) continue;
      if (response.offset() < have) {
        response.mutable_data()->erase(0, have - response.offset());
        response.set_offset(have);
        response.clear_gap();  // already reported
      }
      have = end;
      each(response);
    }
    return stream->Finish();
  });
}

}  // namespace muster::client
