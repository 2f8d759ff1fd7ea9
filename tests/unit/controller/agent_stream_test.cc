#include <google/protobuf/util/message_differencer.h>

#include <future>
#include <thread>

#include "tests/unit/controller/cluster_fixture.h"

namespace muster::controller {
namespace {

using AgentStream = ClusterTest;

bool is_welcome(const v1::ConnectResponse& r) { return r.has_welcome(); }
bool is_run(const v1::ConnectResponse& r) {
  return r.has_orders() && r.orders().orders_size() == 1 && r.orders().orders(0).has_run();
}
bool is_fact_ack(const v1::ConnectResponse& r) { return r.has_fact_ack(); }

TEST_F(AgentStream, IsWelcomedOrderedAndAcknowledged) {
  HandAgent agent(channel_);
  agent.say(HandAgent::hello("n1", "i1"));
  v1::ConnectResponse response;
  ASSERT_TRUE(agent.until(is_welcome, response));
  EXPECT_EQ(response.welcome().cluster_id(), "cluster");
  EXPECT_EQ(response.welcome().epoch(), 1u);
  const std::string id = submitted("one");
  ASSERT_TRUE(agent.until(is_run, response));
  const v1::NodeLaunch launch = response.orders().orders(0).run();
  EXPECT_EQ(launch.job_id(), id);
  EXPECT_EQ(launch.boot_id(), "boot-1");
  EXPECT_EQ(launch.instance(), "i1");
  ASSERT_EQ(launch.ranks_size(), 1);
  EXPECT_EQ(launch.ports_size(), 1);
  EXPECT_GT(launch.orphan_grace().seconds(), 0);

  v1::Facts facts;
  facts.set_sequence(5);
  v1::Fact& fact = *facts.add_facts();
  fact.set_job_id(id);
  fact.set_attempt(1);
  fact.mutable_started()->add_pids(42);
  agent.say(facts);
  ASSERT_TRUE(agent.until(is_fact_ack, response));
  EXPECT_EQ(response.fact_ack().sequence(), 5u);
  EXPECT_EQ(response.fact_ack().index(), controller_->shell->durable().value);
  EXPECT_EQ(job("one").phase(), v1::JOB_PHASE_RUNNING);

  // Already known: acknowledged, and nothing is written.
  const std::uint64_t before = controller_->shell->durable().value;
  facts.set_sequence(6);
  agent.say(facts);
  ASSERT_TRUE(agent.until(is_fact_ack, response));
  EXPECT_EQ(response.fact_ack().sequence(), 6u);
  EXPECT_EQ(controller_->shell->durable().value, before);

  v1::Heartbeat heartbeat;
  heartbeat.set_number(3);
  agent.say(heartbeat);
  ASSERT_TRUE(
      agent.until([](const v1::ConnectResponse& r) { return r.has_heartbeat_ack(); }, response));
  EXPECT_EQ(response.heartbeat_ack().number(), 3u);
}

TEST_F(AgentStream, OrdersAreTheSameForTheSameAgentOnAnotherStream) {
  v1::ConnectResponse response;
  v1::Orders first;
  {
    HandAgent agent(channel_);
    agent.say(HandAgent::hello("n1", "i1"));
    ASSERT_TRUE(agent.until(is_welcome, response));
    submitted("one");
    ASSERT_TRUE(agent.until(is_run, response));
    first = response.orders();
  }
  HandAgent again(channel_);
  again.say(HandAgent::hello("n1", "i1"));
  ASSERT_TRUE(again.until(is_run, response));
  EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(first, response.orders()));
}

TEST_F(AgentStream, ANameBelongsToOneInstance) {
  HandAgent holder(channel_);
  v1::ConnectResponse response;
  holder.say(HandAgent::hello("n1", "i1"));
  ASSERT_TRUE(holder.until(is_welcome, response));
  HandAgent other(channel_);
  other.say(HandAgent::hello("n1", "i2"));
  const grpc::Status refused = other.status();
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::ABORTED);
  EXPECT_NE(refused.error_message().find("'i1'"), std::string::npos) << refused.error_message();
  // The same instance replaces its old stream.
  HandAgent newer(channel_);
  newer.say(HandAgent::hello("n1", "i1"));
  ASSERT_TRUE(newer.until(is_welcome, response));
  EXPECT_EQ(holder.status().error_code(), grpc::StatusCode::ABORTED);
  v1::Heartbeat heartbeat;
  heartbeat.set_number(9);
  newer.say(heartbeat);
  EXPECT_TRUE(
      newer.until([](const v1::ConnectResponse& r) { return r.has_heartbeat_ack(); }, response));
}

// Regression: a state directory was copied (a cloned image, a restored backup). The two agents
// replaced each other under the name, and each started what was ordered.
TEST_F(AgentStream, ACopyOfTheAgentDoesNotTakeItsPlace) {
  const auto hello = [](const char* incarnation) {
    v1::Hello one = HandAgent::hello("n1", "i1");
    one.set_incarnation(incarnation);
    return one;
  };
  HandAgent holder(channel_);
  v1::ConnectResponse response;
  holder.say(hello("first"));
  ASSERT_TRUE(holder.until(is_welcome, response));
  {
    HandAgent copy(channel_);
    copy.say(hello("second"));
    EXPECT_EQ(copy.status().error_code(), grpc::StatusCode::UNAVAILABLE)
        << "the first may be about to go";
  }
  v1::Heartbeat heartbeat;
  heartbeat.set_number(1);
  holder.say(heartbeat);
  ASSERT_TRUE(
      holder.until([](const v1::ConnectResponse& r) { return r.has_heartbeat_ack(); }, response))
      << "it has lost its stream";
  HandAgent copy(channel_);
  copy.say(hello("second"));
  const grpc::Status refused = copy.status();
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::ABORTED);
  EXPECT_NE(refused.error_message().find("a copy of this agent's state directory"),
            std::string::npos)
      << refused.error_message();
  // The same process on a new stream is no copy.
  HandAgent newer(channel_);
  newer.say(hello("first"));
  EXPECT_TRUE(newer.until(is_welcome, response));
}

TEST_F(AgentStream, ALostConnectionIsSeenAtOnce) {
  auto watched = [this] {
    v1::ListNodesRequest request;
    v1::ListNodesResponse nodes;
    EXPECT_TRUE(node_stub_->ListNodes(context().get(), request, &nodes).ok());
    return nodes.nodes_size() == 1 && nodes.nodes(0).connected();
  };
  {
    HandAgent agent(channel_);
    agent.say(HandAgent::hello("n1", "i1"));
    v1::ConnectResponse response;
    ASSERT_TRUE(agent.until(is_welcome, response));
    EXPECT_TRUE(watched());
  }
  const auto until = std::chrono::steady_clock::now() + kPatience;
  while (watched() && std::chrono::steady_clock::now() < until) std::this_thread::yield();
  EXPECT_FALSE(watched());
}

TEST_F(AgentStream, StrangersAreRefusedWithASentence) {
  const auto refused = [this](const v1::Hello& hello) {
    HandAgent agent(channel_);
    agent.say(hello);
    return agent.status();
  };
  v1::Hello hello = HandAgent::hello("n1", "i1");
  hello.set_cluster_id("elsewhere");
  EXPECT_EQ(refused(hello).error_code(), grpc::StatusCode::PERMISSION_DENIED);
  hello = HandAgent::hello("n1", "i1");
  hello.set_highest_epoch(7);
  EXPECT_EQ(refused(hello).error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  hello = HandAgent::hello("n1", "i1");
  hello.set_protocol_min(2);
  hello.set_protocol_max(3);
  EXPECT_EQ(refused(hello).error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(refused(HandAgent::hello("a/b", "i1")).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_FALSE(behind_);
  hello = HandAgent::hello("n1", "i1");
  hello.set_cluster_id("cluster");
  hello.set_acked_index(1'000'000);
  EXPECT_EQ(refused(hello).error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_FALSE(behind_) << "nobody knows it";
  {
    HandAgent agent(channel_);
    agent.say(HandAgent::hello("n1", "i1"));
    v1::ConnectResponse response;
    ASSERT_TRUE(agent.until(is_welcome, response));
  }
  const grpc::Status behind = refused(hello);
  EXPECT_EQ(behind.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_NE(behind.error_message().find("--accept-loss"), std::string::npos);
  // The daemon is notified right after the refusal.
  const auto until = std::chrono::steady_clock::now() + kPatience;
  while (!behind_ && std::chrono::steady_clock::now() < until) std::this_thread::yield();
  EXPECT_TRUE(behind_);
  HandAgent early(channel_);
  early.say(v1::Heartbeat());
  EXPECT_EQ(early.status().error_code(), grpc::StatusCode::FAILED_PRECONDITION);
}

// Epochs are used once. An agent that names this epoch and was not connected here got it from a
// controller that continued from the same copy.
TEST_F(AgentStream, WhoHasSeenThisEpochWasWelcomedInIt) {
  v1::ConnectResponse response;
  v1::Hello hello = HandAgent::hello("n1", "i1");
  for (int connection = 0; connection < 2; ++connection) {
    HandAgent agent(channel_);
    agent.say(hello);
    ASSERT_TRUE(agent.until(is_welcome, response));
    hello.set_cluster_id(response.welcome().cluster_id());
    hello.set_highest_epoch(response.welcome().epoch());
    hello.set_acked_index(controller_->shell->durable().value);
  }
  EXPECT_FALSE(behind_);
  HandAgent stranger(channel_);
  hello.set_node("n2");
  hello.set_instance("i2");
  stranger.say(hello);
  EXPECT_EQ(stranger.status().error_code(), grpc::StatusCode::FAILED_PRECONDITION);
}

TEST_F(AgentStream, OfAJournalThatIsBehindNobodyTakesOrders) {
  HandAgent agent(channel_);
  v1::ConnectResponse response;
  agent.say(HandAgent::hello("n1", "i1"));
  ASSERT_TRUE(agent.until(is_welcome, response));
  submitted("one");
  ASSERT_TRUE(agent.until(
      [](const v1::ConnectResponse& r) { return r.has_orders() && r.orders().orders_size() == 1; },
      response));
  v1::Hello hello = HandAgent::hello("n2", "i2");
  {
    HandAgent known(channel_);
    known.say(hello);
    ASSERT_TRUE(known.until(is_welcome, response));
  }
  HandAgent telling(channel_);
  hello.set_cluster_id("cluster");
  hello.set_acked_index(1'000'000);
  telling.say(hello);
  EXPECT_EQ(telling.status().error_code(), grpc::StatusCode::UNAVAILABLE);
  v1::SubmitJobResponse submission;
  const grpc::Status refused = submit("two", submission);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::DATA_LOSS);
  EXPECT_NE(refused.error_message().find("the controller pauses: "), std::string::npos)
      << refused.error_message();
  v1::ExplainJobRequest why;
  why.set_job("one");
  v1::ExplainJobResponse explained;
  ASSERT_TRUE(stub_->ExplainJob(context().get(), why, &explained).ok());
  ASSERT_GT(explained.lines_size(), 0);
  EXPECT_EQ(explained.lines(0), refused.error_message());
  v1::GetClusterStatusResponse cluster;
  ASSERT_TRUE(
      node_stub_->GetClusterStatus(context().get(), v1::GetClusterStatusRequest(), &cluster).ok());
  EXPECT_EQ(cluster.paused(), refused.error_message());
  agent.say(v1::Heartbeat());
  EXPECT_TRUE(agent.until(
      [](const v1::ConnectResponse& r) {
        EXPECT_EQ(r.orders().orders_size(), 0) << r.DebugString();
        return r.has_heartbeat_ack();
      },
      response));
  HandAgent late(channel_);
  late.say(HandAgent::hello("n3", "i3"));
  EXPECT_EQ(late.status().error_code(), grpc::StatusCode::UNAVAILABLE);
}

// The agent reports that nothing is left of a run that the journal does not name: the node gets
// work again, without another Hello.
TEST_F(AgentStream, AnUnknownRunsSweepFreesItsNode) {
  HandAgent agent(channel_);
  v1::Hello hello = HandAgent::hello("n1", "i1");
  v1::PresentAttempt& present = *hello.add_present();
  present.set_job_id("0000000000009");
  present.set_attempt(3);
  agent.say(hello);
  v1::ConnectResponse response;
  ASSERT_TRUE(agent.until(is_welcome, response));
  const JobId id(submitted("one"));
  std::promise<core::JobPhase> phase;
  ASSERT_TRUE(controller_->shell->read(
      [&](const View& view) { phase.set_value(view.ledger.jobs.at(id).phase); }));
  EXPECT_EQ(phase.get_future().get(), core::JobPhase::Queued);
  v1::Facts facts;
  facts.set_sequence(1);
  v1::Fact& fact = *facts.add_facts();
  fact.set_job_id("0000000000009");
  fact.set_attempt(3);
  fact.mutable_swept()->set_why(v1::SWEPT_WHY_WORKER_DIED);
  agent.say(facts);
  ASSERT_TRUE(agent.until(is_run, response));
}

// When all logs have arrived, the node may forget the run, and a follower's stream ends with them.
TEST_F(AgentStream, LogsAreFollowedToTheirEnd) {
  HandAgent agent(channel_);
  agent.say(HandAgent::hello("n1", "i1"));
  v1::ConnectResponse response;
  ASSERT_TRUE(agent.until(is_welcome, response));
  const JobId id(submitted("one"));
  ASSERT_TRUE(agent.until(is_run, response));
  const logs::LogKey key{.job = id, .attempt = AttemptNo(1), .rank = RankNo(0)};
  ASSERT_TRUE(controller_->store->append(key, 0, "hello\n", std::nullopt));

  auto following = context();
  v1::ReadLogsRequest request;
  request.set_job("one");
  request.set_follow(true);
  const auto reader = stub_->ReadLogs(following.get(), request);
  v1::ReadLogsResponse chunk;
  ASSERT_TRUE(reader->Read(&chunk));
  EXPECT_EQ(chunk.data(), "hello\n");
  ASSERT_TRUE(controller_->store->append(key, 6, "again\n", std::nullopt));
  ASSERT_TRUE(reader->Read(&chunk));
  EXPECT_EQ(chunk.data(), "again\n");
  EXPECT_EQ(chunk.offset(), 6u);

  v1::Facts facts;
  facts.set_sequence(1);
  const auto add = [&] {
    v1::Fact& fact = *facts.add_facts();
    fact.set_job_id(id.str());
    fact.set_attempt(1);
    return &fact;
  };
  add()->mutable_started()->add_pids(1);
  add()->mutable_exited()->set_rank(0);
  add()->mutable_swept()->set_why(v1::SWEPT_WHY_ENDED);
  agent.say(facts);
  ASSERT_TRUE(agent.until(is_fact_ack, response));
  EXPECT_EQ(job("one").phase(), v1::JOB_PHASE_SUCCEEDED);
  ASSERT_TRUE(controller_->store->finish(key, 12));
  ASSERT_FALSE(controller_->store->sync().error);
  controller_->collected->on_complete(id, AttemptNo(1), RankNo(0));
  EXPECT_FALSE(reader->Read(&chunk));
  EXPECT_TRUE(reader->Finish().ok());
  ASSERT_TRUE(agent.until(
      [](const v1::ConnectResponse& r) {
        return r.has_orders() && r.orders().orders_size() == 1 && r.orders().orders(0).has_forget();
      },
      response));
}

// Regression: a part that never started has no log, and its agent stays connected. A follower of
// the job's logs waited for bytes that nobody would send, once an agent had connected or
// disconnected.
TEST_F(AgentStream, FollowingDoesNotWaitForAPartThatNeverStarted) {
  HandAgent failing(channel_);
  auto going = std::make_unique<HandAgent>(channel_);
  v1::ConnectResponse response;
  failing.say(HandAgent::hello("n1", "i1"));
  ASSERT_TRUE(failing.until(is_welcome, response));
  going->say(HandAgent::hello("n2", "i2"));
  ASSERT_TRUE(going->until(is_welcome, response));
  v1::SubmitJobRequest submission;
  *submission.mutable_spec() = spec("two");
  submission.mutable_spec()->mutable_resources()->set_nodes(2);
  v1::SubmitJobResponse taken;
  ASSERT_TRUE(stub_->SubmitJob(context().get(), submission, &taken).ok());
  const JobId id(taken.job_id());
  ASSERT_TRUE(failing.until(is_run, response));
  ASSERT_TRUE(going->until(is_run, response));

  const auto about = [&](v1::Facts& facts) {
    v1::Fact& fact = *facts.add_facts();
    fact.set_job_id(id.str());
    fact.set_attempt(1);
    return &fact;
  };
  v1::Facts none, some;
  none.set_sequence(1);
  about(none)->mutable_start_failed()->set_why(v1::START_FAILURE_LAUNCH);
  about(none)->mutable_swept()->set_why(v1::SWEPT_WHY_NEVER_STARTED);
  failing.say(none);
  ASSERT_TRUE(failing.until(is_fact_ack, response));
  some.set_sequence(1);
  about(some)->mutable_started()->add_pids(1);
  about(some)->mutable_exited()->set_rank(job("two").attempts(0).nodes(1).first_rank());
  about(some)->mutable_swept()->set_why(v1::SWEPT_WHY_STOPPED);
  going->say(some);
  ASSERT_TRUE(going->until(is_fact_ack, response));
  ASSERT_EQ(job("two").phase(), v1::JOB_PHASE_FAILED);
  controller_->shell->report(
      core::ReportLogsCollected{.job = id, .attempt = AttemptNo(1), .node = NodeName("n1")},
      controller_->shell->now(), {});

  auto following = context();
  v1::ReadLogsRequest request;
  request.set_job("two");
  request.set_follow(true);
  const auto reader = stub_->ReadLogs(following.get(), request);
  const logs::LogKey key{.job = id,
                         .attempt = AttemptNo(1),
                         .rank = RankNo(job("two").attempts(0).nodes(1).first_rank())};
  ASSERT_TRUE(controller_->store->append(key, 0, "hello\n", std::nullopt));
  v1::ReadLogsResponse chunk;
  ASSERT_TRUE(reader->Read(&chunk));
  EXPECT_EQ(chunk.data(), "hello\n");
  going.reset();  // the rest of its log is lost with it
  EXPECT_FALSE(reader->Read(&chunk));
  const grpc::Status ended = reader->Finish();
  EXPECT_TRUE(ended.ok()) << ended.error_message();
}

}  // namespace
}  // namespace muster::controller
