// What `up --new-ca` adds to the plan, and the script that moves the CA's files aside.
#include "deploy/rollout/new_ca.h"

#include <gtest/gtest.h>

#include <optional>

#include "tests/unit/rollout/local_session.h"

namespace muster::rollout {
namespace {

namespace fs = std::filesystem;

TEST(NewCa, TheControllerStartsAndEveryNodeGetsCredentials) {
  const Steps controller = with_new_ca({}, Role::Controller);
  EXPECT_TRUE(controller.start);
  EXPECT_FALSE(controller.issue);
  const Steps agent = with_new_ca({.upload = {"muster"}}, Role::Agent);
  EXPECT_TRUE(agent.issue);
  EXPECT_FALSE(agent.start) << "its agent reads the file at its next connection";
  EXPECT_EQ(agent.upload.size(), 1U) << "the rest stays";
}

TEST(NewCa, TheFilesAreMovedAsideAndNothingIsLost) {
  const LocalHost local;
  ssh::NoPrompts nobody;
  auto host = host_over(local, nobody);
  ASSERT_TRUE(host);
  const fs::path state = local.dir() / "state dir", pki = state / "pki";
  const Places places{.prefix = "/opt/muster", .state_dir = state.string()};
  ASSERT_TRUE(move_ca_aside(*host, places)) << "there is no CA yet";
  for (const char* name : {"ca.key", "ca.pem", "old.pem"}) local.write(pki / name, name);
  const auto moved = move_ca_aside(*host, places);
  ASSERT_TRUE(moved) << moved.error().message;
  ASSERT_EQ(std::distance(fs::directory_iterator(pki), fs::directory_iterator()), 1);
  const fs::path before = fs::directory_iterator(pki)->path();
  EXPECT_TRUE(before.filename().string().starts_with("before-")) << before;
  EXPECT_EQ(fs::status(before).permissions(), fs::perms::owner_all);
  for (const char* name : {"ca.key", "ca.pem", "old.pem"})
    EXPECT_EQ(local.read(before / name), name);
  ASSERT_TRUE(move_ca_aside(*host, places)) << "again";
  EXPECT_EQ(std::distance(fs::directory_iterator(pki), fs::directory_iterator()), 1);
}

}  // namespace
}  // namespace muster::rollout
