// Over a real connection: the agent reports an order that it does not know, once for each
// connection.
#include "agent/loop.h"
#include "common/log/log.h"
#include "common/rpc/channel.h"
#include "tests/unit/agent_link/fake_controller.h"
#include "tests/unit/agent_run/support.h"

namespace muster::agent {
namespace {

TEST(UnsupportedOrder, IsReportedOnceAConnection) {
  static const auto logging = log::set_up({.daemon = "test", .level = "off"});
  ASSERT_TRUE(logging);
  TempDir dir;
  const std::string address = "unix:" + (dir.path() / "s").string();
  FakeController controller(address,
                            [](FakeController::Stream& stream,
                               const v1::ConnectRequest& request) -> std::optional<grpc::Status> {
                              if (request.has_hello()) {
                                stream.Write(welcome_message());
                                v1::ConnectResponse response;
                                response.mutable_orders()->set_cluster_id("c-1");
                                response.mutable_orders()->set_epoch(1);
                                v1::Order& order = *response.mutable_orders()->add_orders();
                                order.set_job_id("j1");
                                order.set_attempt(2);
                                order.GetReflection()->MutableUnknownFields(&order)->AddVarint(100,
                                                                                               1);
                                stream.Write(response);
                                stream.Write(response);
                              }
                              return std::nullopt;
                            });
  auto state = StateDir::open(dir.path() / "state");
  ASSERT_TRUE(state) << state.error().message;
  async::Loop loop("test-agent");
  AgentOptions options{
      .host = {.layout = state->layout(),
               .self = {.instance = state->identity().instance, .boot_id = *process::boot_id()},
               .node = kNode,
               .worker = worker_binary(),
               .devices = {0},
               .min_free_bytes = 1},
      .version = "0.1.0",
      .endpoint = [&]() -> Result<rpc::Endpoint> { return rpc::Endpoint{.address = address}; }};
  Agent agent(loop, std::move(*state), std::move(options));
  const auto started = agent.start();
  EXPECT_TRUE(started) << started.error().message;
  const auto reported = controller.wait_for(
      [](const v1::ConnectRequest& request) { return request.has_unsupported(); });
  EXPECT_TRUE(reported);
  if (reported) {
    EXPECT_EQ(reported->unsupported().job_id(), "j1");
    EXPECT_EQ(reported->unsupported().attempt(), 2u);
    EXPECT_EQ(reported->unsupported().text(), "an order of a kind that agent 0.1.0 does not know");
  }
  // An order that it cannot run is refused as well, so that nobody waits for its start. The refusal
  // follows the orders of the second message.
  EXPECT_TRUE(controller.wait_for([](const v1::ConnectRequest& request) {
    return request.has_facts() && request.facts().facts(0).has_start_failed();
  }));
  agent.stop();
  loop.stop();
  const auto heard = controller.heard();
  EXPECT_EQ(std::ranges::count_if(
                heard, [](const v1::ConnectRequest& request) { return request.has_unsupported(); }),
            1);
}

}  // namespace
}  // namespace muster::agent
