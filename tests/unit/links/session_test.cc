// One agent stream over a real server, with a hub that answers when a test orders it. Regression:
// an agent sent Hello and ended its half of the stream at once. It got OK instead of the reason for
// its refusal, because the end of its half overtook the hub's answer.
#include "controller/links/session.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <filesystem>
#include <thread>

#include "common/rpc/channel.h"
#include "muster/v1/agent_service.grpc.pb.h"

namespace muster::controller {
namespace {

constexpr std::chrono::seconds kPatience(20);

class SlowHub final : public v1::AgentService::CallbackService, public SessionOwner {
 public:
  grpc::ServerBidiReactor<v1::ConnectRequest, v1::ConnectResponse>* Connect(
      grpc::CallbackServerContext* context) override {
    return Session::begin(*this, system_clock(), *context);
  }
  void on_hello(const SessionPtr& session, v1::Hello, Now) override {
    const std::lock_guard lock(mutex_);
    asked_ = session;
    changed_.notify_all();
  }
  void on_facts(const SessionPtr&, v1::Facts facts, Now) override {
    const std::lock_guard lock(mutex_);
    ++heard_;
    waiting_.push_back(waiting_cost(facts));
    most_waiting_ = std::max(most_waiting_, waiting_.size());
    changed_.notify_all();
  }
  void on_heartbeat(const SessionPtr&, v1::Heartbeat, Now) override {}
  void on_unsupported(const SessionPtr&, v1::Unsupported unsupported) override {
    const std::lock_guard lock(mutex_);
    unsupported_ = std::move(unsupported);
    changed_.notify_all();
  }
  void on_gone(const SessionPtr&, Now) override {
    const std::lock_guard lock(mutex_);
    ++gone_;
    changed_.notify_all();
  }
  // The session whose Hello arrived, once its agent has ended its half; null: that never happened.
  SessionPtr half_closed() {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, kPatience, [&] { return asked_ != nullptr; })) return nullptr;
    const SessionPtr session = asked_;
    lock.unlock();
    const auto until = std::chrono::steady_clock::now() + kPatience;
    while (!session->half_closed() && std::chrono::steady_clock::now() < until)
      std::this_thread::yield();
    return session->half_closed() ? session : nullptr;
  }
  // The session whose Hello arrived; null: none did.
  SessionPtr asked() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kPatience, [&] { return asked_ != nullptr; }) ? asked_ : nullptr;
  }
  std::optional<v1::Unsupported> wait_unsupported() {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kPatience, [&] { return unsupported_.has_value(); });
    return unsupported_;
  }
  bool wait_facts(std::size_t messages) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kPatience, [&] { return heard_ >= messages; });
  }
  void take_oldest_facts(const SessionPtr& session) {
    std::size_t cost = 0;
    {
      const std::lock_guard lock(mutex_);
      cost = waiting_.front();
      waiting_.pop_front();
    }
    session->facts_taken(cost);
  }
  std::size_t most_waiting() {
    const std::lock_guard lock(mutex_);
    return most_waiting_;
  }
  int gone() {
    const std::lock_guard lock(mutex_);
    return gone_;
  }
  bool wait_gone() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kPatience, [&] { return gone_ > 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  SessionPtr asked_;
  std::optional<v1::Unsupported> unsupported_;
  std::deque<std::size_t> waiting_;
  std::size_t heard_ = 0, most_waiting_ = 0;
  int gone_ = 0;
};

class SessionTest : public testing::Test {
 protected:
  SessionTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "session-XXXXXX").string();
    dir_ = ::mkdtemp(pattern.data());
    const std::string address = "unix:" + (dir_ / "s").string();
    grpc::ServerBuilder builder;
    builder.AddListeningPort(address, grpc::InsecureServerCredentials());
    builder.RegisterService(&hub_);
    server_ = builder.BuildAndStart();
    stub_ = v1::AgentService::NewStub(rpc::make_channel({.address = address}));
    context_.set_deadline(std::chrono::system_clock::now() + kPatience);
    stream_ = stub_->Connect(&context_);
  }
  ~SessionTest() override {
    context_.TryCancel();
    stream_.reset();
    server_->Shutdown(std::chrono::system_clock::now());
    server_.reset();
    std::filesystem::remove_all(dir_);
  }
  void say_hello() {
    v1::ConnectRequest request;
    request.mutable_hello()->set_node("n1");
    request.mutable_hello()->set_instance("i");
    ASSERT_TRUE(stream_->Write(request));
  }
  void say_hello_and_nothing_more() {
    say_hello();
    ASSERT_TRUE(stream_->WritesDone());
  }
  // Welcomed; only the Welcome is read yet.
  SessionPtr accepted() {
    say_hello();
    const SessionPtr session = hub_.asked();
    if (session == nullptr) return nullptr;
    session->accept(ConnectionId(1), v1::Welcome());
    v1::ConnectResponse response;
    EXPECT_TRUE(stream_->Read(&response) && response.has_welcome());
    return session;
  }
  // "run a", "stop b": the orders of the next message.
  std::vector<std::string> next_orders() {
    v1::ConnectResponse response;
    if (!stream_->Read(&response) || !response.has_orders())
      return {response.has_fact_ack()        ? "fact ack"
              : response.has_heartbeat_ack() ? "heartbeat ack"
                                             : "no orders"};
    std::vector<std::string> texts;
    for (const v1::Order& order : response.orders().orders())
      texts.push_back((order.has_run() ? "run " : "stop ") + order.job_id());
    return texts;
  }

  std::filesystem::path dir_;
  SlowHub hub_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<v1::AgentService::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::ConnectRequest, v1::ConnectResponse>> stream_;
};

TEST_F(SessionTest, ARefusalReachesAnAgentThatHasClosedItsHalf) {
  say_hello_and_nothing_more();
  const SessionPtr session = hub_.half_closed();
  ASSERT_NE(session, nullptr);
  EXPECT_FALSE(session->is_gone()) << "the hub would not answer somebody who is gone";
  session->refuse({grpc::StatusCode::ABORTED, "the name is held"});
  v1::ConnectResponse response;
  EXPECT_FALSE(stream_->Read(&response));
  const grpc::Status status = stream_->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::ABORTED);
  EXPECT_EQ(status.error_message(), "the name is held");
  EXPECT_TRUE(hub_.wait_gone());
  EXPECT_EQ(hub_.gone(), 1);
}

TEST_F(SessionTest, AWelcomeReachesItTooAndThenTheStreamEnds) {
  say_hello_and_nothing_more();
  const SessionPtr session = hub_.half_closed();
  ASSERT_NE(session, nullptr);
  v1::Welcome welcome;
  welcome.set_epoch(7);
  session->accept(ConnectionId(1), welcome);
  v1::ConnectResponse response;
  ASSERT_TRUE(stream_->Read(&response));
  EXPECT_EQ(response.welcome().epoch(), 7u);
  EXPECT_FALSE(stream_->Read(&response));
  EXPECT_TRUE(stream_->Finish().ok());
  EXPECT_TRUE(hub_.wait_gone()) << "a connection that says nothing more holds no node name";
  EXPECT_EQ(hub_.gone(), 1);
}

TEST_F(SessionTest, AConnectionThatBreaksBeforeTheAnswerIsGoneAtOnce) {
  say_hello_and_nothing_more();
  ASSERT_NE(hub_.half_closed(), nullptr);
  context_.TryCancel();
  EXPECT_TRUE(hub_.wait_gone());
  EXPECT_EQ(stream_->Finish().error_code(), grpc::StatusCode::CANCELLED);
}

TEST_F(SessionTest, AnAgentThatSaysNothingAtAllIsLetGo) {
  ASSERT_TRUE(stream_->WritesDone());
  EXPECT_TRUE(stream_->Finish().ok());
  EXPECT_TRUE(hub_.wait_gone());
}

v1::Order run(const std::string& job, std::size_t bytes = 0) {
  v1::Order order;
  order.set_job_id(job);
  order.set_attempt(1);
  order.mutable_run()->add_ranks()->add_argv(std::string(bytes, 'x'));
  return order;
}
v1::Orders stops(const std::vector<std::string>& jobs) {
  v1::Orders orders;
  for (const std::string& job : jobs) {
    v1::Order& order = *orders.add_orders();
    order.set_job_id(job);
    order.set_attempt(1);
    order.mutable_stop();
  }
  return orders;
}
std::set<std::pair<JobId, AttemptNo>> running(const std::vector<std::string>& jobs) {
  std::set<std::pair<JobId, AttemptNo>> keys;
  for (const std::string& job : jobs) keys.insert({JobId(job), AttemptNo(1)});
  return keys;
}

// Regression: all orders of a node were in one message. Two long command lines did not fit it,
// which ended the stream at each connection, and the stop in the same message never arrived.
TEST_F(SessionTest, StopsGoFirstAndEachLaunchInAMessageOfItsOwn) {
  const SessionPtr session = accepted();
  ASSERT_NE(session, nullptr);
  constexpr std::size_t kLong = 12U << 20U;
  session->send({.standing = stops({"old"}),
                 .runs = {run("a", kLong), run("b", kLong)},
                 .running = running({"a", "b"})});
  EXPECT_EQ(next_orders(), std::vector<std::string>{"stop old"});
  EXPECT_EQ(next_orders(), (std::vector<std::string>{"stop old", "run a"}))
      << "the latest message replaces all earlier ones: it has the stops, too";
  EXPECT_EQ(next_orders(), (std::vector<std::string>{"stop old", "run b"}));
}

TEST_F(SessionTest, NothingToStopIsSentWithTheLaunchOrByItself) {
  const SessionPtr session = accepted();
  ASSERT_NE(session, nullptr);
  session->send({.standing = {}, .runs = {}, .running = {}});
  EXPECT_EQ(next_orders(), std::vector<std::string>());
  session->send({.standing = {}, .runs = {run("a")}, .running = running({"a"})});
  EXPECT_EQ(next_orders(), std::vector<std::string>{"run a"});
}

// The first launch is longer than what is sent before a reader reads, so the second one still waits
// when it is no longer wanted.
TEST_F(SessionTest, ALaunchThatIsNoLongerWantedIsNotWritten) {
  const SessionPtr session = accepted();
  ASSERT_NE(session, nullptr);
  session->send({.standing = {},
                 .runs = {run("a", 8U << 20U), run("b"), run("c")},
                 .running = running({"a", "b", "c"})});
  session->send(
      {.standing = stops({"b"}), .runs = {run("d")}, .running = running({"a", "c", "d"})});
  std::vector<std::string> runs;
  while (runs.empty() || runs.back() != "run d") {
    const auto orders = next_orders();
    ASSERT_NE(orders, std::vector<std::string>{"no orders"});
    if (!orders.empty() && orders.back().starts_with("run")) runs.push_back(orders.back());
  }
  EXPECT_EQ(runs, (std::vector<std::string>{"run a", "run c", "run d"}));
}

// Acknowledgements renew an agent's grace: they do not wait for a queue of launches.
TEST_F(SessionTest, AcknowledgementsPassBetweenLaunches) {
  const SessionPtr session = accepted();
  ASSERT_NE(session, nullptr);
  session->send({.standing = {},
                 .runs = {run("a", 8U << 20U), run("b"), run("c")},
                 .running = running({"a", "b", "c"})});
  session->ack(v1::FactAck());
  session->ack(v1::HeartbeatAck());
  const std::vector<std::string> expected = {"run a", "fact ack", "run b", "heartbeat ack",
                                             "run c"};
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const auto orders = next_orders();
    ASSERT_EQ(orders.size(), 1u);
    texts.push_back(orders[0]);
  }
  EXPECT_EQ(texts, expected);
}

// Facts are read as fast as they arrive, and wait here for the disk. Regression: an agent that
// reported without end used all memory.
TEST_F(SessionTest, FactsThatAreNotDurableYetHaveABound) {
  const SessionPtr session = accepted();
  ASSERT_NE(session, nullptr);
  v1::ConnectRequest request;
  request.mutable_facts()->add_facts()->mutable_start_failed()->set_text(std::string(2 << 20, 'x'));
  constexpr std::size_t kMessages = 60;
  std::jthread agent([&] {
    for (std::size_t i = 0; i < kMessages; ++i) {
      if (!stream_->Write(request)) break;
    }
  });
  const std::size_t most = Session::kFactsWaitingMost / waiting_cost(request.facts()) + 1;
  for (std::size_t taken = 0; taken < kMessages; ++taken) {
    ASSERT_TRUE(hub_.wait_facts(std::min(kMessages, most + taken)))
        << "it goes on when there is room again; after " << taken;
    hub_.take_oldest_facts(session);
  }
  EXPECT_EQ(hub_.most_waiting(), most);
}

TEST_F(SessionTest, WhatAnAgentDoesNotSupportIsHandedOver) {
  ASSERT_NE(accepted(), nullptr);
  v1::ConnectRequest request;
  request.mutable_unsupported()->set_job_id("j");
  request.mutable_unsupported()->set_attempt(3);
  ASSERT_TRUE(stream_->Write(request));
  const auto reported = hub_.wait_unsupported();
  ASSERT_TRUE(reported);
  EXPECT_EQ(reported->job_id(), "j");
  EXPECT_EQ(reported->attempt(), 3u);
}

}  // namespace
}  // namespace muster::controller
