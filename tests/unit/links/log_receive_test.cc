// The controller's end of PushLogs, with an agent's half of the stream driven by hand.
#include "controller/links/log_receive.h"

#include <errno.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <atomic>
#include <filesystem>
#include <string>
#include <vector>

#include "common/base/mutex.h"
#include "common/pki/authority_dir.h"
#include "common/rpc/channel.h"
#include "common/rpc/tls_port.h"
#include "controller/links/log_stream.h"
#include "muster/v1/agent_service.grpc.pb.h"
#include "tests/support/credentials.h"

namespace muster::links {
namespace {

constexpr std::chrono::seconds kPatience(20);

class LogService final : public v1::AgentService::CallbackService {
 public:
  explicit LogService(LogReceiver& receiver) : receiver_(receiver) {}
  LogReceiver::Reactor* PushLogs(grpc::CallbackServerContext* context) override {
    return receiver_.push_logs(context);
  }

 private:
  LogReceiver& receiver_;
};

// gRPC's half of a stream, driven by hand: it counts, and answers nothing by itself.
class HandStream final
    : public grpc::ServerCallbackReaderWriter<v1::PushLogsRequest, v1::PushLogsResponse> {
 public:
  explicit HandStream(LogReceiver::Reactor& reactor) : reactor_(reactor) { BindReactor(&reactor_); }
  void Finish(grpc::Status) override { ++finished; }
  void SendInitialMetadata() override {}
  void Read(v1::PushLogsRequest*) override { ++reads; }
  void Write(const v1::PushLogsResponse* response, grpc::WriteOptions) override {
    written = response->have_size();
  }
  void WriteAndFinish(const v1::PushLogsResponse*, grpc::WriteOptions, grpc::Status) override {}

  int reads = 0, finished = 0;
  int written = 0;  // answers of the last write

 private:
  grpc::internal::ServerReactor* reactor() override { return &reactor_; }
  void CallOnDone() override {}
  LogReceiver::Reactor& reactor_;
};

class LogReceiveTest : public testing::Test {
 protected:
  LogReceiveTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "muster-logs-XXXXXX").string();
    dir_ = ::mkdtemp(pattern.data());
    logs::SyncCalls calls;
    calls.file = [this](int fd) {
      if (failures_ == 0) return ::fdatasync(fd);
      --failures_;
      errno = EIO;
      return -1;
    };
    store_ = std::move(*logs::LogStore::open(dir_ / "logs", 1 << 30, std::move(calls)));
    receiver_ = LogReceiver::start(
        *store_,
        {.is_of =
             [](const logs::LogKey& key, const NodeName& node, const InstanceId& instance) {
               return node == NodeName("n1") && instance == InstanceId("i1") &&
                      key.rank == RankNo(0);
             },
         .is_others = [](const logs::LogKey&,
                         const NodeName& node) { return node == NodeName("n2"); },
         .on_complete = {},
         .enter = {},
         .on_refused =
             [this](const Error& error) {
               const MutexLock lock(mutex_);
               refused_.push_back(error.message);
             },
         .on_trouble = {}});
    service_ = std::make_unique<LogService>(*receiver_);
    const std::string address = "unix:" + (dir_ / "s").string();
    grpc::ServerBuilder builder;
    builder.AddListeningPort(address, grpc::InsecureServerCredentials());
    builder.RegisterService(service_.get());
    server_ = builder.BuildAndStart();
    stub_ = v1::AgentService::NewStub(rpc::make_channel({.address = address}));
  }
  ~LogReceiveTest() override {
    receiver_->stop();
    server_->Shutdown(std::chrono::system_clock::now());
    server_->Wait();
    std::filesystem::remove_all(dir_);
  }
  // Opens the log and sends "abc" and its end. Returns true if the controller answers that it is
  // complete, and false if the stream ended with `status_`.
  bool ship() {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kPatience);
    const auto stream = stub_->PushLogs(&context);
    v1::PushLogsRequest request;
    request.mutable_hello()->set_node("n1");
    stream->Write(request);
    named(*request.mutable_open()).set_rank(0);
    stream->Write(request);
    v1::PushLogsResponse response;
    bool complete = false;
    if (stream->Read(&response)) {
      first_ = response.have(0);
      named(*request.mutable_chunk()).set_rank(0);
      request.mutable_chunk()->set_data("abc");
      stream->Write(request);
      named(*request.mutable_end()).set_rank(0);
      request.mutable_end()->set_size(3);
      stream->Write(request);
      while (!complete && stream->Read(&response)) complete = response.have(0).complete();
    }
    stream->WritesDone();
    while (stream->Read(&response)) {
    }
    status_ = stream->Finish();
    return complete;
  }
  template <class Message>
  static Message& named(Message& message) {
    message.set_job_id("job");
    message.set_attempt(1);
    return message;
  }

  // What was written down of nodes. A copy.
  std::vector<std::string> refused() {
    const MutexLock lock(mutex_);
    return refused_;
  }

  std::filesystem::path dir_;
  std::atomic<int> failures_ = 0;
  Mutex mutex_;
  std::vector<std::string> refused_ MUSTER_GUARDED_BY(mutex_);
  std::unique_ptr<logs::LogStore> store_;
  std::unique_ptr<LogReceiver> receiver_;
  std::unique_ptr<LogService> service_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<v1::AgentService::Stub> stub_;
  v1::LogHave first_;
  grpc::Status status_;
};

// Regression: the disk refused the bytes once, and the next sync of the same file succeeded. The
// log counted as complete, and its agent deleted the only good copy.
TEST_F(LogReceiveTest, AnAgentBeginsAgainWhenTheDiskDidNotTakeItsBytes) {
  failures_ = 1;
  EXPECT_FALSE(ship());
  EXPECT_EQ(status_.error_code(), grpc::StatusCode::ABORTED) << status_.error_message();
  EXPECT_TRUE(ship()) << status_.error_message();
  EXPECT_EQ(first_.offset(), 0u);
  EXPECT_TRUE(store_->state({JobId("job"), AttemptNo(1), RankNo(0)})->durable);
}

// Regression: a node that opened log after log, and never read the answers, used the controller's
// memory without bound.
TEST(LogStreamTest, AnAgentThatDoesNotReadItsAnswersIsNotRead) {
  const std::shared_ptr<LogStream> stream =
      LogStream::make([](const auto&) {}, [](const LogStream*) {}, rpc::Caller());
  HandStream hand(*stream);
  stream->begin();
  int sent = 0;
  // A message comes and is answered; the write of its answer does not end.
  const auto one = [&] {
    stream->OnReadDone(true);
    bool closed = false;
    stream->take(closed);
    stream->answer({JobId("job"), AttemptNo(1), RankNo(static_cast<std::uint32_t>(sent++))},
                   v1::LogHave());
    stream->read_on();
  };
  const int most = static_cast<int>(LogStream::kAnswersMost);
  while (hand.reads > sent && sent < most * 2) one();
  EXPECT_EQ(hand.written, 1) << "the first answer; the others wait for its write";
  EXPECT_GE(sent, most);
  EXPECT_LE(sent, most + 2) << "they wait without bound";
  stream->read_on();
  EXPECT_EQ(hand.reads, sent) << "nothing is read";
  stream->OnWriteDone(true);
  EXPECT_EQ(hand.written, sent - 1) << "all that waited";
  EXPECT_EQ(hand.reads, sent + 1) << "it goes on";
  one();
  EXPECT_EQ(hand.reads, sent + 1);
  stream->end(grpc::Status::OK);
  EXPECT_EQ(hand.finished, 1);
  stream->OnDone();
}

// A log of an auxiliary process, under the node name of the stream's LogHello.
TEST_F(LogReceiveTest, ALogOfNoRankIsItsNodes) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kPatience);
  const auto stream = stub_->PushLogs(&context);
  v1::PushLogsRequest request;
  request.mutable_hello()->set_node("n1");
  stream->Write(request);
  named(*request.mutable_open()).set_node_log("setup");
  stream->Write(request);
  v1::PushLogsResponse response;
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_EQ(response.have(0).node_log(), "setup");
  EXPECT_FALSE(response.have(0).has_rank());
  EXPECT_FALSE(response.have(0).unknown());
  named(*request.mutable_chunk()).set_node_log("setup");
  request.mutable_chunk()->set_data("abc");
  stream->Write(request);
  named(*request.mutable_end()).set_node_log("setup");
  request.mutable_end()->set_size(3);
  stream->Write(request);
  bool complete = false;
  while (!complete && stream->Read(&response))
    complete = response.have(0).complete() && response.have(0).node_log() == "setup";
  EXPECT_TRUE(complete);
  context.TryCancel();
  stream->Finish();
  EXPECT_EQ(
      store_->read({JobId("job"), AttemptNo(1), RankNo(0), "setup", NodeName("n1")}, 0, 10)->data,
      "abc");
  EXPECT_EQ(store_->list(JobId("job")).size(), 1u) << "and not rank 0's";
}

// Only callers with a certificate are asked whose log it is: over the socket it is the controller's
// own user.
TEST_F(LogReceiveTest, WithACertificateANodeSendsItsOwnLogs) {
  const WallTime now = system_clock().now().wall;
  const auto authority = pki::Authority::make("cluster", now);
  ASSERT_TRUE(authority);
  const auto own = pki::issue_controller(*authority, "cluster", now);
  ASSERT_TRUE(own);
  LogService service(*receiver_);
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort(
      "127.0.0.1:0",
      rpc::tls_credentials(
          *own, system_clock(),
          {.may_call = [](const auto&, auto) { return Result<void>(); }, .on_refused = {}}),
      &port);
  builder.RegisterService(&service);
  const auto server = builder.BuildAndStart();
  // The answer to a log that `as` opens in the name of `node`.
  const auto opened = [&](const std::string& as, const std::string& node, std::uint32_t rank,
                          const std::string& instance = "i1") {
    const auto stub = v1::AgentService::NewStub(rpc::make_channel(
        {.address = "127.0.0.1:" + std::to_string(port),
         .credentials = std::make_shared<const pki::Credentials>(test::credentials(
             *authority, {.cluster = "cluster", .role = pki::Role::Node, .name = as}))}));
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kPatience);
    const auto stream = stub->PushLogs(&context);
    v1::PushLogsRequest request;
    request.mutable_hello()->set_node(node);
    request.mutable_hello()->set_instance(instance);
    stream->Write(request);
    named(*request.mutable_open()).set_rank(rank);
    stream->Write(request);
    v1::PushLogsResponse response;
    const bool answered = stream->Read(&response);
    if (answered) context.TryCancel();
    const grpc::Status status = stream->Finish();
    if (!answered) return status.error_message();
    return std::string(response.have(0).unknown() ? "unknown" : "taken");
  };
  EXPECT_EQ(opened("n1", "n1", 0), "taken");
  EXPECT_EQ(opened("n1", "n1", 1), "unknown");
  EXPECT_EQ(opened("n2", "n2", 0), "unknown");
  EXPECT_THAT(refused(), testing::ElementsAre(
                             "sending logs of job 'job' attempt 1: node 'n2' has no part of it, so "
                             "nothing of that is taken; look after that node"));
  EXPECT_EQ(opened("n1", "n1", 0, "i2"), "unknown")
      << "another machine, which has replaced n1 under its name";
  EXPECT_EQ(opened("n2", "n1", 0),
            "sending logs: the certificate is of node 'n2'; a node speaks only for itself (--name, "
            "--credentials)");
  server->Shutdown(std::chrono::system_clock::now());
  server->Wait();
}

// A name that cannot be a file name is answered `unknown`; the stream continues.
TEST_F(LogReceiveTest, HostileNamesAreLeft) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kPatience);
  const auto stream = stub_->PushLogs(&context);
  v1::PushLogsRequest request;
  request.mutable_hello()->set_node("n1");
  stream->Write(request);
  const auto unknown = [&](const std::string& node_log) {
    named(*request.mutable_open()).set_node_log(node_log);
    stream->Write(request);
    v1::PushLogsResponse response;
    if (!stream->Read(&response)) return std::string("the stream ended");
    return std::string(response.have(0).node_log() != node_log ? "another"
                       : response.have(0).unknown()            ? "unknown"
                                                               : "taken");
  };
  for (const char* node_log : {"..", "../../x", "a b", "a/b", "se@tup"})
    EXPECT_EQ(unknown(node_log), "unknown") << node_log;
  EXPECT_EQ(unknown("c3"), "taken");
  EXPECT_EQ(unknown("c3"), "taken") << "it is open already";
  request.mutable_hello()->set_node("../n1");
  stream->Write(request);
  EXPECT_EQ(unknown("c3"), "unknown");
  EXPECT_EQ(unknown(std::string(65, 'x')), "the stream ended");
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

// Without a name, a message would be about rank 0.
TEST_F(LogReceiveTest, AMessageThatNamesNoLogIsRefused) {
  v1::PushLogsRequest hello, rank, open, empty, chunk, end;
  hello.mutable_hello()->set_node("n1");
  named(*rank.mutable_open()).set_rank(0);
  named(*open.mutable_open());
  named(*empty.mutable_open()).set_node_log("");
  named(*chunk.mutable_chunk()).set_data("abc");
  named(*end.mutable_end()).set_size(0);
  const auto refused = [&](const v1::PushLogsRequest& request) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kPatience);
    const auto stream = stub_->PushLogs(&context);
    for (const v1::PushLogsRequest* one :
         std::initializer_list<const v1::PushLogsRequest*>{&hello, &rank, &request})
      stream->Write(*one);
    v1::PushLogsResponse response;
    while (stream->Read(&response)) {
    }
    const grpc::Status status = stream->Finish();
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    return status.error_message();
  };
  EXPECT_EQ(refused(open), "LogOpen has neither a rank nor a node_log");
  EXPECT_EQ(refused(empty), "LogOpen has neither a rank nor a node_log");
  EXPECT_EQ(refused(chunk), "LogChunk has neither a rank nor a node_log");
  EXPECT_EQ(refused(end), "LogEnd has neither a rank nor a node_log");
  EXPECT_EQ(store_->state({JobId("job"), AttemptNo(1), RankNo(0)})->end, 0u);
}

// Regression: messages without bytes cost nothing, so a stream of them was received without end
// while the disk hung.
TEST(LogQueue, AMessageWithoutBytesCosts) {
  v1::PushLogsRequest open, end, gap, bytes;
  open.mutable_open()->set_job_id("job");
  end.mutable_end()->set_size(3);
  gap.mutable_chunk()->mutable_gap()->set_reason(std::string(1'000, 'r'));
  bytes.mutable_chunk()->set_data(std::string(256 << 10, 'b'));
  EXPECT_GT(queue_cost(open), 50u);
  EXPECT_GT(queue_cost(end), 50u);
  EXPECT_GT(queue_cost(gap), 1'000u);
  EXPECT_GT(queue_cost(bytes), 256u << 10);
  EXPECT_LT(queue_cost(bytes), 257u << 10);
}

}  // namespace
}  // namespace muster::links
