// LogStream sends a client's ReadLogs stream: bytes of the chosen logs from the controller's own
// copy, attempt by attempt, with gaps marked. ReadLogs creates it, and it owns itself until
// OnDone(). Its state lives on the work loop; gRPC's callbacks and the shell post to it.
//
// A following stream continues over attempts. It ends when the job is final and every chosen log is
// over. A log is over if it is complete, if its part is collected, or if its node is not there to
// send the rest. For logs other than the ranks', the store knows which ones exist. If such logs are
// requested, the stream waits for every part that may still begin one. Also a stream that does not
// follow waits so where the job is final, but not for long.
//
// One write is outstanding at a time. Data that is not read yet stays in the store, so a slow
// reader costs no memory.
#pragma once

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "common/async/loop.h"
#include "common/base/mutex.h"
#include "common/base/time.h"
#include "controller/api/edge.h"
#include "controller/api/job_ref.h"
#include "controller/api/log_sources.h"
#include "muster/v1/job_service.pb.h"

namespace muster::controller {

class LogStream;

// LogFollowers knows which streams follow which job. JobService owns it. The store notifies it of
// each change; one wake-up handles all changes that come before it runs.
class LogFollowers {
 public:
  explicit LogFollowers(Edge& edge);
  // On the work loop.
  void add(const JobId& job, LogStream* stream);
  void remove(const JobId& job, const LogStream* stream);

 private:
  void changed(const logs::LogKey& key);  // on the store's threads
  void wake();                            // on the work loop

  Edge& edge_;
  Mutex mutex_;
  std::set<logs::LogKey> changed_ MUSTER_GUARDED_BY(mutex_);
  // So that logs nobody follows cost nothing.
  std::unordered_map<JobId, std::size_t> followed_ MUSTER_GUARDED_BY(mutex_);
  std::unordered_multimap<JobId, LogStream*> streams_ MUSTER_GUARDED_BY(edge_.work);
};

class LogStream final : public grpc::ServerWriteReactor<v1::ReadLogsResponse>,
                        public Watcher,
                        public std::enable_shared_from_this<LogStream> {
 public:
  static constexpr std::size_t kChunkMax = 256 << 10;
  // Logs travel apart from the facts: the end of a job is known before the last lines have come.
  // So long they are waited for.
  static constexpr Duration kLateMost = std::chrono::seconds(5);

  static grpc::ServerWriteReactor<v1::ReadLogsResponse>* begin(Edge& edge, LogFollowers& followers,
                                                               JobAccess access,
                                                               const v1::ReadLogsRequest& request,
                                                               Revocations::Stay stay = {});
  LogStream(Edge& edge, LogFollowers& followers, JobAccess access,
            const v1::ReadLogsRequest& request, Revocations::Stay stay)
      : edge_(edge),
        followers_(followers),
        access_(std::move(access)),
        request_(request),
        stay_(std::move(stay)) {}

  void on_events(std::span<const EventPtr> events, const View& view) override;
  void on_reading(const JobId&, const core::Presence&) override {}
  void on_presence(const core::Presence& presence) override;

  void on_log(const logs::LogKey& log);  // on the work loop: the store has more of it

  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  struct PartSeen {
    bool there = true;
    bool collected = false;  // nothing comes any more, even if the node is connected
    [[nodiscard]] bool over() const { return collected || !there; }
  };
  struct Cursor {
    NodeName node;
    std::uint64_t offset = 0;
    bool begun = false;  // tail_lines and since were looked up
    bool complete = false;
    PartSeen part;
  };
  void open(const View& view);
  // False: the call is ended, because the caller may not read them.
  bool may_read(const core::JobRecord& job);
  void sources(LogSources sources);  // on the work loop, as everything below
  void pump();
  // True: finished, because the job does not have what was requested.
  bool refuse_missing(const LogSources& sources) MUSTER_REQUIRES(edge_.work);
  // The same for logs other than the ranks'. Those that exist get cursors.
  bool find_auxiliaries(const LogSources& sources) MUSTER_REQUIRES(edge_.work);
  void add_auxiliary(const logs::LogKey& log, bool was_there) MUSTER_REQUIRES(edge_.work);
  void add(const logs::LogKey& log, const NodeName& node, const PartSeen& part, bool was_there)
      MUSTER_REQUIRES(edge_.work);
  bool begin_at(const logs::LogKey& log, Cursor& cursor) MUSTER_REQUIRES(edge_.work);
  // False: nothing there now.
  bool write_some(const logs::LogKey& log, Cursor& cursor) MUSTER_REQUIRES(edge_.work);
  [[nodiscard]] bool wanted(AttemptNo attempt) const MUSTER_REQUIRES(edge_.work);
  [[nodiscard]] std::vector<AttemptNo> chosen(const LogSources& sources) const
      MUSTER_REQUIRES(edge_.work);
  [[nodiscard]] bool wanted(const NodeName& node) const {
    return request_.node().empty() || request_.node() == node.str();
  }
  void finish(grpc::Status status);
  template <class Work>
  void post(const char* name, Work work);

  Edge& edge_;
  LogFollowers& followers_;
  const JobAccess access_;
  v1::ReadLogsRequest request_;  // constant once the job has a chosen attempt
  std::shared_ptr<LogStream> self_;
  Revocations::Stay stay_;  // until OnDone
  std::atomic<bool> cancelled_ = false;

  LogChoice choice_ MUSTER_GUARDED_BY(edge_.work){request_};
  JobId job_ MUSTER_GUARDED_BY(edge_.work);
  bool ranks_found_ MUSTER_GUARDED_BY(edge_.work) = false;  // the ranks inside scripts
  bool opened_ MUSTER_GUARDED_BY(edge_.work) = false, registered_
                                                      MUSTER_GUARDED_BY(edge_.work) = false;
  bool checked_ MUSTER_GUARDED_BY(edge_.work) = false, final_ MUSTER_GUARDED_BY(edge_.work) = false;
  bool writing_ MUSTER_GUARDED_BY(edge_.work) = false, finished_
                                                       MUSTER_GUARDED_BY(edge_.work) = false;
  // Without a chosen attempt: the current one when the stream began.
  AttemptNo first_attempt_ MUSTER_GUARDED_BY(edge_.work);
  std::map<logs::LogKey, Cursor> cursors_ MUSTER_GUARDED_BY(edge_.work);
  // Parts that may have logs other than the ranks'. Kept only if such logs are requested.
  std::map<std::pair<AttemptNo, NodeName>, PartSeen> parts_ MUSTER_GUARDED_BY(edge_.work);
  std::optional<async::Timer> late_ MUSTER_GUARDED_BY(edge_.work);  // set: lines may still come
  std::set<logs::LogKey> ready_ MUSTER_GUARDED_BY(edge_.work);      // may have bytes to read
  // The log that was written last: the next log of the same attempt comes first.
  logs::LogKey last_ MUSTER_GUARDED_BY(edge_.work){};
  v1::ReadLogsResponse outgoing_ MUSTER_GUARDED_BY(edge_.work);
};

}  // namespace muster::controller
