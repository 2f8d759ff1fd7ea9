// A survey against the manifest on the controller's host.
#include "deploy/rollout/compare.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "deploy/rollout/manifest.h"
#include "tests/unit/rollout/local_session.h"

namespace muster::rollout {
namespace {

using testing::HasSubstr;

class Compare : public testing::Test {
 protected:
  // The controller's host after the comparison with a hosts.yaml of `cluster`.
  Surveyed compared(const std::string& cluster, bool running = false) {
    std::vector<Surveyed> all(1);
    Surveyed& one = all.front();
    one.wanted = {.role = Role::Controller, .name = "controller", .login = {.host = "h1"}};
    one.check.places = {.prefix = (local_.dir() / "opt").string(),
                        .state_dir = (local_.dir() / "state").string()};
    one.check.running = running;
    one.host.emplace(std::move(*host_over(local_, nobody_)));
    trouble_ = compare(all, cluster).trouble;
    return std::move(one);
  }

  void deploy(const std::string& cluster) {
    Manifest manifest{.cluster = cluster};
    manifest.controller = {.login = {.host = "h1"},
                           .places = {.prefix = "/opt/muster", .state_dir = "/var/lib/muster"}};
    local_.write(local_.dir() / "state/deploy/manifest.json", manifest_text(manifest));
  }

  const LocalHost local_;
  ssh::NoPrompts nobody_;
  std::string trouble_;
};

TEST_F(Compare, AnotherClustersHostsFileIsAProblem) {
  EXPECT_FALSE(compared("prod").stopped()) << trouble_;
  deploy("prod");
  EXPECT_FALSE(compared("prod").stopped());
  EXPECT_EQ(trouble_, "");
  EXPECT_THAT(compared("test").why(), HasSubstr("is of cluster 'prod', and hosts.yaml of 'test'"));
}

TEST_F(Compare, AControllerThatRunsWithoutAManifestIsAProblem) {
  EXPECT_THAT(compared("prod", true).why(), HasSubstr("was state_dir changed?"));
}

}  // namespace
}  // namespace muster::rollout
