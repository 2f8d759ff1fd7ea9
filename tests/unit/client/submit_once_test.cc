// A submission whose answer is lost is repeated, and the controller treats it as the same
// submission.
#include <gtest/gtest.h>

#include <mutex>
#include <vector>

#include "client/commands/call/interrupt.h"
#include "client/commands/job/submit.h"

namespace muster::client {
namespace {

// Accepts every job; the answers to the first `lost` ones are lost.
class Forgetful final : public v1::JobService::Service {
 public:
  explicit Forgetful(std::size_t lost) : lost_(lost) {}
  grpc::Status SubmitJob(grpc::ServerContext*, const v1::SubmitJobRequest* request,
                         v1::SubmitJobResponse* response) override {
    const std::scoped_lock lock(mutex_);
    ids_.push_back(request->request_id());
    if (ids_.size() <= lost_) return {grpc::StatusCode::UNAVAILABLE, "connection reset"};
    response->set_job_id("06f3kq8z2m1ab");
    return grpc::Status::OK;
  }
  std::vector<std::string> ids() const {
    const std::scoped_lock lock(mutex_);
    return ids_;
  }

 private:
  const std::size_t lost_;
  mutable std::mutex mutex_;
  std::vector<std::string> ids_;  // guarded by mutex_
};

struct Controller {
  explicit Controller(std::size_t lost) : service(lost) {
    grpc::ServerBuilder builder;
    builder.RegisterService(&service);
    server = builder.BuildAndStart();
    const auto channel = server->InProcessChannel({});
    session.jobs = v1::JobService::NewStub(channel);
    session.nodes = v1::NodeService::NewStub(channel);
  }
  ~Controller() { server->Shutdown(); }
  Forgetful service;
  std::unique_ptr<grpc::Server> server;
  Session session;
};

v1::JobSpec spec_named(const std::string& name) {
  v1::JobSpec spec;
  spec.set_name(name);
  return spec;
}

// Regression: `ckpt export` sent no request id, so a repeated request would have made a second job.
TEST(SubmitOnce, AnAnswerThatIsLostIsAskedForAgainUnderTheSameId) {
  Controller controller(1);
  Interrupt interrupt(std::nullopt);
  const auto response = submit_once(controller.session, spec_named("cut-whole2"), {}, interrupt);
  ASSERT_TRUE(response) << response.error().message;
  EXPECT_EQ(response->job_id(), "06f3kq8z2m1ab");
  const auto ids = controller.service.ids();
  ASSERT_EQ(ids.size(), 2U);
  EXPECT_FALSE(ids[0].empty());
  EXPECT_EQ(ids[0], ids[1]);
  ASSERT_TRUE(submit_once(controller.session, spec_named("cut-whole3"), {}, interrupt));
  EXPECT_NE(controller.service.ids().back(), ids[0]) << "another job has another one";
}

TEST(SubmitOnce, AControllerThatStaysAwayIsReported) {
  Controller controller(100);
  Interrupt interrupt(std::nullopt);
  const auto response = submit_once(controller.session, spec_named("cut-whole2"), {}, interrupt);
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code, ErrorCode::Unreachable);
  EXPECT_EQ(controller.service.ids().size(), 3U);
}

}  // namespace
}  // namespace muster::client
