// WatchStream sends a client's Watch stream: first the history, then events as they become durable,
// without a gap. Watch creates it, and it owns itself until OnDone(). gRPC's threads and the
// shell's strand use it; a mutex guards its state.
//
// Between events it sends the latest readings, at most ten a second for each job. Its queue is
// bounded. A watcher that does not keep up is closed with RESOURCE_EXHAUSTED and the index to
// resume from.
//
// Of what the caller may not see, events have no sentence, and readings no loss (withhold.h). A
// stream that shows more than a new access file allows ends.
#pragma once

#include <grpcpp/grpcpp.h>

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "common/base/mutex.h"
#include "controller/api/edge.h"
#include "controller/api/job_ref.h"
#include "muster/v1/job_service.pb.h"

namespace muster::controller {

class WatchStream;

// SamplePacer wakes streams whose latest reading came too soon after the one before. JobService
// owns it. It owns a timer on the work loop.
class SamplePacer {
 public:
  explicit SamplePacer(async::Loop& work)
      : work_(work), timer_(std::make_unique<async::Timer>(work, "sample-pacer")) {}
  void wake_later(std::shared_ptr<WatchStream> stream);  // any thread
  void stop();

 private:
  async::Loop& work_;
  std::unique_ptr<async::Timer> timer_ MUSTER_GUARDED_BY(work_);
  bool armed_ MUSTER_GUARDED_BY(work_) = false;
  std::vector<std::shared_ptr<WatchStream>> waiting_ MUSTER_GUARDED_BY(work_);
};

class WatchStream final : public grpc::ServerWriteReactor<v1::WatchResponse>,
                          public Watcher,
                          public std::enable_shared_from_this<WatchStream> {
 public:
  static constexpr std::size_t kQueueMax = 10'000;
  static constexpr Duration kSampleInterval = std::chrono::milliseconds(100);

  // `queue_max` is for tests.
  static grpc::ServerWriteReactor<v1::WatchResponse>* begin(Edge& edge, SamplePacer& pacer,
                                                            JobAccess access,
                                                            const v1::WatchRequest& request,
                                                            std::size_t queue_max = kQueueMax,
                                                            Revocations::Stay stay = {});
  WatchStream(Edge& edge, SamplePacer& pacer, JobAccess access, const v1::WatchRequest& request,
              std::size_t queue_max, Revocations::Stay stay)
      : edge_(edge),
        pacer_(pacer),
        access_(std::move(access)),
        request_(request),
        queue_max_(queue_max),
        stay_(std::move(stay)) {}

  // Watcher, on the strand.
  void on_events(std::span<const EventPtr> events, const View& view) override;
  void on_reading(const JobId& job, const core::Presence& presence) override;
  void on_presence(const core::Presence&) override {}

  void wake();  // any thread

  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  void open(const View& view);
  // The stream ends when the access file takes the right to see so much.
  void keep_while_whole(const JobId& job, const std::string& owner);
  void keep_while_all();
  // As the caller may see it.
  [[nodiscard]] EventPtr shown(const EventPtr& event, const std::string* owner) const;
  // The owners of their jobs are in the ledger.
  void queue(std::span<const EventPtr> events, const core::Ledger& ledger) MUSTER_REQUIRES(mutex_);
  void queue_one(EventPtr event) MUSTER_REQUIRES(mutex_);
  void end(grpc::Status status);
  void write_next() MUSTER_REQUIRES(mutex_);

  Edge& edge_;
  SamplePacer& pacer_;
  const JobAccess access_;
  const v1::WatchRequest request_;
  const std::size_t queue_max_;
  Revocations::Stay stay_;  // until OnDone
  std::shared_ptr<WatchStream> self_;

  Mutex mutex_;
  std::deque<EventPtr> queue_ MUSTER_GUARDED_BY(mutex_);
  std::map<JobId, v1::Progress> samples_ MUSTER_GUARDED_BY(mutex_);  // the latest, not written yet
  std::set<JobId> whole_ MUSTER_GUARDED_BY(mutex_);  // jobs whose losses the caller may see
  BootTime last_sample_ MUSTER_GUARDED_BY(mutex_){};
  bool pacing_ MUSTER_GUARDED_BY(mutex_) = false;
  // Events queued at the beginning. They do not count against the bound.
  std::size_t history_ MUSTER_GUARDED_BY(mutex_) = 0;
  std::uint64_t written_index_ MUSTER_GUARDED_BY(mutex_) = 0;
  v1::WatchResponse outgoing_ MUSTER_GUARDED_BY(mutex_);
  bool writing_ MUSTER_GUARDED_BY(mutex_) = false, finished_ MUSTER_GUARDED_BY(mutex_) = false;
  bool last_event_queued_ MUSTER_GUARDED_BY(mutex_) = false;
  std::optional<grpc::Status> ending_ MUSTER_GUARDED_BY(mutex_);  // set: end at once
};

}  // namespace muster::controller
