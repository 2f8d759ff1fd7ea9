// Both ends of log shipping in one process. A test owns it. Tests run on their own thread; both
// ends have their usual threads.
//
// The agent's end is a Watch and a LogPush over real files. The controller's end is a LogReceiver
// and a LogStore behind a real gRPC server on a unix socket. A test may end either one and make it
// anew over the same files, as after a kill -9: only the disk survives.
#pragma once

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <fstream>
#include <mutex>
#include <set>

#include "agent/link/log_push.h"
#include "agent/logs/watch.h"
#include "common/rundir/layout.h"
#include "controller/links/log_receive.h"
#include "muster/v1/agent_service.grpc.pb.h"
#include "tests/unit/agent_logs/temp_dir.h"

namespace muster::test {

class PushService final : public v1::AgentService::CallbackService {
 public:
  explicit PushService(links::LogReceiver& receiver) : receiver_(receiver) {}
  links::LogReceiver::Reactor* PushLogs(grpc::CallbackServerContext* context) override {
    return receiver_.push_logs(context);
  }

 private:
  links::LogReceiver& receiver_;
};

// The store, with a disk that can be slow or fail when it is synced.
class TestStore final : public logs::LogStore {
 public:
  explicit TestStore(std::unique_ptr<logs::LogStore> store) : store_(std::move(store)) {}
  Result<logs::LogState> state(const logs::LogKey& key) override { return store_->state(key); }
  Result<logs::LogState> append(const logs::LogKey& key, std::uint64_t offset,
                                std::string_view data,
                                const std::optional<logs::Gap>& gap) override {
    return store_->append(key, offset, data, gap);
  }
  Result<logs::LogState> finish(const logs::LogKey& key, std::uint64_t size) override {
    return store_->finish(key, size);
  }
  Result<logs::Chunk> read(const logs::LogKey& key, std::uint64_t offset,
                           std::size_t most) override {
    return store_->read(key, offset, most);
  }
  Result<std::uint64_t> tail(const logs::LogKey& key, std::uint64_t lines) override {
    return store_->tail(key, lines);
  }
  Result<std::uint64_t> since(const logs::LogKey& key, WallTime time) override {
    return store_->since(key, time);
  }
  std::vector<logs::LogKey> list(const JobId& job) override { return store_->list(job); }
  void on_change(std::function<void(const logs::LogKey&)> callback) override {
    store_->on_change(std::move(callback));
  }
  Result<void> add_points(const JobId& job, const std::vector<logs::SeriesPoint>& points) override {
    return store_->add_points(job, points);
  }
  Result<std::vector<logs::SeriesPoint>> series(const JobId& job) override {
    return store_->series(job);
  }
  Result<std::optional<logs::SeriesPoint>> last_point(const JobId& job) override {
    return store_->last_point(job);
  }
  std::vector<JobId> jobs() override { return store_->jobs(); }
  WallTime written_at(const JobId& job) override { return store_->written_at(job); }
  Result<void> remove(const JobId& job) override { return store_->remove(job); }
  void mark_finished(const JobId& job) override { store_->mark_finished(job); }
  void unmark_finished(const JobId& job) override { store_->unmark_finished(job); }
  void make_room() override { store_->make_room(); }
  logs::Synced sync() override {
    ++syncs_;
    {
      const std::scoped_lock lock(disk_);  // while a test keeps this locked, the disk is slow
    }
    if (failures_ > 0) {
      --failures_;
      return {.logs = {}, .error = Error{ErrorCode::Io, "syncing: Input/output error"}};
    }
    return store_->sync();
  }

  std::mutex disk_;
  std::atomic<int> syncs_ = 0, failures_ = 0;

 private:
  const std::unique_ptr<logs::LogStore> store_;
};

class Shipping {
 public:
  explicit Shipping(std::uint32_t ranks, std::vector<std::string> auxiliaries = {},
                    std::string node = "n1")
      : run_(JobId("job"), AttemptNo(1)),
        auxiliaries_(std::move(auxiliaries)),
        node_(std::move(node)) {
    for (std::uint32_t rank = 0; rank < ranks; ++rank) ranks_.push_back(rank);
    std::filesystem::create_directories(run_dir() / "logs");
  }
  ~Shipping() {
    stop_agent();
    stop_controller();
  }

  [[nodiscard]] std::filesystem::path run_dir() const { return dir_.path() / "job.1"; }
  [[nodiscard]] std::filesystem::path log(std::uint32_t rank) const {
    return run_dir() / "logs" / ("rank-" + std::to_string(rank) + ".log");
  }
  [[nodiscard]] std::filesystem::path node_log(const std::string& auxiliary) const {
    return rundir::RunLayout(run_dir()).node_log(auxiliary);
  }
  [[nodiscard]] logs::LogKey key(std::uint32_t rank) const {
    return {run_.first, run_.second, RankNo(rank)};
  }
  [[nodiscard]] logs::LogKey key(const std::string& auxiliary) const {
    return {run_.first, run_.second, RankNo(0), auxiliary, NodeName(node_)};
  }
  [[nodiscard]] const agent::RunKey& run() const { return run_; }

  void start_controller() {
    auto store = logs::LogStore::open(dir_.path() / "store", 8ull << 30);
    ASSERT_TRUE(store.has_value());
    store_ = std::make_unique<TestStore>(std::move(*store));
    store_->on_change([this](const logs::LogKey&) { wake(); });
    receiver_ = links::LogReceiver::start(
        *store_, {.known = [this](const JobId&, AttemptNo) { return known_.load(); },
                  .on_complete =
                      [this](const JobId&, AttemptNo, RankNo rank) {
                        const std::scoped_lock lock(mutex_);
                        complete_.insert(rank.value);
                        changed_.notify_all();
                      },
                  .on_trouble =
                      [this](const std::string& text) {
                        const std::scoped_lock lock(mutex_);
                        troubles_.push_back(text);
                      }});
    service_ = std::make_unique<PushService>(*receiver_);
    std::filesystem::remove(socket());
    grpc::ServerBuilder builder;
    builder.AddListeningPort("unix:" + socket().string(), grpc::InsecureServerCredentials());
    builder.RegisterService(service_.get());
    server_ = builder.BuildAndStart();
    ASSERT_TRUE(server_);
  }
  void stop_controller() {
    if (!server_) return;
    receiver_->stop();
    server_->Shutdown(std::chrono::system_clock::now());
    server_.reset();
    service_.reset();
    receiver_.reset();
    store_.reset();
  }
  void start_agent(const agent::WatchOptions& options = {}) {
    auto watch = agent::Watch::start(options, [](std::function<void()> closure) { closure(); },
                                     {.on_trouble = [this](const std::string& text) {
                                       const std::scoped_lock lock(mutex_);
                                       troubles_.push_back(text);
                                     }});
    ASSERT_TRUE(watch.has_value());
    watch_ = std::move(*watch);
    v1::Watching watching;
    watching.set_grammar("megatron");
    ASSERT_TRUE(watch_->add(run_, run_dir(), watching, ranks_, auxiliaries_, {}, {}).has_value());
    push_ = agent::LogPush::start({.chunk = chunk_},
                                  {.channel =
                                       [this] {
                                         grpc::ChannelArguments arguments;
                                         arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
                                         return grpc::CreateCustomChannel(
                                             "unix:" + socket().string(),
                                             grpc::InsecureChannelCredentials(), arguments);
                                       },
                                   .hello =
                                       [this] {
                                         v1::LogHello hello;
                                         hello.set_node(node_);
                                         return std::optional(hello);
                                       },
                                   .on_complete = [this](const agent::RunKey&) { wake(); }},
                                  *watch_);
  }
  void stop_agent() {
    if (!watch_) return;
    push_->stop();
    push_.reset();
    watch_->stop();
    watch_.reset();
  }

  template <class Condition>
  [[nodiscard]] bool eventually(Condition condition,
                                std::chrono::seconds most = std::chrono::seconds(30)) {
    const auto until = std::chrono::steady_clock::now() + most;
    while (!condition()) {
      std::unique_lock lock(mutex_);
      if (std::chrono::steady_clock::now() >= until) return false;
      changed_.wait_for(lock, std::chrono::milliseconds(10));
    }
    return true;
  }
  [[nodiscard]] bool complete(std::uint32_t rank) {
    const std::scoped_lock lock(mutex_);
    return complete_.contains(rank);
  }
  void wake() {
    const std::scoped_lock lock(mutex_);
    changed_.notify_all();
  }
  // The bytes that the controller has, gaps left out; and how many gaps there are.
  std::string kept(std::uint32_t rank, int* gaps = nullptr) { return kept(key(rank), gaps); }
  std::string kept(const logs::LogKey& log, int* gaps = nullptr) {
    std::string text;
    for (std::uint64_t at = 0;;) {
      auto chunk = store_->read(log, at, 1 << 20);
      if (!chunk || (chunk->data.empty() && !chunk->gap_before)) return text;
      if (chunk->gap_before && gaps) ++*gaps;
      text += chunk->data;
      at = chunk->offset + chunk->data.size();
    }
  }

  std::atomic<bool> known_ = true;
  std::size_t chunk_ = 256 << 10;
  std::unique_ptr<TestStore> store_;
  std::unique_ptr<links::LogReceiver> receiver_;
  std::unique_ptr<agent::Watch> watch_;
  std::unique_ptr<agent::LogPush> push_;
  std::mutex mutex_;
  std::vector<std::string> troubles_;
  const TempDir dir_;
  [[nodiscard]] std::filesystem::path socket() const { return dir_.path() / "s"; }

 private:
  const agent::RunKey run_;
  const std::vector<std::string> auxiliaries_;
  const std::string node_;
  std::vector<std::uint32_t> ranks_;
  std::condition_variable changed_;
  std::set<std::uint32_t> complete_;
  std::unique_ptr<PushService> service_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace muster::test
