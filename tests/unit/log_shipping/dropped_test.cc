// What a stream keeps of logs that its source has finished, and answers that it refuses.
#include <future>

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
  std::vector<agent::LogName> logs_of(const agent::RunKey&) override { return {kLog}; }
  Result<agent::LogPiece> read(const agent::LogName&, std::uint64_t from, std::size_t) override {
    return agent::LogPiece{.offset = from};
  }
  void controller_has(const agent::LogName&, std::uint64_t, std::uint64_t, bool) override {
    const std::scoped_lock lock(mutex_);
    ++heard_;
  }
  int heard() {
    const std::scoped_lock lock(mutex_);
    return heard_;
  }
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
  int heard_ = 0;
  std::function<void()> wake_;
};

class CountsOpens final : public v1::AgentService::Service {
 public:
  explicit CountsOpens(bool names_logs = true) : names_logs_(names_logs) {}
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
      if (names_logs_) have.set_rank(request.open().rank());
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
  const bool names_logs_;
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

// Without a name, an answer would be about rank 0.
TEST(RefusedAnswers, AnAnswerThatNamesNoLogEndsTheStream) {
  const TempDir dir;
  const std::string address = "unix:" + (dir.path() / "s").string();
  CountsOpens service(false);
  grpc::ServerBuilder builder;
  builder.AddListeningPort(address, grpc::InsecureServerCredentials());
  builder.RegisterService(&service);
  const auto server = builder.BuildAndStart();
  ASSERT_TRUE(server);
  OneLog source;
  std::promise<std::string> trouble;
  const auto push = agent::LogPush::start(
      {},
      {.channel = [&] { return grpc::CreateChannel(address, grpc::InsecureChannelCredentials()); },
       .hello = [] { return std::optional<v1::LogHello>(v1::LogHello()); },
       .on_trouble = [&](const std::string& text) { trouble.set_value(text); }},
      source);
  auto text = trouble.get_future();
  ASSERT_EQ(text.wait_for(std::chrono::seconds(10)), std::future_status::ready);
  EXPECT_EQ(text.get(),
            "sending logs to the controller: its LogHave has neither a rank nor a node_log, "
            "retrying");
  EXPECT_TRUE(service.wait_for_opens(2)) << "on the next stream";
  EXPECT_EQ(source.heard(), 0);
  push->stop();
  server->Shutdown(std::chrono::system_clock::now());
}

}  // namespace
}  // namespace muster::test
