// A controller that listens at a loopback address, and agents on its own or another host.
#include "deploy/rollout/loopback.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace muster::rollout {
namespace {

using testing::HasSubstr;

// Why the controller is stopped, where it listens at `listen` and the agent is on `machine`.
std::string why(const std::string& listen, const std::string& machine = "b",
                const std::string& enrol = "") {
  std::vector<Surveyed> all(2);
  all[0].wanted = {.role = Role::Controller, .name = "controller", .address = listen};
  if (!enrol.empty()) all[0].wanted.options = {"--enrol=" + enrol};
  all[0].check.machine = "a";
  all[1].wanted = {.role = Role::Agent, .name = "n1"};
  all[1].check.machine = machine;
  mark_loopback(all);
  EXPECT_FALSE(all[1].stopped());
  return all[0].why();
}

TEST(Loopback, IsNoAddressForAgentsOnOtherHosts) {
  EXPECT_THAT(why("127.0.0.1:7070"), HasSubstr("'listen: 127.0.0.1:7070' is reached from"));
  EXPECT_THAT(why("[::1]:7070"), HasSubstr("node 'n1' is on another one"));
  EXPECT_THAT(why("localhost:7070"), HasSubstr("listen"));
  EXPECT_THAT(why("0.0.0.0:7070", "b", "127.0.0.1:7071"), HasSubstr("'enrol: 127.0.0.1:7071'"));
  EXPECT_EQ(why("0.0.0.0:7070"), "");
  EXPECT_EQ(why("0.0.0.0:7070", "b", "0.0.0.0:7071"), "");
  EXPECT_EQ(why("10.0.0.1:7070"), "");
  EXPECT_EQ(why("127.0.0.1:7070", "a"), "");  // the one host
}

}  // namespace
}  // namespace muster::rollout
