// Files of one node for the start of another: which node may ask, for which files, and what is
// answered if they are not available.
#include "controller/api/complete_spec.h"
#include "tests/unit/links/hub_fixture.h"

namespace muster::controller {
namespace {

using testing::HasSubstr;

class FetchFiles : public HubTest {
 protected:
  // A job that resumes from a checkpoint whose shards n2 has; it is placed on n1.
  static JobToSubmit going_on(const std::string& name) {
    JobToSubmit job{.spec = command(name, 1), .resolved = {}};
    v1::JobSpec& spec = job.spec;
    spec.mutable_launch()->set_per(v1::LAUNCH_PER_ONCE);
    spec.mutable_checkpoint()->set_layout("mindformers");
    spec.mutable_checkpoint()->set_storage(v1::CHECKPOINT_STORAGE_LOCAL);
    spec.mutable_start()->set_from("job:old");
    spec.mutable_start()->set_as(v1::START_AS_RESUME);
    v1::ResolvedStart& start = *job.resolved.mutable_start();
    start.set_dir("/out/old/checkpoints");
    v1::StartPoint& point = *start.mutable_point();
    point.set_attempt(2);
    point.set_step(40);
    v1::ShardHolder& holder = *point.add_holders();
    holder.set_node("n2");
    holder.set_ranks(8);
    job.resolved.add_fetches()->set_dir("/out/old/checkpoints/attempt-2/strategy");
    return job;
  }
  void submit_resolved(JobToSubmit job) { submit(std::move(job.spec), std::move(job.resolved)); }
  static v1::Hello hello(const std::string& node) {
    v1::Hello hello = HandAgent::hello(node == "n1" ? 1 : 0, node);
    hello.set_instance("i-" + node);
    return hello;
  }
  static v1::FetchFilesRequest request(const std::string& node, std::uint32_t number) {
    v1::FetchFilesRequest request;
    request.set_cluster_id("cluster");
    request.set_node(node);
    request.set_instance("i-" + node);
    request.set_job_id("job");
    request.set_attempt(1);
    request.set_number(number);
    return request;
  }
  grpc::Status asked(const v1::FetchFilesRequest& request) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kPatience);
    const auto reader = stub_->FetchFiles(&context, request);
    v1::FetchFilesResponse response;
    while (reader->Read(&response)) {
    }
    return reader->Finish();
  }

  std::unique_ptr<v1::AgentService::Stub> stub_ =
      v1::AgentService::NewStub(rpc::make_channel({.address = address_}));
};

TEST_F(FetchFiles, ANodeGetsWhatItsOwnOrderNames) {
  HandAgent n1(address_), n2(address_);
  ASSERT_TRUE(n1.connect(hello("n1")));
  ASSERT_TRUE(n2.connect(hello("n2")));
  submit_resolved(going_on("job"));
  const auto order = n1.order("job", v1::Order::kRun);
  ASSERT_TRUE(order);
  ASSERT_EQ(order->run().fetches_size(), 2);
  EXPECT_EQ(order->run().fetches(0).path(), "/out/old/checkpoints/attempt-2");
  EXPECT_EQ(order->run().fetches(0).step(), 40);
  EXPECT_EQ(order->run().fetches(1).path(), "/out/old/checkpoints/attempt-2/strategy");

  grpc::ClientContext asking, sending;
  const auto reader = stub_->FetchFiles(&asking, request("n1", 1));
  const auto wanted = n2.wanted();
  ASSERT_TRUE(wanted);
  EXPECT_EQ(wanted->what().SerializeAsString(), order->run().fetches(1).SerializeAsString());
  EXPECT_EQ(wanted->user(), "");
  v1::SendFilesResponse none;
  const auto writer = stub_->SendFiles(&sending, &none);
  v1::SendFilesRequest part;
  part.mutable_ticket()->set_node("n2");
  part.mutable_ticket()->set_instance("i-n2");
  part.mutable_ticket()->set_ticket(wanted->ticket());
  ASSERT_TRUE(writer->Write(part));
  part.mutable_part()->mutable_end();
  ASSERT_TRUE(writer->Write(part));
  v1::FetchFilesResponse response;
  ASSERT_TRUE(reader->Read(&response));
  EXPECT_TRUE(response.part().has_end());
  EXPECT_TRUE(reader->Finish().ok());

  for (v1::FetchFilesRequest other : {request("n2", 0), request("n1", 2), request("n1", 0)}) {
    if (other.node() == "n1" && other.number() == 0) other.set_instance("another");
    const grpc::Status refused = asked(other);
    EXPECT_THAT(refused.error_message(),
                HasSubstr(other.number() == 2 ? "names no such directory"
                                              : "is not to start job 'job' attempt 1"))
        << other.DebugString();
  }
}

TEST_F(FetchFiles, WhoWaitsForANodeWhoseStreamIsReplacedIsNotified) {
  HandAgent n1(address_), n2(address_), again(address_);
  ASSERT_TRUE(n1.connect(hello("n1")));
  ASSERT_TRUE(n2.connect(hello("n2")));
  submit_resolved(going_on("job"));
  ASSERT_TRUE(n1.order("job", v1::Order::kRun));
  grpc::ClientContext asking;
  asking.set_deadline(std::chrono::system_clock::now() + kPatience);
  const auto reader = stub_->FetchFiles(&asking, request("n1", 1));
  ASSERT_TRUE(n2.wanted());
  ASSERT_TRUE(again.connect(hello("n2")));
  v1::FetchFilesResponse response;
  EXPECT_FALSE(reader->Read(&response));
  EXPECT_THAT(reader->Finish().error_message(),
              HasSubstr("the node's agent has gone before it sent any"));
}

TEST_F(FetchFiles, ANodeThatIsAwayIsNamed) {
  HandAgent n1(address_);
  ASSERT_TRUE(n1.connect(hello("n1")));
  submit_resolved(going_on("job"));
  ASSERT_TRUE(n1.order("job", v1::Order::kRun));
  EXPECT_EQ(asked(request("n1", 0)).error_message(),
            "it is on that node alone, and the node is not connected; start it again, or go "
            "on from a checkpoint that is on nodes which are there (--from)");
}

}  // namespace
}  // namespace muster::controller
