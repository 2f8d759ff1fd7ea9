#include "controller/links/hub.h"

#include <google/protobuf/util/message_differencer.h>

#include <limits>
#include <thread>

#include "tests/unit/links/hub_fixture.h"

namespace muster::controller {
namespace {

using google::protobuf::util::MessageDifferencer;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

void add_unknown(google::protobuf::Message& message) {
  message.GetReflection()->MutableUnknownFields(&message)->AddVarint(100, 1);
}
bool has_unknown(google::protobuf::Message& message) {
  const std::size_t size = message.ByteSizeLong();
  message.DiscardUnknownFields();
  return message.ByteSizeLong() != size;
}

// Regression: an agent that was one release newer sent fields that this controller does not know.
// They were kept in the journal, which no later start could read.
TEST_F(HubTest, WhatANewerAgentSaysGoesNoFurther) {
  v1::Hello hello = HandAgent::hello(1);
  add_unknown(*hello.mutable_inventory());
  add_unknown(*hello.mutable_inventory()->mutable_devices(0));
  {
    HandAgent agent(address_);
    ASSERT_TRUE(agent.connect(hello));
    submit(command("one", 1));
    v1::Fact fact;
    fact.set_job_id("one");
    fact.set_attempt(1);
    fact.mutable_started()->add_pids(42);
    fact.mutable_started()->mutable_resolved()->add_programs("/bin/true");
    add_unknown(*fact.mutable_started()->mutable_resolved());
    add_unknown(*fact.mutable_started());
    agent.say(fact);
    ASSERT_TRUE(agent.acknowledged());
  }
  auto [inventory, resolved] = seen([](const View& view) {
    return std::pair(view.ledger.nodes.at(NodeName("n1")).inventory,
                     view.ledger.jobs.at(JobId("one")).attempts.at(0).parts.at(0).resolved);
  });
  EXPECT_FALSE(has_unknown(inventory));
  EXPECT_EQ(inventory.devices_size(), 1);
  EXPECT_FALSE(has_unknown(resolved));
  EXPECT_EQ(resolved.programs_size(), 1);

  ASSERT_NO_THROW(restart());
  HandAgent again(address_);
  const JournalIndex before = controller_->shell->durable();
  hello.add_present()->set_job_id("one");
  hello.mutable_present(0)->set_attempt(1);
  ASSERT_TRUE(again.connect(hello));
  EXPECT_EQ(controller_->shell->durable(), before)
      << "nothing of the node has changed, and nothing is registered anew";
}

// Regression: a node that was declared dead while its connection had stalled stayed connected and
// dead. Only a Hello takes a node back, and its agent had no reason to send one.
TEST_F(HubTest, TheStreamOfANodeDeclaredDeadIsEnded) {
  HandAgent agent(address_);
  ASSERT_TRUE(agent.connect(HandAgent::hello(1)));
  EXPECT_THAT(decided(core::DeclareNodeDead{.node = NodeName("n1"), .reason = "test"}),
              HasSubstr("was heard just now"));
  clock_.advance(std::chrono::hours(1));
  EXPECT_EQ(decided(core::DeclareNodeDead{.node = NodeName("n1"), .reason = "test"}), "");
  const grpc::Status status = agent.status();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::ABORTED);
  EXPECT_EQ(
      status.error_message(),
      "agent stream of node 'n1': the node was declared dead; connecting again takes it back");
  EXPECT_FALSE(
      seen([](const View& view) { return core::is_connected(view.presence, NodeName("n1")); }));

  HandAgent again(address_);
  ASSERT_TRUE(again.connect(HandAgent::hello(1)));
  EXPECT_FALSE(seen([](const View& view) { return view.ledger.nodes.at(NodeName("n1")).dead; }));
  submit(command("one", 1));
  EXPECT_TRUE(again.order("one", v1::Order::kRun)) << "it is placed on again";
}

// Regression: the command lines of two attempts together were longer than a message, and the stream
// broke at its Orders, at every connection.
TEST_F(HubTest, LaunchesThatDoNotFitOneMessageTogetherAllArrive) {
  const auto wide = [](const std::string& name) {
    v1::JobSpec spec = command(name, 8);
    for (int i = 0; i < 9; ++i) spec.mutable_launch()->add_run(std::string(120'000, 'x'));
    return spec;
  };
  submit(wide("one"));
  submit(wide("two"));
  v1::Order first;
  {
    HandAgent agent(address_);
    ASSERT_TRUE(agent.connect(HandAgent::hello(16)));
    const auto one = agent.order("one", v1::Order::kRun);
    ASSERT_TRUE(one);
    EXPECT_EQ(one->run().ranks_size(), 8);
    EXPECT_TRUE(agent.order("two", v1::Order::kRun));
    first = *one;
    // Stopped by a message that contains no launch.
    EXPECT_EQ(decided(core::CancelJob{.job = JobId("two"), .reason = ""}), "");
    const auto stop = agent.orders();
    ASSERT_TRUE(stop);
    ASSERT_EQ(stop->orders_size(), 1);
    EXPECT_TRUE(stop->orders(0).has_stop());
    EXPECT_EQ(stop->orders(0).job_id(), "two");
  }
  // On another stream, and from another incarnation of the controller, it is the same launch, and
  // the stop is before it.
  restart();
  HandAgent again(address_);
  ASSERT_TRUE(again.connect(HandAgent::hello(16)));
  const auto stop = again.orders();
  ASSERT_TRUE(stop);
  ASSERT_EQ(stop->orders_size(), 1);
  EXPECT_TRUE(stop->orders(0).has_stop());
  const auto one = again.order("one", v1::Order::kRun);
  ASSERT_TRUE(one);
  EXPECT_TRUE(MessageDifferencer::Equals(first, *one));
}

TEST_F(HubTest, WhatItsHelloHoldsIsNotOrderedAgain) {
  HandAgent agent(address_);
  ASSERT_TRUE(agent.connect(HandAgent::hello(2)));
  submit(command("one", 1));
  ASSERT_TRUE(agent.order("one", v1::Order::kRun));
  v1::Hello hello = HandAgent::hello(2);
  hello.add_present()->set_job_id("one");
  hello.mutable_present(0)->set_attempt(1);
  HandAgent again(address_);
  ASSERT_TRUE(again.connect(hello));
  const auto nothing = again.orders();
  ASSERT_TRUE(nothing);
  EXPECT_EQ(nothing->orders_size(), 0) << nothing->DebugString();
  submit(command("two", 1));
  const auto two = again.orders();
  ASSERT_TRUE(two);
  ASSERT_EQ(two->orders_size(), 1);
  EXPECT_EQ(two->orders(0).job_id(), "two");
  EXPECT_EQ(decided(core::CancelJob{.job = JobId("one"), .reason = ""}), "");
  EXPECT_TRUE(again.order("one", v1::Order::kStop)) << "it is stopped all the same";
}

// Regression: the agent's state directory was restored from before the job, or a copy's agent
// connected first after a restart. Attempt 1 was started a second time, in parallel with its living
// ranks.
TEST_F(HubTest, WhatWasStartedIsNeverOrderedAgain) {
  for (const bool restarted : {false, true}) {
    SCOPED_TRACE(restarted ? "the controller was started again" : "on another stream");
    const std::string job = restarted ? "two" : "one";
    {
      HandAgent agent(address_);
      ASSERT_TRUE(agent.connect(HandAgent::hello(2)));
      submit(command(job, 1));
      ASSERT_TRUE(agent.order(job, v1::Order::kRun));
      v1::Fact fact;
      fact.set_job_id(job);
      fact.set_attempt(1);
      fact.mutable_started()->add_pids(42);
      agent.say(fact);
      ASSERT_TRUE(agent.acknowledged());
    }
    if (restarted) restart();
    HandAgent again(address_);
    ASSERT_TRUE(again.connect(HandAgent::hello(2)));
    const auto first = again.orders();
    ASSERT_TRUE(first);
    for (const v1::Order& order : first->orders())
      EXPECT_FALSE(order.has_run()) << order.DebugString();
    EXPECT_THAT(first->orders(),
                Contains(testing::AllOf(testing::Property(&v1::Order::job_id, job),
                                        testing::Property(&v1::Order::has_stop, true))));
    const auto [cause, used] = seen([&](const View& view) {
      return std::pair(view.ledger.jobs.at(JobId(job)).attempts.at(0).broke_cause,
                       view.ledger.indexes.device_holders.at(NodeName("n1")).size());
    });
    EXPECT_EQ(cause,
              "node 'n1' came back without the run directory of attempt 1: its agent's state "
              "directory is another or an older one");
    EXPECT_EQ(used, 1u) << "what was started may run until the node says that it is swept";
    v1::Fact fact;
    fact.set_job_id(job);
    fact.set_attempt(1);
    fact.mutable_swept()->set_why(v1::SWEPT_WHY_NEVER_STARTED);
    again.say(fact);
    const auto next = again.order(job, v1::Order::kRun);
    ASSERT_TRUE(next);
    EXPECT_EQ(next->attempt(), 2u);
    const auto verdict = seen(
        [&](const View& view) { return *view.ledger.jobs.at(JobId(job)).attempts.at(0).verdict; });
    EXPECT_EQ(verdict.cls, core::FailureClass::Node);
    EXPECT_EQ(verdict.reason, cause);
    EXPECT_EQ(decided(core::CancelJob{.job = JobId(job), .reason = ""}), "");
    fact.set_attempt(2);
    again.say(fact);
    ASSERT_TRUE(again.acknowledged());
  }
}

// Regression: after one Hello of anybody with the token, nobody was welcomed any more.
TEST_F(HubTest, AStrangerWhoKnowsMoreIsRefusedAlone) {
  v1::Hello stranger = HandAgent::hello(1, "stranger");
  stranger.set_cluster_id("cluster");
  stranger.set_highest_epoch(std::uint64_t{1} << 63);
  for (const std::uint64_t epoch : {std::uint64_t{1} << 63, std::uint64_t{9}}) {
    stranger.set_highest_epoch(epoch);
    HandAgent agent(address_);
    EXPECT_FALSE(agent.connect(stranger));
    EXPECT_EQ(agent.status().error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  }
  HandAgent agent(address_);
  EXPECT_TRUE(agent.connect(HandAgent::hello(1)));
}

// Every rank had ended with success, and only the sweep was missing: nothing is started again to
// get it.
TEST_F(HubTest, WhatHasEndedWellIsSweptWhereItsDirectoryIsGone) {
  v1::Fact fact;
  fact.set_job_id("one");
  fact.set_attempt(1);
  {
    HandAgent agent(address_);
    ASSERT_TRUE(agent.connect(HandAgent::hello(1)));
    submit(command("one", 1));
    ASSERT_TRUE(agent.order("one", v1::Order::kRun));
    fact.mutable_started()->add_pids(42);
    agent.say(fact);
    fact.mutable_exited()->set_code(0);
    agent.say(fact);
    ASSERT_TRUE(agent.acknowledged());
  }
  HandAgent again(address_);
  ASSERT_TRUE(again.connect(HandAgent::hello(1)));
  EXPECT_TRUE(again.order("one", v1::Order::kStop));
  fact.mutable_swept()->set_why(v1::SWEPT_WHY_NEVER_STARTED);
  again.say(fact);
  ASSERT_TRUE(again.acknowledged());
  EXPECT_EQ(seen([](const View& view) { return view.ledger.jobs.at(JobId("one")).phase; }),
            core::JobPhase::Succeeded);
}

// Regression: a launch that is impossible was a line in the controller's log and, a minute later,
// "did not start its part within 1m".
TEST_F(HubTest, WhatCannotBeLaunchedBreaksAtOnceAndSaysWhy) {
  HandAgent agent(address_);
  ASSERT_TRUE(agent.connect(HandAgent::hello(1)));
  v1::JobSpec spec = command("one", 1);
  spec.mutable_launch()->add_run("${env:NOWHERE}");
  submit(spec);
  ASSERT_TRUE(agent.order("one", v1::Order::kStop));
  const auto lines = seen([](const View& view) {
    return core::explain(view.ledger, view.presence, view.ledger.jobs.at(JobId("one")), view.now,
                         view.limits);
  });
  EXPECT_THAT(lines,
              Contains(HasSubstr("node 'n1' could not start its part: planning job 'one' attempt "
                                 "1: launch.run[1]: '${env:NOWHERE}' has no value")));
  v1::Fact fact;
  fact.set_job_id("one");
  fact.set_attempt(1);
  fact.mutable_swept()->set_why(v1::SWEPT_WHY_NEVER_STARTED);
  agent.say(fact);
  ASSERT_TRUE(agent.acknowledged());
  const auto [phase, verdict] = seen([](const View& view) {
    const core::JobRecord& job = view.ledger.jobs.at(JobId("one"));
    return std::pair(job.phase, job.verdict);
  });
  EXPECT_EQ(phase, core::JobPhase::Failed);
  ASSERT_TRUE(verdict);
  EXPECT_EQ(verdict->cls, core::FailureClass::Launch);
  EXPECT_THAT(verdict->reason, HasSubstr("'${env:NOWHERE}' has no value"));
}

// Regression: in a burst of short jobs, nodes were ordered to forget only the newest ones, and kept
// the run directories of the others for ever. None of them may be ordered before its logs are
// accepted: the logs arrive as soon as it has started, and were refused.
TEST_F(HubTest, WhatNoOrderMentionsAnyMoreIsForgottenWhenItIsStillThere) {
  HandAgent agent(address_);
  ASSERT_TRUE(agent.connect(HandAgent::hello(1)));
  for (std::size_t number = 0; number <= core::kForgetListMax; ++number) {
    const std::string job = "job-" + std::to_string(number);
    agent.say(v1::Heartbeat());  // the whole test may take longer than a node may be silent
    submit(command(job, 1));
    ASSERT_TRUE(agent.order(job, v1::Order::kRun)) << job;
    ASSERT_TRUE(controller_->collected->known(JobId(job)));
    v1::Fact fact;
    fact.set_job_id(job);
    fact.set_attempt(1);
    fact.mutable_start_failed()->set_why(v1::START_FAILURE_LAUNCH);
    agent.say(fact);
    fact.mutable_swept()->set_why(v1::SWEPT_WHY_NEVER_STARTED);
    agent.say(fact);
    ASSERT_TRUE(agent.order(job, v1::Order::kForget)) << job;
  }
  ASSERT_FALSE(seen([](const View& view) {
    return std::ranges::any_of(
        core::desired(view.ledger, NodeName("n1")),
        [](const core::Assignment& one) { return one.job == JobId("job-0"); });
  })) << "the list of what to forget has an end";
  v1::Heartbeat heartbeat;
  heartbeat.set_number(1);
  for (const char* job : {"job-0", "job-3", "of-another-journal"}) {
    v1::AttemptReading& reading = *heartbeat.add_readings();
    reading.set_job_id(job);
    reading.set_attempt(1);
  }
  agent.say(heartbeat);
  const auto orders = agent.orders();
  ASSERT_TRUE(orders);
  std::set<std::string> forgotten;
  for (const v1::Order& order : orders->orders()) {
    EXPECT_TRUE(order.has_forget()) << order.DebugString();
    forgotten.insert(order.job_id());
  }
  EXPECT_THAT(forgotten, Contains("job-0"));
  EXPECT_THAT(forgotten, Contains("job-3"));
  EXPECT_THAT(forgotten, Not(Contains("of-another-journal")))
      << "what the ledger does not know is not judged";
}

// The bound at submission is an estimate. Here the job does not pass it at all.
TEST_F(HubTest, ALaunchLongerThanAMessageBreaksItsAttemptNotTheStream) {
  HandAgent agent(address_);
  ASSERT_TRUE(agent.connect(HandAgent::hello(17)));
  v1::JobSpec spec = command("one", 16);
  for (int i = 0; i < 9; ++i) spec.mutable_launch()->add_run(std::string(120'000, 'x'));
  submit(spec);
  ASSERT_TRUE(agent.order("one", v1::Order::kStop));
  EXPECT_THAT(seen([](const View& view) {
                return view.ledger.jobs.at(JobId("one")).attempts.at(0).broke_cause;
              }),
              HasSubstr("more than can be sent"));
  submit(command("two", 1));
  EXPECT_TRUE(agent.order("two", v1::Order::kRun));
}

// Regression: a hub that forgot that it had acknowledged heartbeats passed every test, and with
// real processes two attempts of a job ran at once. The agent counts its grace from an acknowledged
// heartbeat, and the controller counted from the Welcome.
TEST_F(HubTest, TheGraceCountsFromTheLastHeartbeatThatWasAcknowledged) {
  const auto start = [this](HandAgent& agent, const std::string& job, std::int64_t grace) {
    v1::JobSpec spec = command(job, 1);
    spec.mutable_recovery()->mutable_orphan_grace()->set_seconds(grace);
    submit(spec);
    ASSERT_TRUE(agent.order(job, v1::Order::kRun));
    v1::Fact fact;
    fact.set_job_id(job);
    fact.set_attempt(1);
    fact.mutable_started()->add_pids(42);
    agent.say(fact);
    ASSERT_TRUE(agent.acknowledged());
  };
  const auto attempts = [this](const std::string& job) {
    return seen([&](const View& view) { return view.ledger.jobs.at(JobId(job)).attempts.size(); });
  };
  auto cut = std::make_unique<HandAgent>(address_);
  ASSERT_TRUE(cut->connect(HandAgent::hello(1, "n1")));
  start(*cut, "long", 60);
  auto other = std::make_unique<HandAgent>(address_);
  ASSERT_TRUE(other->connect(HandAgent::hello(1, "n2")));
  start(*other, "short", 5);
  clock_.advance(std::chrono::seconds(50));
  ASSERT_TRUE(cut->heartbeat_acknowledged());
  ASSERT_TRUE(other->heartbeat_acknowledged());
  cut.reset();
  other.reset();
  HandAgent spare(address_);
  ASSERT_TRUE(spare.connect(HandAgent::hello(2, "n3")));
  // The agent sends heartbeats all the time, until that job has a second attempt.
  const auto replaced = [&](const std::string& job) {
    const auto until = std::chrono::steady_clock::now() + kPatience;
    while (attempts(job) < 2 && std::chrono::steady_clock::now() < until &&
           spare.heartbeat_acknowledged())
      std::this_thread::yield();
    return attempts(job) == 2;
  };
  clock_.advance(std::chrono::seconds(40));
  ASSERT_TRUE(replaced("short"));
  EXPECT_EQ(attempts("long"), 1U)
      << "90 s after the Welcome, 40 s after the last acknowledgement, of 60";
  clock_.advance(std::chrono::seconds(60));
  EXPECT_TRUE(replaced("long"));
}

// Regression: clients had filled the inbox. An agent that came back was refused again and again,
// while its node's grace ended.
TEST_F(HubTest, AgentsGetInHoweverManyClientsWait) {
  inbox_max_ = 0;
  restart();
  EXPECT_FALSE(controller_->shell->read([](const View&) {})) << "there is room for no client";
  HandAgent agent(address_);
  EXPECT_TRUE(agent.connect(HandAgent::hello(1)));
}

// A Hello is kept whole, and all of it is checked each time its node is sent orders.
TEST_F(HubTest, AHelloHasABound) {
  v1::Hello many = HandAgent::hello(1);
  for (int i = 0; i < 16'385; ++i) many.add_present()->set_job_id(std::to_string(i));
  HandAgent first(address_);
  EXPECT_FALSE(first.connect(many));
  EXPECT_THAT(first.status().error_message(),
              HasSubstr("it holds 16385 run directories, at most 16384 are taken"));
  v1::Hello longer = HandAgent::hello(1);
  longer.add_present()->set_job_id(std::string(3 << 20, 'x'));
  HandAgent second(address_);
  EXPECT_FALSE(second.connect(longer));
  EXPECT_THAT(second.status().error_message(), HasSubstr("bytes, at most 2097152 are taken"));
  longer.mutable_present(0)->set_job_id(std::string(300, 'x'));
  HandAgent third(address_);
  EXPECT_FALSE(third.connect(longer));
}

// Regression: each node of a job could write losses of the rank that reports them, wherever that
// rank ran. One step of a million, and the series had no more points of the attempt.
TEST_F(HubTest, ANodeAddsToTheSeriesOnlyStepsOfItsOwnRank) {
  HandAgent n1(address_), n2(address_);
  ASSERT_TRUE(n1.connect(HandAgent::hello(1, "n1")));
  ASSERT_TRUE(n2.connect(HandAgent::hello(1, "n2")));
  v1::JobSpec spec = command("one", 1);
  spec.mutable_resources()->set_nodes(2);
  submit(spec);
  const std::string first = seen([](const View& view) {
    return view.ledger.jobs.at(JobId("one")).attempts.at(0).part_of(RankNo(0))->placed.node.str();
  });
  HandAgent& own = first == "n1" ? n1 : n2;
  HandAgent& other = first == "n1" ? n2 : n1;
  std::uint64_t number = 0;
  const auto tell = [&](HandAgent& agent, std::int64_t step, double loss) {
    v1::Heartbeat heartbeat;
    heartbeat.set_number(++number);
    v1::AttemptReading& reading = *heartbeat.add_readings();
    reading.set_job_id("one");
    reading.set_attempt(1);
    reading.add_ranks()->set_step(5);  // rank 0
    reading.mutable_ranks(0)->set_total(40);
    reading.add_samples()->set_step(step);
    reading.mutable_samples(0)->set_loss(loss);
    agent.say(heartbeat);
    v1::ConnectResponse response;
    EXPECT_TRUE(agent.until(
        [&](const v1::ConnectResponse& read) {
          return read.has_heartbeat_ack() && read.heartbeat_ack().number() == number;
        },
        response));
    (void)seen([](const View& view) { return view.now.boot; });  // it is observed
  };
  tell(own, 5, 2.5);
  tell(other, 39, 9);
  tell(own, 1'000'000, 9);
  tell(own, -3, 9);
  tell(own, 6, std::numeric_limits<double>::infinity());
  tell(own, 7, 1.5);
  std::promise<void> written;
  controller_->work.post("test", [&] { written.set_value(); });
  written.get_future().wait();
  const auto points = controller_->store->series(JobId("one"));
  ASSERT_TRUE(points);
  std::vector<std::pair<std::int64_t, bool>> steps;
  for (const logs::SeriesPoint& point : *points) steps.emplace_back(point.step, point.has_loss);
  EXPECT_EQ(steps, (std::vector<std::pair<std::int64_t, bool>>{{5, true}, {6, false}, {7, true}}));
}

// Regression: one invented Hello ended the controller, and every start of it. Now it pauses,
// durably: connected agents stay connected, nothing is accepted, and everything can be read.
TEST_F(HubTest, AControllerThatIsBehindPauses) {
  HandAgent agent(address_);
  ASSERT_TRUE(agent.connect(HandAgent::hello(2)));
  submit(command("one", 1));
  ASSERT_TRUE(agent.order("one", v1::Order::kRun));
  v1::Hello forged = HandAgent::hello(1, "n2");
  {
    HandAgent known(address_);
    ASSERT_TRUE(known.connect(forged));
  }
  forged.set_cluster_id("cluster");
  forged.set_acked_index(1'000'000);
  forged.mutable_lineage()->set_generation(3);
  forged.mutable_lineage()->set_id("other");
  HandAgent telling(address_);
  EXPECT_FALSE(telling.connect(forged));
  EXPECT_EQ(telling.status().error_code(), grpc::StatusCode::UNAVAILABLE);

  const JournalIndex before = controller_->shell->durable();
  const auto paused = [this] { return seen([](const View& view) { return view.paused; }); };
  EXPECT_THAT(
      paused(),
      HasSubstr(
          "the controller pauses: the controller's journal is older than what node 'n2' has seen"));
  EXPECT_EQ(decided(core::CancelJob{.job = JobId("one"), .reason = ""}), paused());
  v1::Fact fact;
  fact.set_job_id("one");
  fact.set_attempt(1);
  fact.mutable_started()->add_pids(42);
  agent.say(fact);
  EXPECT_TRUE(agent.heartbeat_acknowledged()) << "its ranks' leases go on";
  EXPECT_FALSE(seen([](const View& view) {
    return view.ledger.jobs.at(JobId("one")).attempts.at(0).parts.at(0).started;
  }));
  HandAgent late(address_);
  EXPECT_FALSE(late.connect(HandAgent::hello(1, "n3")));
  EXPECT_EQ(late.status().error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(controller_->shell->durable(), before);

  // The mark stays over restarts by a supervisor, without a person.
  for (int start = 0; start < 2; ++start) {
    restart();
    EXPECT_THAT(paused(), HasSubstr("is older than what node 'n2' has seen"));
    EXPECT_EQ(seen([](const View& view) { return view.ledger.jobs.size(); }), 1U);
    EXPECT_EQ(decided(core::CancelJob{.job = JobId("one"), .reason = ""}), paused());
    HandAgent again(address_);
    EXPECT_FALSE(again.connect(HandAgent::hello(2)));
    EXPECT_EQ(controller_->shell->durable(), before);
  }
  accept_loss_ = true;
  restart();
  EXPECT_EQ(paused(), "");
  EXPECT_EQ(seen([](const View& view) { return view.ledger.lineage; }),
            (Lineage{.generation = 4, .id = "lineage"}))
      << "the mark knows what the agent has seen";
  HandAgent again(address_);
  ASSERT_TRUE(again.connect(HandAgent::hello(2)));
  // The fact that was not accepted is sent again, and accepted.
  again.say(fact);
  EXPECT_TRUE(again.acknowledged());
  accept_loss_ = false;
  restart();
  EXPECT_EQ(paused(), "");
}

}  // namespace
}  // namespace muster::controller
