// A client's Watch stream: history first, then what becomes durable, without a hole between; the
// latest readings in between, at most ten a second a job. Its queue is bounded: a watcher that does
// not keep up is closed with RESOURCE_EXHAUSTED and the index to resume from.
#pragma once

#include <grpcpp/grpcpp.h>

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "controller/api/edge.h"
#include "controller/api/job_ref.h"
#include "muster/v1/job_service.pb.h"

namespace muster::controller {

class WatchStream;

// Wakes streams whose latest reading came too soon after the one before. Owns a timer on the work
// loop.
class SamplePacer {
 public:
  explicit SamplePacer(async::Loop& work)
      : work_(work), timer_(std::make_unique<async::Timer>(work, "sample-pacer")) {}
  void wake_later(std::shared_ptr<WatchStream> stream);  // any thread
  void stop();

 private:
  async::Loop& work_;
  std::unique_ptr<async::Timer> timer_;  // work loop only, as is the rest
  bool armed_ = false;
  std::vector<std::shared_ptr<WatchStream>> waiting_;
};

class WatchStream final : public grpc::ServerWriteReactor<v1::WatchResponse>,
                          public Watcher,
                          public std::enable_shared_from_this<WatchStream> {
 public:
  static constexpr std::size_t kQueueMax = 10'000;
  static constexpr Duration kSampleInterval = std::chrono::milliseconds(100);

  // `queue_max` is for tests.
  static grpc::ServerWriteReactor<v1::WatchResponse>* begin(Edge& edge, SamplePacer& pacer,
                                                            const v1::WatchRequest& request,
                                                            std::size_t queue_max = kQueueMax);
  WatchStream(Edge& edge, SamplePacer& pacer, const v1::WatchRequest& request,
              std::size_t queue_max)
      : edge_(edge), pacer_(pacer), request_(request), queue_max_(queue_max) {}

  // Watcher, on the strand
  void on_events(std::span<const EventPtr> events, const View& view) override;
  void on_reading(const JobId& job, const core::Presence& presence) override;
  void on_presence(const core::Presence&) override {}

  void wake();  // any thread

  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  void open(const View& view);
  void queue(std::span<const EventPtr> events);  // mutex_ held
  void end(grpc::Status status);
  void write_next();  // mutex_ held

  Edge& edge_;
  SamplePacer& pacer_;
  const v1::WatchRequest request_;
  const std::size_t queue_max_;
  std::shared_ptr<WatchStream> self_;

  std::mutex mutex_;  // guards everything below
  std::deque<EventPtr> queue_;
  std::map<JobId, v1::Progress> samples_;  // latest, not written yet
  BootTime last_sample_{};
  bool pacing_ = false;
  std::size_t history_ = 0;  // events queued at the beginning: they do not count as not keeping up
  std::uint64_t written_index_ = 0;
  v1::WatchResponse outgoing_;
  bool writing_ = false, finished_ = false, last_event_queued_ = false;
  std::optional<grpc::Status> ending_;  // at once
};

}  // namespace muster::controller
