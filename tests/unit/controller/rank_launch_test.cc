// What a rank is launched with, as clients see it: files, auxiliary processes, the source of every
// word; and the rank table alone.
#include <gmock/gmock.h>

#include "common/digest/sha256.h"
#include "tests/unit/controller/cluster_fixture.h"

namespace muster::controller {
namespace {

using testing::HasSubstr;

class RankLaunch : public ClusterTest {
 protected:
  static v1::JobSpec mindformers(const std::string& name, std::uint32_t devices = 2,
                                 v1::Launcher launcher = v1::LAUNCHER_RANKTABLE) {
    v1::JobSpec made = spec(name);
    made.set_engine("mindformers");
    made.mutable_launch()->clear_run();
    made.mutable_launch()->set_config("/srv/run.yaml");
    made.mutable_launch()->set_launcher(launcher);
    made.mutable_resources()->set_devices(devices);
    made.mutable_resources()->set_type("ascend");
    return made;
  }
  static v1::Hello hello() {
    v1::Hello hello = HandAgent::hello("n1", "i1");
    for (v1::Device& device : *hello.mutable_inventory()->mutable_devices()) {
      device.set_type("ascend910b");
      device.set_physical_id(device.id() + 4);
      device.add_addresses("192.168.1." + std::to_string(device.id()));
    }
    return hello;
  }
  // Submits, and waits until the order has arrived: then the job is placed.
  void placed(HandAgent& agent, const v1::JobSpec& spec) {
    v1::SubmitJobRequest request;
    *request.mutable_spec() = spec;
    v1::SubmitJobResponse response;
    const grpc::Status status = stub_->SubmitJob(context().get(), request, &response);
    ASSERT_TRUE(status.ok()) << status.error_message();
    v1::ConnectResponse order;
    ASSERT_TRUE(agent.until(
        [](const v1::ConnectResponse& answer) {
          return answer.has_orders() && answer.orders().orders_size() > 0 &&
                 answer.orders().orders(0).has_run();
        },
        order));
    launch_ = order.orders().orders(0).run();
  }
  void join(HandAgent& agent) {
    agent.say(hello());
    v1::ConnectResponse welcome;
    ASSERT_TRUE(agent.until([](const v1::ConnectResponse& answer) { return answer.has_welcome(); },
                            welcome));
  }
  grpc::Status table(const std::string& job, v1::GetRankTableResponse& response,
                     std::uint32_t attempt = 0) {
    v1::GetRankTableRequest request;
    request.set_job(job);
    request.set_attempt(attempt);
    return stub_->GetRankTable(context().get(), request, &response);
  }

  v1::NodeLaunch launch_;
};

TEST_F(RankLaunch, TheTableIsShownAsTheNodeHasIt) {
  HandAgent agent(channel_);
  join(agent);
  placed(agent, mindformers("one"));
  ASSERT_EQ(launch_.files_size(), 1);
  v1::GetRankTableResponse shown;
  const grpc::Status status = table("one", shown);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(shown.content(), launch_.files(0).content());
  EXPECT_EQ(shown.sha256(), launch_.files(0).sha256());
  EXPECT_EQ(shown.name(), "hccl_1s_2p.json");
  EXPECT_EQ(shown.attempt(), 1u);
  EXPECT_EQ(job("one").attempts(0).table_sha256(), shown.sha256());

  v1::GetRankLaunchRequest request;
  request.set_job("one");
  request.set_rank(1);
  v1::GetRankLaunchResponse launch;
  ASSERT_TRUE(stub_->GetRankLaunch(context().get(), request, &launch).ok());
  ASSERT_EQ(launch.files_size(), 1);
  EXPECT_EQ(launch.files(0).node(), "n1");
  EXPECT_EQ(launch.files(0).path(), launch_.files(0).path());
  EXPECT_EQ(launch.files(0).mode(), 0644u);
  EXPECT_EQ(launch.files(0).size(), shown.content().size());
  EXPECT_EQ(launch.files(0).content(), shown.content());
  EXPECT_EQ(launch.files(0).source(), "rank table");
  ASSERT_EQ(launch.launch().argv_sources_size(), launch.launch().argv_size());
  EXPECT_EQ(launch.launch().argv_sources(0), "runtime.python");
  EXPECT_EQ(launch.launch().argv_sources(launch.launch().argv_size() - 1), "engine mindformers");
}

TEST_F(RankLaunch, WhereThereIsNoTableTheReasonIsGiven) {
  HandAgent agent(channel_);
  join(agent);
  v1::GetRankTableResponse shown;
  const auto answer = [&](const std::string& job, std::uint32_t attempt = 0) {
    const grpc::Status status = table(job, shown, attempt);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
    return status.error_message();
  };
  EXPECT_THAT(answer("nobody"), HasSubstr("nobody"));
  placed(agent, mindformers("msrun", 2, v1::LAUNCHER_MSRUN));
  EXPECT_THAT(answer("msrun"),
              HasSubstr(" attempt 1: it has none: with launch.launcher: msrun ranks "
                        "find each other by the scheduler"));
  EXPECT_THAT(answer("msrun", 3), HasSubstr("showing the rank table of job '"));
  EXPECT_THAT(answer("msrun", 3), HasSubstr("': it has no attempt 3"));
  ASSERT_EQ(launch_.auxiliaries_size(), 1);
  v1::GetRankLaunchRequest request;
  request.set_job("msrun");
  v1::GetRankLaunchResponse launch;
  ASSERT_TRUE(stub_->GetRankLaunch(context().get(), request, &launch).ok());
  ASSERT_EQ(launch.auxiliaries_size(), 1);
  EXPECT_EQ(launch.auxiliaries(0).name(), "scheduler");
  EXPECT_EQ(launch.auxiliaries(0).argv_size(), launch_.auxiliaries(0).argv_size());
  EXPECT_EQ(static_cast<std::size_t>(launch.auxiliaries(0).env_size()),
            launch_.auxiliaries(0).env().size());
  EXPECT_EQ(launch.files_size(), 0);
}

TEST_F(RankLaunch, OtherEnginesAndSingleRanksHaveNone) {
  HandAgent agent(channel_);
  join(agent);
  v1::GetRankTableResponse shown;
  placed(agent, mindformers("alone", 1));
  EXPECT_THAT(table("alone", shown).error_message(), HasSubstr("a single rank needs none"));
  v1::JobSpec other = spec("other");
  other.mutable_resources()->set_type("ascend");
  placed(agent, other);
  EXPECT_THAT(table("other", shown).error_message(),
              HasSubstr("ranks of engine command find each other without one"));
}

// Regression: on two nodes with two devices each, `muster env JOB --rank 1` showed the script of
// the second node. Nothing showed rank 1 of the training, which is inside the script of the first.
TEST_F(RankLaunch, ANumberOfAScriptAndOfARankInsideAnotherScript) {
  HandAgent one(channel_), other(channel_);
  const auto come = [](HandAgent& agent, const std::string& node, const std::string& instance) {
    agent.say(HandAgent::hello(node, instance));
    v1::ConnectResponse welcome;
    ASSERT_TRUE(agent.until([](const v1::ConnectResponse& answer) { return answer.has_welcome(); },
                            welcome));
  };
  come(one, "n1", "i1");
  come(other, "n2", "i2");
  v1::JobSpec script = spec("two");
  script.mutable_launch()->set_per(v1::LAUNCH_PER_NODE);
  script.mutable_resources()->set_nodes(2);
  script.mutable_resources()->set_devices(2);
  placed(one, script);
  const v1::Job shown = job("two");
  ASSERT_EQ(shown.attempts_size(), 1);
  ASSERT_EQ(shown.attempts(0).nodes_size(), 2);
  const std::string first = shown.attempts(0).nodes(0).node(),
                    second = shown.attempts(0).nodes(1).node();
  v1::GetRankLaunchResponse launch;
  const auto ask = [&](std::uint32_t rank, bool training) {
    v1::GetRankLaunchRequest request;
    request.set_job("two");
    request.set_rank(rank);
    request.set_training(training);
    launch.Clear();
    return stub_->GetRankLaunch(context().get(), request, &launch);
  };
  ASSERT_TRUE(ask(1, false).ok());
  EXPECT_EQ(launch.launch().node(), second);
  EXPECT_EQ(launch.launch().training_node(), first);
  ASSERT_TRUE(ask(1, true).ok());
  EXPECT_EQ(launch.launch().node(), first);
  EXPECT_EQ(launch.launch().rank(), 1U);
  EXPECT_EQ(launch.launch().training_node(), "");
  ASSERT_TRUE(ask(0, false).ok());
  EXPECT_EQ(launch.launch().node(), first);
  EXPECT_EQ(launch.launch().training_node(), "") << "it is inside the script of its own number";
  const grpc::Status none = ask(5, false);
  EXPECT_EQ(none.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_THAT(none.error_message(),
              HasSubstr("': attempt 1 has ranks 0..1, and inside the scripts ranks 0..3 of the "
                        "training"));
  EXPECT_THAT(ask(4, true).error_message(), HasSubstr("showing rank 4 of the training of job '"));
}

TEST_F(RankLaunch, APlanShowsFilesOnceAndTheirContent) {
  v1::PlanJobRequest request;
  *request.mutable_spec() = mindformers("one", 8);
  request.mutable_spec()->mutable_resources()->set_nodes(3);
  v1::PlanJobResponse plan;
  grpc::Status status = stub_->PlanJob(context().get(), request, &plan);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(plan.ranks_size(), 24);
  ASSERT_EQ(plan.files_size(), 3);
  EXPECT_EQ(sha256_hex(plan.files(0).content()), plan.files(0).sha256());
  EXPECT_EQ(plan.files(2).sha256(), plan.files(0).sha256());
  EXPECT_EQ(plan.files(2).content(), "") << "the same bytes as the first's";
  EXPECT_EQ(plan.files(2).size(), plan.files(0).content().size());
  request.add_ranks(8);
  ASSERT_TRUE(stub_->PlanJob(context().get(), request, &plan).ok());
  ASSERT_EQ(plan.files_size(), 1) << "of the nodes of the ranks that were asked for";
  EXPECT_EQ(plan.files(0).node(), "node-1");
  EXPECT_NE(plan.files(0).content(), "");
  request.clear_ranks();
  request.add_ranks(0);
  request.mutable_spec()->mutable_launch()->set_launcher(v1::LAUNCHER_MSRUN);
  ASSERT_TRUE(stub_->PlanJob(context().get(), request, &plan).ok());
  EXPECT_EQ(plan.files_size(), 0);
  ASSERT_EQ(plan.auxiliaries_size(), 1);
  EXPECT_EQ(plan.auxiliaries(0).node(), "node-0");
}

}  // namespace
}  // namespace muster::controller
