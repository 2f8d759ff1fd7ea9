// Which wanted agent has the place of one that is no longer in hosts.yaml.
#include "deploy/rollout/left_over.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace muster::rollout {
namespace {

using testing::HasSubstr;

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

TEST_F(LeftOver, ANodeThatJobsUseGetsNoOtherName) {
  const Manifest manifest{.agents = {{"old", left_}}};
  const auto marked = [&](const std::string& credentials_of, const Nodes& nodes) {
    one().findings.clear();
    one().check.credentials_of = credentials_of;
    mark_renamed(wanted_, manifest, nodes);
    return one().why();
  };
  const Nodes used = {{"old", {.jobs = {"train", "eval"}}}};
  EXPECT_THAT(marked("node 'old'", used),
              HasSubstr("as node 'old', and jobs use that: train, eval"));
  EXPECT_THAT(left_over(manifest, wanted_).front().text, HasSubstr("it still runs"));
  EXPECT_EQ(marked("node 'new'", used), "");  // it has had the place before
  EXPECT_EQ(marked("node 'old'", {{"old", {}}}), "");
  EXPECT_THAT(left_over(manifest, wanted_).front().text, HasSubstr("'new' takes its place"));
  one().wanted.login.host = "h2";
  EXPECT_EQ(marked("node 'old'", used), "");
  one().wanted.login.host = "h1";
  one().wanted.name = "old";
  EXPECT_EQ(marked("node 'old'", used), "");
}

}  // namespace
}  // namespace muster::rollout
