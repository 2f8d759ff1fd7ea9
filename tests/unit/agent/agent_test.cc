// The whole agent in this process: real worker, real ranks, real files, a fake controller on a unix
// socket.
#include <signal.h>

#include <atomic>

#include "agent/loop.h"
#include "common/io/file.h"
#include "common/io/frames.h"
#include "common/log/log.h"
#include "common/proto/proto_lineage.h"
#include "common/proto/proto_time.h"
#include "common/rpc/channel.h"
#include "muster/rundir/v1/rundir.pb.h"
#include "tests/unit/agent_link/fake_controller.h"
#include "tests/unit/agent_run/support.h"

namespace muster::agent {
namespace {

// What the fake controller wants of the node. Tests change it. It is sent on every stream at the
// Hello, and after a change with the answer to the next request.
class Wishes {
 public:
  std::optional<grpc::Status> answer(FakeController::Stream& stream,
                                     const v1::ConnectRequest& request) {
    const std::lock_guard lock(mutex_);
    if (request.has_hello()) {
      if (refusal_) return refusal_;
      v1::ConnectResponse welcome = welcome_message(cluster_, epoch_);
      *welcome.mutable_welcome()->mutable_lineage() = to_proto(lineage_);
      welcome.mutable_welcome()->mutable_heartbeat_interval()->set_seconds(0);
      welcome.mutable_welcome()->mutable_heartbeat_interval()->set_nanos(20'000'000);
      stream.Write(welcome);
      tell(stream);
      for (const v1::Order& start : starts_) {
        v1::ConnectResponse response;
        *response.mutable_orders()->add_orders() = start;
        response.mutable_orders()->set_cluster_id(cluster_);
        response.mutable_orders()->set_epoch(epoch_);
        *response.mutable_orders()->mutable_lineage() = to_proto(lineage_);
        stream.Write(response);
      }
    } else if (request.has_facts()) {
      v1::ConnectResponse response;
      index_ += static_cast<std::uint64_t>(request.facts().facts_size());
      response.mutable_fact_ack()->set_sequence(request.facts().sequence());
      response.mutable_fact_ack()->set_index(index_);
      stream.Write(response);
    } else if (acks_heartbeats_) {
      v1::ConnectResponse response;
      response.mutable_heartbeat_ack()->set_number(request.heartbeat().number());
      response.mutable_heartbeat_ack()->set_epoch(epoch_);
      stream.Write(response);
    }
    if (changed_ && !request.has_hello()) tell(stream);
    return std::nullopt;
  }
  void want(const v1::Order& order, const std::string& cluster = kCluster.str(),
            std::uint64_t epoch = 1, const Lineage& lineage = {}) {
    const std::lock_guard lock(mutex_);
    orders_.Clear();
    *orders_.add_orders() = order;
    orders_.set_cluster_id(cluster);
    orders_.set_epoch(epoch);
    *orders_.mutable_lineage() = to_proto(lineage);
    changed_ = true;
  }
  void want_everything_uploaded(const RunKey& run) {
    const std::lock_guard lock(mutex_);
    orders_.Clear();
    orders_.add_uploads()->set_job_id(run.first.str());
    orders_.mutable_uploads(0)->set_attempt(run.second.value);
    orders_.set_cluster_id(kCluster.str());
    orders_.set_epoch(1);
    *orders_.mutable_lineage() = to_proto(Lineage{});
    changed_ = true;
  }
  // Sent at each Hello, one message for each order.
  void start_each(std::vector<v1::Order> orders) {
    const std::lock_guard lock(mutex_);
    starts_ = std::move(orders);
  }
  void refuse(const grpc::Status& status) {
    const std::lock_guard lock(mutex_);
    refusal_ = status;
  }
  void stop_acks() {
    const std::lock_guard lock(mutex_);
    acks_heartbeats_ = false;
  }
  void be(const std::string& cluster, std::uint64_t epoch, const Lineage& lineage = {}) {
    const std::lock_guard lock(mutex_);
    cluster_ = cluster;
    epoch_ = epoch;
    lineage_ = lineage;
  }

 private:
  void tell(FakeController::Stream& stream) {
    v1::ConnectResponse response;
    *response.mutable_orders() = orders_;
    if (orders_.cluster_id().empty()) {
      response.mutable_orders()->set_cluster_id(cluster_);
      response.mutable_orders()->set_epoch(epoch_);
      *response.mutable_orders()->mutable_lineage() = to_proto(lineage_);
    }
    stream.Write(response);
    changed_ = false;
  }
  std::mutex mutex_;
  v1::Orders orders_;
  std::vector<v1::Order> starts_;
  std::string cluster_ = kCluster.str();
  std::uint64_t epoch_ = 1, index_ = 0;
  Lineage lineage_;
  bool changed_ = false, acks_heartbeats_ = true;
  std::optional<grpc::Status> refusal_;
};

class AgentTest : public ::testing::Test {
 protected:
  AgentTest() {
    static const auto logging = log::set_up({.daemon = "test", .level = "off"});
    EXPECT_TRUE(logging);
    address_ = "unix:" + (dir_.path() / "s").string();
    controller_ = std::make_unique<FakeController>(
        address_, [this](FakeController::Stream& stream, const v1::ConnectRequest& request) {
          return wishes_.answer(stream, request);
        });
  }
  ~AgentTest() override {
    leave();
    controller_.reset();
    EXPECT_TRUE(process::sweep_process_tag(rundir::kProcessTagVariable, run_process_tag(), 5'000));
  }
  void begin() {
    auto state = StateDir::open(dir_.path() / "state");
    ASSERT_TRUE(state) << state.error().message;
    instance_ = state->identity().instance;
    loop_ = std::make_unique<async::Loop>("test-agent");
    AgentOptions options{
        .host = {.layout = state->layout(),
                 .self = {.instance = instance_, .boot_id = *process::boot_id()},
                 .node = kNode,
                 .worker = worker_binary(),
                 .devices = {0, 1, 2, 3},
                 .min_free_bytes = 1,
                 .starts = {.before_step = before_step_}},
        .version = "test",
        .endpoint = [this]() -> Result<rpc::Endpoint> {
          return rpc::Endpoint{.address = address_};
        },
        .on_permanent = [this](const Error& error) { permanent_.set_value(error.message); },
        .clock = clock_};
    agent_ = std::make_unique<Agent>(*loop_, std::move(*state), std::move(options));
    auto started = agent_->start();
    ASSERT_TRUE(started) << started.error().message;
  }
  void leave() {
    if (!agent_) return;
    agent_->stop();
    loop_->stop();
    agent_.reset();
    loop_.reset();
  }
  v1::Order run_order(const std::string& script, std::uint32_t ranks = 1) {
    v1::Order order;
    order.set_job_id(kRun.first.str());
    order.set_attempt(kRun.second.value);
    *order.mutable_run() = shell_launch(dir_.path(), script, ranks);
    order.mutable_run()->set_instance(instance_.str());
    order.mutable_run()->mutable_watching()->set_grammar("none");
    order.mutable_run()->mutable_watching()->set_layout("none");
    return order;
  }
  static v1::Order stop_order() {
    v1::Order order;
    order.set_job_id(kRun.first.str());
    order.set_attempt(kRun.second.value);
    order.mutable_stop();
    return order;
  }
  std::optional<v1::Fact> fact(v1::Fact::WhatCase what) {
    auto request = controller_->wait_for([&](const v1::ConnectRequest& heard) {
      return heard.has_facts() &&
             std::ranges::any_of(heard.facts().facts(),
                                 [&](const v1::Fact& one) { return one.what_case() == what; });
    });
    if (!request) return std::nullopt;
    return *std::ranges::find_if(request->facts().facts(),
                                 [&](const v1::Fact& one) { return one.what_case() == what; });
  }
  [[nodiscard]] std::filesystem::path run_dir() const {
    return rundir::AgentLayout(dir_.path() / "state").run(kRun.first, kRun.second);
  }

  TempDir dir_;
  std::string address_;
  Wishes wishes_;
  std::unique_ptr<FakeController> controller_;
  InstanceId instance_;
  std::unique_ptr<async::Loop> loop_;
  std::unique_ptr<Agent> agent_;
  std::promise<std::string> permanent_;
  const Clock* clock_ = &system_clock();
  StepHook before_step_;
};

// Its boot time hardly moves. A failed exit waits for its evidence for at most a second, and a busy
// machine may need longer to run the thread that finds the evidence.
class SlowClock final : public Clock {
 public:
  [[nodiscard]] Now now() const override {
    Now now = system_clock().now();
    now.boot = begin_ + (now.boot - begin_) / 1000;
    return now;
  }

 private:
  const BootTime begin_ = system_clock().now().boot;
};

TEST_F(AgentTest, RunsAnOrderAndReportsItToTheEnd) {
  begin();
  wishes_.want(run_order("echo 'RuntimeError: boom' >&2; exit 3", 2));
  const auto started = fact(v1::Fact::kStarted);
  ASSERT_TRUE(started);
  EXPECT_EQ(started->started().pids_size(), 2);
  const auto exited = fact(v1::Fact::kExited);
  ASSERT_TRUE(exited);
  EXPECT_EQ(exited->exited().code(), 3);
  ASSERT_TRUE(fact(v1::Fact::kSwept));
  // Folds what was received: each fact once, in a sensible order, with sequence numbers without
  // holes.
  std::uint64_t sequence = 0;
  std::multiset<int> kinds;
  bool swept = false;
  for (const auto& request : controller_->heard()) {
    for (const auto& one : request.facts().facts()) {
      EXPECT_FALSE(swept) << "nothing comes after swept";
      kinds.insert(one.what_case());
      swept = one.has_swept();
    }
    sequence += static_cast<std::uint64_t>(request.facts().facts_size());
    if (request.has_facts()) {
      EXPECT_EQ(request.facts().sequence(), sequence);
    }
  }
  EXPECT_EQ(kinds, (std::multiset<int>{v1::Fact::kStarted, v1::Fact::kExited, v1::Fact::kExited,
                                       v1::Fact::kSwept}));
}

TEST_F(AgentTest, TheNextIncarnationReportsTheSameFactsAgain) {
  static const SlowClock clock;
  clock_ = &clock;
  begin();
  wishes_.want(run_order("echo 'ValueError: bad'; exit 1"));
  ASSERT_TRUE(fact(v1::Fact::kSwept));
  const auto facts_sent = [&] {
    std::vector<std::string> facts;
    for (const auto& request : controller_->heard()) {
      for (v1::Fact one : request.facts().facts()) {
        one.clear_age();  // the age has grown
        facts.push_back(one.SerializeAsString());
      }
    }
    return facts;
  };
  const auto first = facts_sent();
  leave();
  begin();
  ASSERT_TRUE(controller_->wait_for([](const v1::ConnectRequest& heard) {
    return heard.has_hello() && heard.hello().present_size() == 1 &&
           heard.hello().present(0).swept();
  }));
  // The facts of the second incarnation are one message, sent after its Welcome.
  std::size_t facts = 0;
  ASSERT_TRUE(controller_->wait_for([&](const v1::ConnectRequest& heard) {
    facts += static_cast<std::size_t>(heard.facts().facts_size());
    return facts == 2 * first.size();
  }));
  const auto all = facts_sent();
  EXPECT_EQ(
      std::vector<std::string>(all.begin() + static_cast<std::ptrdiff_t>(first.size()), all.end()),
      first);
}

TEST_F(AgentTest, AgentDeathDisturbsNoRank) {
  begin();
  wishes_.want(run_order("exec sleep 1000"));
  const auto started = fact(v1::Fact::kStarted);
  ASSERT_TRUE(started);
  const auto rank = static_cast<pid_t>(started->started().pids(0));
  const process::ProcessId before = process::identify(rank).value();
  leave();
  EXPECT_EQ(process::identify(rank).value(), before);
  begin();
  ASSERT_TRUE(controller_->wait_for([](const v1::ConnectRequest& heard) {
    return heard.has_hello() && heard.hello().present_size() == 1;
  }));
  EXPECT_EQ(process::identify(rank).value(), before);
  wishes_.want(stop_order());
  const auto exited = fact(v1::Fact::kExited);
  ASSERT_TRUE(exited);
  EXPECT_TRUE(exited->exited().stop_requested());
  const auto swept = fact(v1::Fact::kSwept);
  ASSERT_TRUE(swept);
  EXPECT_EQ(swept->swept().why(), v1::SWEPT_WHY_STOPPED);
}

// A power cut may take the launch record, which says where to. The job waits for an answer.
TEST_F(AgentTest, AnUploadThatTheRunKnowsNothingOfEndsWithAProblem) {
  begin();
  wishes_.want(run_order("exit 0"));
  ASSERT_TRUE(fact(v1::Fact::kSwept));
  wishes_.want_everything_uploaded(kRun);
  const auto uploaded = fact(v1::Fact::kOutputsUploaded);
  ASSERT_TRUE(uploaded);
  EXPECT_EQ(uploaded->outputs_uploaded().problem(), "the node has lost the run's launch record");
  EXPECT_FALSE(uploaded->outputs_uploaded().has_step());
}

TEST_F(AgentTest, StopBeforeRunNeverStarts) {
  begin();
  wishes_.want(stop_order());
  const auto swept = fact(v1::Fact::kSwept);
  ASSERT_TRUE(swept);
  EXPECT_EQ(swept->swept().why(), v1::SWEPT_WHY_NEVER_STARTED);
  wishes_.want(run_order("touch ran"));
  v1::Order forget = stop_order();
  forget.mutable_forget();
  // The run order has been handled (by doing nothing) when a later order has: the answer to the
  // later one is sent after it.
  ASSERT_TRUE(controller_->wait_for([n = 0](const v1::ConnectRequest& heard) mutable {
    return heard.has_heartbeat() && ++n == 4;
  }));
  wishes_.want(forget);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  int heartbeats = 4;
  while (std::filesystem::exists(run_dir()) && std::chrono::steady_clock::now() < deadline) {
    ++heartbeats;
    controller_->wait_for([n = 0, heartbeats](const v1::ConnectRequest& heard) mutable {
      return heard.has_heartbeat() && ++n == heartbeats;
    });
  }
  EXPECT_FALSE(std::filesystem::exists(run_dir()));
  EXPECT_FALSE(std::filesystem::exists(dir_.path() / "ran"));
}

TEST_F(AgentTest, MissingScriptIsAStartFailureWithItsSentence) {
  begin();
  v1::Order order = run_order("x");
  order.mutable_run()->mutable_ranks(0)->clear_argv();
  order.mutable_run()->mutable_ranks(0)->add_argv("sh");
  order.mutable_run()->mutable_ranks(0)->add_argv("missing.sh");
  wishes_.want(order);
  const auto failed = fact(v1::Fact::kStartFailed);
  ASSERT_TRUE(failed);
  EXPECT_EQ(failed->start_failed().why(), v1::START_FAILURE_LAUNCH);
  EXPECT_NE(failed->start_failed().text().find("missing.sh"), std::string::npos);
  ASSERT_TRUE(fact(v1::Fact::kSwept));
}

TEST_F(AgentTest, KilledWorkerEndsSwept) {
  begin();
  wishes_.want(run_order("exec sleep 1000", 2));
  const auto started = fact(v1::Fact::kStarted);
  ASSERT_TRUE(started);
  ::kill(static_cast<pid_t>(started->started().worker_pid()), SIGKILL);
  const auto swept = fact(v1::Fact::kSwept);
  ASSERT_TRUE(swept);
  EXPECT_EQ(swept->swept().why(), v1::SWEPT_WHY_WORKER_DIED);
  const auto lost = fact(v1::Fact::kExited);
  ASSERT_TRUE(lost);
  EXPECT_TRUE(lost->exited().lost());
  EXPECT_EQ(living(), 0U);
}

// Regression: a job was archived without its run on this node. The order to forget the run arrived
// before the run's end, and the end was never reported. The controller kept other jobs off the node
// until the agent reconnected.
TEST_F(AgentTest, WhatIsForgottenAsSoonAsItIsSweptIsReportedBefore) {
  begin();
  v1::Order run = run_order("exec sleep 1000");
  run.mutable_run()->mutable_watching()->set_layout("megatron");
  run.mutable_run()->mutable_watching()->set_save_dir((dir_.path() / "save").string());
  wishes_.want(run);
  const auto started = fact(v1::Fact::kStarted);
  ASSERT_TRUE(started);
  v1::Order forget = stop_order();
  forget.mutable_forget();
  wishes_.want(forget);
  ::kill(static_cast<pid_t>(started->started().worker_pid()), SIGKILL);
  EXPECT_TRUE(fact(v1::Fact::kSwept));
}

TEST_F(AgentTest, EvidenceAndSuccessComeWithTheExit) {
  static const SlowClock clock;
  clock_ = &clock;
  begin();
  v1::Order order = run_order(
      "if [ $RANK = 0 ]; then echo training done; exit 0; fi; echo 'ValueError: bad batch' >&2; "
      "exit 1",
      2);
  order.mutable_run()->mutable_watching()->set_success_regex("training done");
  wishes_.want(order);
  ASSERT_TRUE(fact(v1::Fact::kSwept));
  std::map<std::uint32_t, v1::RankExited> exits;
  for (const auto& request : controller_->heard()) {
    for (const auto& one : request.facts().facts()) {
      if (one.has_exited()) exits[one.exited().rank()] = one.exited();
    }
  }
  EXPECT_TRUE(exits.at(0).success_seen());
  EXPECT_FALSE(exits.at(1).success_seen());
  EXPECT_NE(exits.at(1).evidence().find("ValueError: bad batch"), std::string::npos);
}

// Regression: an agent that had no free descriptors when the run began never read the run's logs
// later. There was no progress and no success, and the run was never collected.
TEST_F(AgentTest, ALogThatCouldNotBeWatchedIsTriedAgain) {
  begin();
  const auto in_the_way = rundir::RunLayout(run_dir()).rank_cursor(0);
  std::filesystem::create_directories(in_the_way);
  v1::Order order = run_order("while [ -d " + in_the_way.string() +
                              " ]; do sleep 0.01; done; echo training done");
  order.mutable_run()->mutable_watching()->set_success_regex("training done");
  wishes_.want(order);
  ASSERT_TRUE(fact(v1::Fact::kStarted));
  std::filesystem::remove(in_the_way);
  const auto exited = fact(v1::Fact::kExited);
  ASSERT_TRUE(exited);
  EXPECT_TRUE(exited->exited().success_seen());
}

// Regression: a rank ended right after its save. The sweep was reported before the checkpoint, and
// the next attempt began from an older one.
TEST_F(AgentTest, WhatWasSavedLastIsReportedBeforeTheSweep) {
  begin();
  // The least that the layout accepts as a whole archive.
  std::string whole("PK\x01\x02", 4);
  whole.resize(46);
  whole += std::string("PK\x05\x06", 4) + std::string(4, '\0') +
           std::string("\x01\0\x01\0\x2e\0\0\0\0\0\0\0\0\0", 14);
  dir_.write("shard", whole);
  v1::Order order = run_order(
      "mkdir -p save/iter_0000010/mp_rank_00 && cp shard "
      "save/iter_0000010/mp_rank_00/model_optim_rng.pt && printf 10 > "
      "save/latest_checkpointed_iteration.txt; kill -KILL $$");
  order.mutable_run()->mutable_watching()->set_layout("megatron");
  order.mutable_run()->mutable_watching()->set_save_dir((dir_.path() / "save").string());
  wishes_.want(order);
  ASSERT_TRUE(fact(v1::Fact::kSwept));
  bool saved = false, swept = false;
  for (const auto& request : controller_->heard()) {
    for (const auto& reading : request.heartbeat().readings()) {
      for (const auto& shard : reading.shards())
        saved = saved || (shard.step() == 10 && shard.finished() && shard.sealed());
    }
    for (const auto& one : request.facts().facts()) {
      swept = swept || one.has_swept();
      EXPECT_TRUE(!one.has_swept() || saved) << "swept is heard, the checkpoint is not yet";
    }
  }
  EXPECT_TRUE(swept);
}

TEST_F(AgentTest, GraceEndsWhenHeartbeatsAreNoLongerAcknowledged) {
  begin();
  v1::Order order = run_order("exec sleep 1000");
  order.mutable_run()->mutable_orphan_grace()->set_seconds(2);
  wishes_.want(order);
  const auto started = fact(v1::Fact::kStarted);
  ASSERT_TRUE(started);
  // Heartbeats for three seconds: without renewal, the grace of two seconds would be over.
  const WallTime end = to_wall(started->at()) + std::chrono::seconds(4);
  ASSERT_TRUE(controller_->wait_for([&](const v1::ConnectRequest& heard) {
    return heard.has_heartbeat() && system_clock().now().wall >= end;
  }));
  EXPECT_GT(living(), 0U);
  wishes_.stop_acks();
  const auto swept = fact(v1::Fact::kSwept);
  ASSERT_TRUE(swept);
  EXPECT_EQ(swept->swept().why(), v1::SWEPT_WHY_ORPHANED);
}

// At each reading, the wall clock differs by hours.
class SetClock final : public Clock {
 public:
  [[nodiscard]] Now now() const override {
    Now now = system_clock().now();
    now.wall += std::chrono::hours(readings_.fetch_add(1) % 2 == 0 ? 24 : -24);
    return now;
  }

 private:
  mutable std::atomic<std::uint64_t> readings_ = 0;
};

// Somebody sets the node's clock while a job runs: leases, the bounds of facts that wait for a log,
// heartbeats and stops work as before.
TEST_F(AgentTest, AClockThatIsSetChangesNothing) {
  static const SetClock clock;
  clock_ = &clock;
  begin();
  v1::Order order = run_order("if [ $RANK = 0 ]; then exec sleep 1000; fi; echo training done", 2);
  order.mutable_run()->mutable_watching()->set_success_regex("training done");
  order.mutable_run()->mutable_orphan_grace()->set_seconds(5);
  wishes_.want(order);
  const auto exited = fact(v1::Fact::kExited);
  ASSERT_TRUE(exited);
  EXPECT_TRUE(exited->exited().success_seen());
  EXPECT_TRUE(exited->has_age());
  EXPECT_LT(exited->age().seconds(), 60)
      << "how long ago it was is told by the clock that nobody sets";
  ASSERT_TRUE(controller_->wait_for([n = 0](const v1::ConnectRequest& heard) mutable {
    return heard.has_heartbeat() && ++n == 20;
  }));
  EXPECT_GT(living(), 0U);
  wishes_.want(stop_order());
  const auto swept = fact(v1::Fact::kSwept);
  ASSERT_TRUE(swept);
  EXPECT_EQ(swept->swept().why(), v1::SWEPT_WHY_STOPPED);
  leave();
}

TEST_F(AgentTest, OrdersOfAnotherClusterAnotherLineageOrALowerEpochAreIgnored) {
  wishes_.be(kCluster.str(), 5);
  begin();
  ASSERT_TRUE(
      controller_->wait_for([](const v1::ConnectRequest& heard) { return heard.has_heartbeat(); }));
  wishes_.want(run_order("touch ran"), kCluster.str(), 4);
  ASSERT_TRUE(controller_->wait_for([n = 0](const v1::ConnectRequest& heard) mutable {
    return heard.has_heartbeat() && ++n == 3;
  }));
  wishes_.want(run_order("touch ran"), "c-other", 5);
  ASSERT_TRUE(controller_->wait_for([n = 0](const v1::ConnectRequest& heard) mutable {
    return heard.has_heartbeat() && ++n == 5;
  }));
  wishes_.want(run_order("touch ran"), kCluster.str(), 5, {.generation = 1, .id = "a"});
  ASSERT_TRUE(controller_->wait_for([n = 0](const v1::ConnectRequest& heard) mutable {
    return heard.has_heartbeat() && ++n == 7;
  }));
  EXPECT_FALSE(std::filesystem::exists(run_dir()));
  // The epoch outlives this incarnation: a controller with a lower one is refused when it answers
  // the Hello.
  leave();
  wishes_.be(kCluster.str(), 4);
  begin();
  const auto hello = controller_->wait_for(
      [n = 0](const v1::ConnectRequest& heard) mutable { return heard.has_hello() && ++n == 2; });
  ASSERT_TRUE(hello);
  EXPECT_EQ(hello->hello().highest_epoch(), 5U);
  EXPECT_EQ(hello->hello().cluster_id(), kCluster.str());
}

// Also of a start that is not being set up, and only as long as it is one.
TEST_F(AgentTest, HeartbeatsHaveTheStepThatAStartIsAt) {
  std::promise<void> go;
  before_step_ = [back = go.get_future().share()](const RunKey&, StartStep step) {
    if (step == StartStep::Files) back.wait();
  };
  begin();
  wishes_.want(run_order("exec sleep 1000"));
  EXPECT_TRUE(controller_->wait_for([](const v1::ConnectRequest& heard) {
    return std::ranges::any_of(heard.heartbeat().readings(), [](const v1::AttemptReading& reading) {
      return reading.job_id() == kRun.first.str() && reading.start_step() == "files" &&
             !reading.setting_up();
    });
  }));
  go.set_value();
  EXPECT_TRUE(controller_->wait_for([started = false](const v1::ConnectRequest& heard) mutable {
    started = started || std::ranges::any_of(heard.facts().facts(), &v1::Fact::has_started);
    return started && heard.has_heartbeat() &&
           std::ranges::all_of(heard.heartbeat().readings(), [](const v1::AttemptReading& reading) {
             return reading.start_step().empty();
           });
  }));
  wishes_.want(stop_order());
  EXPECT_TRUE(fact(v1::Fact::kSwept));
}

// Otherwise, after a kill in between, the next incarnation would obey a controller that had been
// replaced.
TEST_F(AgentTest, AnEpochIsOnDiskBeforeItsOrdersAreObeyed) {
  begin();
  ASSERT_TRUE(
      controller_->wait_for([](const v1::ConnectRequest& heard) { return heard.has_heartbeat(); }));
  leave();
  std::promise<std::uint64_t> on_disk;
  before_step_ = [&](const RunKey&, StartStep step) {
    if (step != StartStep::Check) return;
    rundir::v1::Identity record;
    const auto bytes =
        io::read_file(rundir::AgentLayout(dir_.path() / "state").identity(), 64 << 10);
    if (const auto decoded = io::decode_frames(*bytes); decoded.payloads.size() == 1)
      record.ParseFromString(std::string(decoded.payloads[0]));
    on_disk.set_value(record.highest_epoch());
  };
  wishes_.be(kCluster.str(), 7);
  wishes_.want(run_order("exit 0"), kCluster.str(), 7);
  begin();
  auto found = on_disk.get_future();
  ASSERT_EQ(found.wait_for(std::chrono::seconds(20)), std::future_status::ready);
  EXPECT_EQ(found.get(), 7U);
  EXPECT_TRUE(fact(v1::Fact::kSwept));
}

// A new lineage may have a lower epoch. Otherwise, after a kill in between, the next incarnation
// would refuse this controller and obey an old one.
TEST_F(AgentTest, ANewLineageIsOnDiskBeforeItsOrdersAreObeyed) {
  wishes_.be(kCluster.str(), 5);
  begin();
  ASSERT_TRUE(
      controller_->wait_for([](const v1::ConnectRequest& heard) { return heard.has_heartbeat(); }));
  leave();
  std::promise<Result<Identity>> on_disk;
  before_step_ = [&](const RunKey&, StartStep step) {
    if (step == StartStep::Check)
      on_disk.set_value(read_identity(rundir::AgentLayout(dir_.path() / "state")));
  };
  const Lineage lineage{.generation = 1, .id = "a"};
  wishes_.be(kCluster.str(), 2, lineage);
  wishes_.want(run_order("exit 0"), kCluster.str(), 2, lineage);
  begin();
  auto future = on_disk.get_future();
  ASSERT_EQ(future.wait_for(std::chrono::seconds(20)), std::future_status::ready);
  const auto found = future.get();
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->lineage, lineage);
  EXPECT_EQ(found->highest_epoch, Epoch(2));
  EXPECT_EQ(found->acked, JournalIndex(0));
  EXPECT_TRUE(fact(v1::Fact::kSwept));
  leave();
  begin();
  const auto hello = controller_->wait_for(
      [n = 0](const v1::ConnectRequest& heard) mutable { return heard.has_hello() && ++n == 3; });
  ASSERT_TRUE(hello);
  EXPECT_EQ(to_lineage(hello->hello().lineage()), lineage);
  EXPECT_EQ(hello->hello().highest_epoch(), 2U);
}

// Regression: after a controller's restart, 3 of 4 queued jobs failed with "did not start its part
// within 1m" while other programs kept the disk busy. Their starts arrived, each in a message of
// its own, while the agent wrote the new epoch, and the agent kept only the last one.
TEST_F(AgentTest, StartsThatComeWhileTheEpochIsWrittenDownAllStart) {
  begin();
  ASSERT_TRUE(
      controller_->wait_for([](const v1::ConnectRequest& heard) { return heard.has_heartbeat(); }));
  leave();
  wishes_.be(kCluster.str(), 7);
  std::vector<v1::Order> starts;
  for (const char* job : {"job-a", "job-b", "job-c", "job-d"}) {
    v1::Order order = run_order("exit 0");
    order.set_job_id(job);
    order.mutable_run()->set_job_id(job);
    starts.push_back(order);
  }
  wishes_.start_each(starts);
  begin();
  std::set<std::string> swept;
  EXPECT_TRUE(controller_->wait_for([&](const v1::ConnectRequest& heard) {
    for (const v1::Fact& one : heard.facts().facts()) {
      if (one.has_swept() && one.swept().why() == v1::SWEPT_WHY_ENDED) swept.insert(one.job_id());
    }
    return swept.size() == starts.size();
  })) << swept.size()
      << " of them ran";
}

TEST_F(AgentTest, AnotherClustersAgentGivesUpWithTheSentence) {
  begin();
  ASSERT_TRUE(
      controller_->wait_for([](const v1::ConnectRequest& heard) { return heard.has_heartbeat(); }));
  leave();
  const std::string text =
      "connecting node 'n1': it belongs to cluster '" + kCluster.str() +
      "', this is 'c-2'; give the agent another state directory to move it here";
  wishes_.refuse({grpc::StatusCode::PERMISSION_DENIED, text});
  begin();
  auto permanent = permanent_.get_future();
  ASSERT_EQ(permanent.wait_for(std::chrono::seconds(10)), std::future_status::ready);
  EXPECT_EQ(permanent.get(), text);
}

}  // namespace
}  // namespace muster::agent
