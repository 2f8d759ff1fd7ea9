// Uploads copies what runs of this node have written to the stores that their orders name: a few
// jobs at a time, and one thing of a job after another. Logs wait for no outputs, nor outputs for
// logs. The Agent owns it. Thread-safe; no call but stop() blocks. stop() ends what runs; what was
// not finished is wanted again by the agent's next start.
//
// A checkpoint is frozen as soon as it is wanted (frozen_checkpoint.h). At most two of a run are:
// the one that is under way, and the newest.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <thread>
#include <tuple>
#include <vector>

#include "agent/core/reconcile.h"
#include "agent/launch/secrets_by_name.h"
#include "agent/logs/log_source.h"
#include "agent/outputs/frozen_checkpoint.h"
#include "agent/outputs/send_files.h"
#include "agent/outputs/upload_checkpoint.h"
#include "common/base/error.h"
#include "common/base/mutex.h"
#include "common/rundir/layout.h"

namespace muster::agent {

// As in v1.RemoteCheckpoint.
struct RemoteCheckpoint {
  std::uint32_t attempt = 0;
  std::int64_t step = 0;
  bool mark = false;
  friend auto operator<=>(const RemoteCheckpoint&, const RemoteCheckpoint&) = default;
};
// As in v1.UploadOrder.
struct UploadTask {
  RunKey run;
  std::optional<std::int64_t> step = {};
  bool seal = false;
  bool logs = false;                // of all logs, or of what is new of them
  bool others = false;              // by OutputUpload.every or LogUpload.every, without an order
  std::vector<NodeSums> sums = {};  // with `seal`
  // The same task may come with others, for as long as it waits.
  std::vector<RemoteCheckpoint> remove = {};  // with `seal`, and with everything
  std::vector<RemoteCheckpoint> kept = {};    // with everything
  [[nodiscard]] auto key() const { return std::tie(run, step, seal, logs, others, sums); }
  friend auto operator<=>(const UploadTask& one, const UploadTask& other) {
    return one.key() <=> other.key();
  }
  friend bool operator==(const UploadTask& one, const UploadTask& other) {
    return one.key() == other.key();
  }
};

class Uploads {
 public:
  struct Options {
    // The key of the order's store, among others. Blocking.
    std::function<Result<SecretsByName>(const v1::NodeLaunch&)> fetch_secrets;
    // On a thread of the uploads.
    std::function<void(const UploadTask&, const Uploaded&)> on_end;
    // The logs of the node's runs. Not called before something is wanted.
    std::function<LogSource&()> logs;
    rundir::AgentLayout layout;
  };
  explicit Uploads(Options options) : options_(std::move(options)) {}
  ~Uploads() { stop(); }
  Uploads(const Uploads&) = delete;
  Uploads& operator=(const Uploads&) = delete;

  // `order` has an `upload`, or for logs a `logs_upload`. Nothing happens if the task waits or is
  // under way.
  void want(const UploadTask& task, const v1::NodeLaunch& order);
  // Nobody wants others any more. A checkpoint that is under way goes on as long as anything of its
  // run is wanted.
  void keep_only(const std::set<UploadTask>& tasks);
  // The ranks of these runs run here, and nobody else's: what they write is uploaded every now and
  // then, as far as the orders have an `upload` or a `logs_upload`.
  void while_running(const std::map<RunKey, const v1::NodeLaunch*>& orders);
  // The node knows no job but these any more.
  void forget_all_but(const std::set<JobId>& jobs);
  void stop();

 private:
  enum class State : std::uint8_t { ToFreeze, Freezing, Waiting, UnderWay };
  struct Wanted {
    UploadTask task;
    v1::NodeLaunch order;
    State state = State::Waiting;
    bool ranks_run = false;                     // when it began
    std::optional<CheckpointFiles> files = {};  // once it is frozen
    std::shared_ptr<Abandoned> abandoned = std::make_shared<Abandoned>();
  };
  using Place = std::list<Wanted>::iterator;
  struct Running {
    v1::NodeLaunch order;
    // Of other files and of logs; max(): never.
    std::chrono::steady_clock::time_point due, logs_due;
  };
  void work();
  void start_thread() MUSTER_REQUIRES(mutex_);
  // Nothing is wanted of the job's logs; or else of its outputs.
  [[nodiscard]] bool is_idle(const JobId& job, bool logs) MUSTER_REQUIRES(mutex_);
  // Wants what is due now. The time when something will be.
  std::chrono::steady_clock::time_point want_others() MUSTER_REQUIRES(mutex_);
  // end(): there is nothing to do now.
  Place next() MUSTER_REQUIRES(mutex_);
  void freeze(Place one) MUSTER_EXCLUDES(mutex_);
  void upload(Place one) MUSTER_EXCLUDES(mutex_);
  void end(Place one, const Uploaded& uploaded) MUSTER_EXCLUDES(mutex_);
  std::set<std::string> frozen_names(const RunKey& run) MUSTER_REQUIRES(mutex_);
  [[nodiscard]] CheckpointPlace place_of(const Wanted& wanted) const;
  static void remove_old(const UploadWork& work, const Wanted& wanted, Uploaded& uploaded);
  [[nodiscard]] Uploaded result_of(const Wanted& wanted) const;
  [[nodiscard]] Uploaded uploaded_with(const std::string& key, const UserEntry* owner,
                                       const Wanted& wanted) const;
  [[nodiscard]] Uploaded logs_with(const std::string& key, const Wanted& wanted) const;
  Result<std::string> key_of(const Wanted& wanted) const;

  const Options options_;
  Mutex mutex_;
  CondVar changed_;
  std::list<Wanted> wanted_ MUSTER_GUARDED_BY(mutex_);
  std::map<RunKey, Running> running_ MUSTER_GUARDED_BY(mutex_);
  bool stopped_ MUSTER_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_ MUSTER_GUARDED_BY(mutex_);
};

}  // namespace muster::agent
