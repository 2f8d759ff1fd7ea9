// What a stream keeps of logs that its source has finished.
#include "agent/link/log_push.h"
#include "tests/unit/log_shipping/shipping.h"

namespace muster::test {
namespace {

const agent::LogName kLog{{JobId("job"), AttemptNo(1)}, RankNo(0)};

// Names one log while the test asks for it.
class OneLog final : public agent::LogSource {
 public:
  std::vector<agent::LogStatus> logs() override {
    const std::scoped_lock lock(mutex_);
    ++reads_;
    changed_.notify_all();
    return named_ ? std::vector{agent::LogStatus{.name = kLog}} : std::vector<agent::LogStatus>();
  }
  Result<agent::LogPiece> read(const agent::LogName&, std::uint64_t from, std::size_t) override {
    return agent::LogPiece{.offset = from};
  }
  void controller_has(const agent::LogName&, std::uint64_t, std::uint64_t, bool) override {}
  void on_bytes(std::function<void()> wake) override {
    const std::scoped_lock lock(mutex_);
    wake_ = std::move(wake);
  }
  // Waits until the source has been asked again.
  bool name_it(bool named) {
    std::function<void()> wake;
    std::unique_lock lock(mutex_);
    named_ = named;
    const auto before = reads_;
    wake = wake_;
    lock.unlock();
    wake();
    lock.lock();
    return changed_.wait_for(lock, std::chrono::seconds(10), [&] { return reads_ > before; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool named_ = true;
  std::uint64_t reads_ = 0;
  std::function<void()> wake_;
};

class CountsOpens final : public v1::AgentService::Service {
 public:
  grpc::Status PushLogs(
      grpc::ServerContext*,
      grpc::ServerReaderWriter<v1::PushLogsResponse, v1::PushLogsRequest>* stream) override {
    {
      const std::scoped_lock lock(mutex_);
      ++streams_;
    }
    v1::PushLogsRequest request;
    while (stream->Read(&request)) {
      if (!request.has_open()) continue;
      v1::PushLogsResponse response;
      v1::LogHave& have = *response.add_have();
      have.set_job_id(request.open().job_id());
      have.set_attempt(request.open().attempt());
      have.set_rank(request.open().rank());
      stream->Write(response);
      const std::scoped_lock lock(mutex_);
      ++opens_;
      changed_.notify_all();
    }
    return grpc::Status::OK;
  }
  bool wait_for_opens(int wanted) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(10), [&] { return opens_ >= wanted; });
  }
  int streams() {
    const std::scoped_lock lock(mutex_);
    return streams_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int opens_ = 0, streams_ = 0;
};

// Regression: a stream lives as long as the controller, and what it kept of every log of every job
// grew with each log.
TEST(DroppedLogs, AStreamForgetsALogThatItsSourceIsDoneWith) {
  const TempDir dir;
  const std::string address = "unix:" + (dir.path() / "s").string();
  CountsOpens service;
  grpc::ServerBuilder builder;
  builder.AddListeningPort(address, grpc::InsecureServerCredentials());
  builder.RegisterService(&service);
  const auto server = builder.BuildAndStart();
  ASSERT_TRUE(server);
  OneLog source;
  const auto push = agent::LogPush::start(
      {},
      {.channel = [&] { return grpc::CreateChannel(address, grpc::InsecureChannelCredentials()); },
       .hello = [] { return std::optional<v1::LogHello>(v1::LogHello()); }},
      source);
  ASSERT_TRUE(service.wait_for_opens(1));
  ASSERT_TRUE(source.name_it(false));
  ASSERT_TRUE(source.name_it(false));  // the earlier check is done
  ASSERT_TRUE(source.name_it(true));
  EXPECT_TRUE(service.wait_for_opens(2)) << "what is forgotten is opened anew";
  EXPECT_EQ(service.streams(), 1);
  push->stop();
  server->Shutdown(std::chrono::system_clock::now());
}

}  // namespace
}  // namespace muster::test
