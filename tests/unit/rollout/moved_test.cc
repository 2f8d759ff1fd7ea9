// Agents whose place in hosts.yaml is another one than where they are deployed.
#include "deploy/rollout/moved.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace muster::rollout {
namespace {

using testing::HasSubstr;

const std::string kConfig(64, 'c');

Manifest manifest() {
  return {.agents = {{"n1",
                      {.login = {.host = "h1", .user = "ann"},
                       .places = {.prefix = "/opt/muster", .state_dir = "/var/lib/muster/agent"},
                       .config_sha = kConfig}}}};
}

// A host as it was deployed.
Surveyed surveyed() {
  Surveyed one;
  one.wanted = {.role = Role::Agent, .name = "n1", .login = {.host = "h1", .user = "ann"}};
  one.check.places = manifest().agents.at("n1").places;
  one.check.config_sha = kConfig;
  return one;
}

bool moved(Surveyed& one) {
  mark_moved(one, manifest());
  return one.stopped();
}

TEST(Moved, AnotherPrefixStateDirectoryHostOrUserIsRefused) {
  Surveyed one = surveyed();
  EXPECT_FALSE(moved(one));
  one.check.places.prefix = "/data/muster";
  EXPECT_TRUE(moved(one));
  EXPECT_THAT(one.why(), HasSubstr("deployed on 'h1' as 'ann', with prefix '/opt/muster'"));
  EXPECT_THAT(one.why(), HasSubstr("up --prune"));
  one = surveyed();
  one.check.places.state_dir = "/data/muster";
  EXPECT_TRUE(moved(one));
  one = surveyed();
  one.check.places.systemd = true;
  EXPECT_TRUE(moved(one));
  one = surveyed();
  one.wanted.login.host = "h2";
  one.check.config_sha.clear();
  EXPECT_TRUE(moved(one));
  one = surveyed();
  one.wanted.login.user = "bob";
  one.check.config_sha.clear();
  EXPECT_TRUE(moved(one));
}

TEST(Moved, TheSameHostByAnotherNameAndANewNodeAreNot) {
  Surveyed one = surveyed();
  one.wanted.login.host = "h1.example.org";
  EXPECT_FALSE(moved(one));
  one.wanted.name = "n2";
  one.check.places.prefix = "/data/muster";
  EXPECT_FALSE(moved(one));
}

// With the key of then `down` would reach nobody.
TEST(Moved, AnAgentThatStaysTakesTheLoginOfTheFile) {
  Deployed deployed = manifest().agents.at("n1");
  hosts::Login file = deployed.login;
  file.prefix = "/opt/muster";
  EXPECT_TRUE(same_way(deployed.login, file));
  file.identity = "~/.ssh/new";
  file.port = 2222;
  EXPECT_FALSE(same_way(deployed.login, file));
  take_login(deployed, file);
  EXPECT_TRUE(same_way(deployed.login, file));
  file.host = "h2";
  file.identity.clear();
  take_login(deployed, file);
  EXPECT_EQ(deployed.login.host, "h1");
  EXPECT_EQ(deployed.login.identity, "~/.ssh/new");
  file.host = "h1";
  file.user = "bob";
  take_login(deployed, file);
  EXPECT_EQ(deployed.login.user, "ann");
}

}  // namespace
}  // namespace muster::rollout
