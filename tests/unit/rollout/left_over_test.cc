// Which wanted agent has the place of one that is no longer in hosts.yaml.
#include "deploy/rollout/left_over.h"

#include <gtest/gtest.h>

namespace muster::rollout {
namespace {

class LeftOver : public testing::Test {
 protected:
  LeftOver() : wanted_(1) {
    one().wanted = {.role = Role::Agent, .name = "new", .login = {.host = "h1"}};
    one().check.places = left_.places;
  }
  Surveyed& one() { return wanted_.front(); }
  [[nodiscard]] bool has_successor() const { return successor(left_, wanted_) != nullptr; }

  Deployed left_{.login = {.host = "h1", .port = 22},
                 .places = {.prefix = "/opt/muster", .state_dir = "/var/lib/muster/agent"}};
  std::vector<Surveyed> wanted_;
};

TEST_F(LeftOver, AnAgentOfAnotherNameInItsPlaceIsItsSuccessor) {
  EXPECT_TRUE(has_successor());
  one().check.places.prefix = "/data/muster";
  EXPECT_FALSE(has_successor());
  one().check.places = {};  // it was not reached
  EXPECT_TRUE(has_successor());
  one().wanted.login.port = 2222;
  EXPECT_FALSE(has_successor());
  one().wanted.login = {.host = "alias", .address = "h1"};
  EXPECT_TRUE(has_successor());
  one().wanted.role = Role::Controller;
  EXPECT_FALSE(has_successor());
}

TEST_F(LeftOver, AHostHasOneUnitWhereverTheProgramsAre) {
  left_.places.systemd = one().check.places.systemd = true;
  one().check.places.prefix = "/data/muster";
  EXPECT_TRUE(has_successor());
  one().wanted.login.host = "h2";
  EXPECT_FALSE(has_successor());
}

}  // namespace
}  // namespace muster::rollout
