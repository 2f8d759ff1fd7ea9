// Who drained a node: the records tell a user of the name 'owner' from the user who runs the
// controller.
#include <future>
#include <string>
#include <utility>

#include "tests/unit/controller/hand_node.h"

namespace muster::controller {
namespace {

class NodeFactsTest : public HandNodeTest {
 protected:
  NodeFactsTest() {
    access_.replace({.users = {{"owner", UserRole::Operator}, {"olga", UserRole::Operator}}});
  }
  // The actor that n1's drain has in the ledger, and in the answer.
  std::pair<std::string, std::string> drained_by(const std::shared_ptr<grpc::Channel>& channel) {
    const auto stub = v1::NodeService::NewStub(channel);
    v1::UndrainNodeRequest undrain;
    undrain.set_name("n1");
    v1::UndrainNodeResponse undrained;
    EXPECT_TRUE(stub->UndrainNode(context().get(), undrain, &undrained).ok());
    v1::DrainNodeRequest drain;
    drain.set_name("n1");
    v1::DrainNodeResponse drained;
    const grpc::Status status = stub->DrainNode(context().get(), drain, &drained);
    EXPECT_TRUE(status.ok()) << status.error_message();
    std::promise<std::string> recorded;
    EXPECT_TRUE(controller_->shell->read([&](const View& view) {
      recorded.set_value(view.ledger.nodes.at(NodeName("n1")).drain->actor);
    }));
    return {recorded.get_future().get(), drained.node().drain().actor()};
  }
};

TEST_F(NodeFactsTest, TheActorIsWhoCalled) {
  node();
  using Actors = std::pair<std::string, std::string>;
  EXPECT_EQ(drained_by(channel_), Actors(kOwnUser, kOwnUser)) << "over the unix socket";
  EXPECT_EQ(drained_by(tcp(pki::Role::User, "olga")), Actors("olga", "olga"));
}

}  // namespace
}  // namespace muster::controller
