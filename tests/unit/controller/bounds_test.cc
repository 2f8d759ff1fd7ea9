#include "common/rpc/channel.h"
#include "tests/unit/controller/cluster_fixture.h"

namespace muster::controller {
namespace {

using Bounds = ClusterTest;

// Regression: anybody's cancel with a reason of 12 MiB went into the journal, and nobody could read
// the list of jobs any more.
TEST_F(Bounds, AReasonIsASentence) {
  submitted("one");
  v1::CancelJobRequest cancel;
  cancel.set_job("one");
  cancel.set_reason(std::string(8 << 20, 'r'));
  v1::CancelJobResponse cancelled;
  const grpc::Status refused = stub_->CancelJob(context().get(), cancel, &cancelled);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(refused.error_message(),
            "cancelling job 'one': reason has 8388608 bytes, at most 1024");
  EXPECT_EQ(job("one").phase(), v1::JOB_PHASE_QUEUED);
  v1::DeclareNodeDeadRequest dead;
  dead.set_name("n1");
  dead.set_reason(std::string(1'025, 'r'));
  v1::DeclareNodeDeadResponse declared;
  const grpc::Status kept = node_stub_->DeclareNodeDead(context().get(), dead, &declared);
  EXPECT_EQ(kept.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(kept.error_message(), "declaring node 'n1' dead: reason has 1025 bytes, at most 1024");
  cancel.set_reason("a\x1b]0;title\a");
  EXPECT_EQ(stub_->CancelJob(context().get(), cancel, &cancelled).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
  cancel.set_reason(std::string(1'024, 'r'));
  ASSERT_TRUE(stub_->CancelJob(context().get(), cancel, &cancelled).ok());
  EXPECT_EQ(job("one").verdict().reason(), "cancelled by owner: " + cancel.reason());
}

TEST_F(Bounds, APathThatATerminalWouldObeyIsNotTaken) {
  v1::SubmitJobRequest request;
  *request.mutable_spec() = spec("one");
  request.mutable_spec()->set_output_dir("/tmp/\x1b]0;title\a");
  v1::SubmitJobResponse response;
  const grpc::Status refused = stub_->SubmitJob(context().get(), request, &response);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_NE(refused.error_message().find("outputs.dir: has control characters in it"),
            std::string::npos)
      << refused.error_message();
}

// Regression: beyond some 500,000 steps the curve was longer than a message, and was silently left
// out.
TEST_F(Bounds, TheCurveOfALongTrainingIsThinned) {
  const std::string id = submitted("one");
  std::vector<logs::SeriesPoint> points;
  for (std::int64_t step = 1; step <= 600'000; ++step)
    points.push_back({.at = WallTime(std::chrono::seconds(1'700'000'000 + step)),
                      .attempt = AttemptNo(1),
                      .step = step,
                      .loss = 1.0 / static_cast<double>(step),
                      .has_loss = true});
  ASSERT_TRUE(controller_->store->add_points(JobId(id), points));
  grpc::ChannelArguments plain;  // a client of another language: 4 MiB
  const auto stub = v1::JobService::NewStub(
      grpc::CreateCustomChannel(server_->bound()[0], grpc::InsecureChannelCredentials(), plain));
  v1::ReadSeriesRequest request;
  request.set_job("one");
  v1::ReadSeriesResponse response;
  const grpc::Status status = stub->ReadSeries(context().get(), request, &response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  ASSERT_EQ(response.points_size(), 50'000);
  EXPECT_EQ(response.points(0).step(), 1);
  EXPECT_EQ(response.points(49'999).step(), 600'000);
}

TEST_F(Bounds, ManyNodesAreListedBriefly) {
  const std::shared_ptr<grpc::Channel> plain = grpc::CreateCustomChannel(
      server_->bound()[0], grpc::InsecureChannelCredentials(), grpc::ChannelArguments());
  std::vector<std::unique_ptr<HandAgent>> agents;
  for (int i = 0; i < 16; ++i) {
    agents.push_back(std::make_unique<HandAgent>(channel_));
    v1::Hello hello = HandAgent::hello("n" + std::to_string(i), "i" + std::to_string(i));
    for (int k = 0; k < 230; ++k) hello.mutable_inventory()->add_findings(std::string(1'000, 'f'));
    agents.back()->say(hello);
    v1::ConnectResponse welcome;
    ASSERT_TRUE(agents.back()->until(
        [](const v1::ConnectResponse& one) { return one.has_welcome(); }, welcome))
        << agents.back()->status().error_message();
  }
  const auto stub = v1::NodeService::NewStub(plain);
  v1::ListNodesResponse response;
  const grpc::Status status = stub->ListNodes(context().get(), v1::ListNodesRequest(), &response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  ASSERT_EQ(response.nodes_size(), 16);
  for (const v1::Node& node : response.nodes()) {
    EXPECT_EQ(node.inventory().devices_size(), 2);
    EXPECT_TRUE(node.inventory().findings().empty());
  }
}

}  // namespace
}  // namespace muster::controller
