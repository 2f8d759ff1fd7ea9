// Regression: a client followed a job's logs and left while the journal was syncing. The stream's
// end was handled before its beginning, which then added a watcher that nobody would ever remove.
// After ten thousand of them, nobody could watch anything any more.
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <condition_variable>
#include <filesystem>
#include <future>
#include <mutex>
#include <thread>

#include "controller/api/event_text.h"
#include "controller/api/job_service.h"
#include "controller/journal/memory_journal.h"

namespace muster::controller {
namespace {

constexpr std::chrono::seconds kPatience(20);

// Its appends wait while a test blocks it, as on a slow disk.
class SlowJournal final : public journal::Journal {
 public:
  Result<void> load(const std::function<void(const journal::Row&)>& each) override {
    return inner_.load(each);
  }
  Result<void> append(std::span<const journal::Row> batch) override {
    std::unique_lock lock(mutex_);
    ++begun_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return !blocked_; });
    return inner_.append(batch);
  }
  [[nodiscard]] JournalIndex last() const override { return inner_.last(); }
  Result<void> archive(const JobId& job) override { return inner_.archive(job); }
  Result<std::vector<journal::ArchivedJob>> archived(const std::optional<JobId>& before,
                                                     std::size_t most) override {
    return inner_.archived(before, most);
  }
  Result<std::optional<journal::ArchivedJob>> archived_job(const JobId& job) override {
    return inner_.archived_job(job);
  }

  void hold(bool blocked) {
    const std::lock_guard lock(mutex_);
    blocked_ = blocked;
    begun_ = 0;
    changed_.notify_all();
  }
  bool wait_for_append() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kPatience, [this] { return begun_ > 0; });
  }

 private:
  journal::MemoryJournal inner_{std::make_shared<journal::MemoryDisk>()};
  std::mutex mutex_;
  std::condition_variable changed_;
  bool blocked_ = false;
  int begun_ = 0;
};

// Announces when it has received a call.
class TellingService final : public v1::JobService::CallbackService {
 public:
  explicit TellingService(Edge& edge) : inner(edge, 1) {}
  grpc::ServerWriteReactor<v1::WatchResponse>* Watch(grpc::CallbackServerContext* context,
                                                     const v1::WatchRequest* request) override {
    auto* reactor = inner.Watch(context, request);
    taken.set_value();
    return reactor;
  }
  grpc::ServerWriteReactor<v1::ReadLogsResponse>* ReadLogs(
      grpc::CallbackServerContext* context, const v1::ReadLogsRequest* request) override {
    auto* reactor = inner.ReadLogs(context, request);
    taken.set_value();
    return reactor;
  }
  JobService inner;
  std::promise<void> taken;
};

class FollowersTest : public testing::Test {
 protected:
  FollowersTest() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "muster-follow-XXXXXX").string();
    dir_ = ::mkdtemp(pattern.data());
    store_ = std::move(*logs::LogStore::open(dir_ / "logs", 1 << 30));
    Shell::Options options;
    options.version = "test";
    options.new_cluster = ClusterId("cluster");
    options.describe = describe;
    options.on_fatal = [](const Error& error) { ADD_FAILURE() << error.message; };
    options.watchers_max = 1;
    shell_ = std::make_unique<Shell>(journal_, system_clock(), std::move(options));
    EXPECT_TRUE(shell_->start());
    edge_ = std::make_unique<Edge>(Edge{.shell = *shell_,
                                        .logs = *store_,
                                        .work = work_,
                                        .access = access_,
                                        .cluster_out = "/out",
                                        .version = "test",
                                        .shortage = {}});
    shell_->open();
    service_ = std::make_unique<TellingService>(*edge_);
    const std::string address = "unix:" + (dir_ / "s").string();
    grpc::ServerBuilder builder;
    builder.AddListeningPort(address, grpc::InsecureServerCredentials());
    builder.RegisterService(service_.get());
    server_ = builder.BuildAndStart();
    stub_ = v1::JobService::NewStub(rpc::make_channel({.address = address}));
  }
  ~FollowersTest() override {
    journal_.hold(false);
    server_->Shutdown(std::chrono::system_clock::now());
    server_->Wait();
    service_->inner.stop();
    shell_->stop();
    work_.stop();
    std::filesystem::remove_all(dir_);
  }
  void submit(const std::string& name, bool wait) {
    v1::JobSpec spec;
    spec.set_name(name);
    auto done = std::make_shared<std::promise<void>>();
    EXPECT_TRUE(shell_->submit(
        core::SubmitJob{
            .job = JobId("000000000000" + name), .request_id = {}, .spec = spec, .spec_hash = "h"},
        shell_->now(), [done](const Outcome& outcome, const View&) {
          EXPECT_FALSE(outcome.refusal);
          done->set_value();
        }));
    if (wait) done->get_future().wait();
  }
  // Waits until a stream of this service was removed from the watchers, or was not found among
  // them.
  bool wait_until_gone() {
    const auto until = std::chrono::steady_clock::now() + kPatience;
    while (std::chrono::steady_clock::now() < until) {
      for (const async::PostStats& post : shell_->strand().stats()) {
        if (post.name == "watcher-gone" && post.count > 0) return true;
      }
      std::this_thread::yield();
    }
    return false;
  }
  static std::unique_ptr<grpc::ClientContext> context() {
    auto made = std::make_unique<grpc::ClientContext>();
    made->set_deadline(std::chrono::system_clock::now() + kPatience);
    return made;
  }
  // `begin(stub, context)` starts a stream; its client leaves while the journal is syncing.
  template <class Begin>
  void leave_during_a_sync(Begin begin) {
    submit("1", true);
    journal_.hold(true);
    submit("2", false);
    ASSERT_TRUE(journal_.wait_for_append());
    {
      auto call = context();
      const auto reader = begin(*stub_, call.get());
      ASSERT_EQ(service_->taken.get_future().wait_for(kPatience), std::future_status::ready);
      call->TryCancel();
      EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::CANCELLED);
    }
    ASSERT_TRUE(wait_until_gone());
    journal_.hold(false);
    // The stream's beginning waits for the batch that was being synced; this read waits for both.
    std::promise<void> read;
    ASSERT_TRUE(shell_->read([&](const View&) { read.set_value(); }));
    read.get_future().wait();

    // There is room for one watcher, and it is free.
    auto call = context();
    v1::WatchRequest request;
    request.set_job("0000000000001");
    request.set_until_final(true);
    service_->taken = {};
    const auto reader = stub_->Watch(call.get(), request);
    v1::WatchResponse response;
    ASSERT_TRUE(reader->Read(&response)) << reader->Finish().error_message();
    EXPECT_EQ(response.event().type(), "job-submitted");
    ASSERT_TRUE(shell_->submit(core::CancelJob{.job = JobId("0000000000001"), .reason = ""},
                               shell_->now(), {}));
    while (reader->Read(&response)) {
    }
    EXPECT_EQ(response.event().type(), "job-ended");
    const grpc::Status status = reader->Finish();
    EXPECT_TRUE(status.ok()) << status.error_message();
  }

  std::filesystem::path dir_;
  SlowJournal journal_;
  async::Loop work_{"work"};
  Access access_{"owner", {}, nullptr};
  std::unique_ptr<logs::LogStore> store_;
  std::unique_ptr<Shell> shell_;
  std::unique_ptr<Edge> edge_;
  std::unique_ptr<TellingService> service_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<v1::JobService::Stub> stub_;
};

TEST_F(FollowersTest, AFollowerOfLogsThatLeavesDuringASyncIsForgotten) {
  leave_during_a_sync([](v1::JobService::Stub& stub, grpc::ClientContext* context) {
    v1::ReadLogsRequest request;
    request.set_job("0000000000001");
    request.set_follow(true);
    return stub.ReadLogs(context, request);
  });
}

TEST_F(FollowersTest, AWatcherThatLeavesDuringASyncIsForgotten) {
  leave_during_a_sync([](v1::JobService::Stub& stub, grpc::ClientContext* context) {
    v1::WatchRequest request;
    request.set_job("0000000000001");
    return stub.Watch(context, request);
  });
}

}  // namespace
}  // namespace muster::controller
