// Agents whose credentials are of another cluster than that of the controller in hosts.yaml.
#include "deploy/rollout/foreign.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "deploy/rollout/down.h"
#include "tests/unit/rollout/local_session.h"

namespace muster::rollout {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// A controller, and a node with credentials of `cluster`.
std::vector<Surveyed> with_credentials_of(const std::string& cluster) {
  std::vector<Surveyed> out(2);
  out[0].wanted = {.role = Role::Controller, .name = "controller"};
  out[0].check.places.state_dir = "/var/lib/muster/controller";
  out[1].wanted = {.role = Role::Agent, .name = "n1"};
  out[1].check.places.prefix = "/opt/muster";
  out[1].check.credentials_cluster = cluster;
  return out;
}

TEST(Foreign, AnAgentOfAnotherClusterIsRefused) {
  auto all = with_credentials_of("aaaa");
  all[0].check.cluster = "bbbb";
  mark_foreign(all);
  EXPECT_FALSE(all[0].stopped());
  EXPECT_THAT(all[1].why(), AllOf(HasSubstr("it belongs to cluster 'aaaa'"), HasSubstr("'bbbb'"),
                                  HasSubstr("muster deploy down"),
                                  HasSubstr("remove '/opt/muster/agent/credentials.pem'")));
}

TEST(Foreign, WhereNoControllerHasBeenNothingIsChanged) {
  auto all = with_credentials_of("aaaa");
  mark_foreign(all);
  EXPECT_TRUE(all[1].stopped());
  EXPECT_THAT(all[0].why(), HasSubstr("node 'n1' belongs to cluster 'aaaa'"));
  // It runs, and its state directory was changed: that has a sentence of its own.
  all = with_credentials_of("aaaa");
  all[0].check.running = true;
  mark_foreign(all);
  EXPECT_FALSE(all[0].stopped());
}

TEST(Foreign, AnAgentOfTheClusterANewHostAndAnUnknownClusterAreNot) {
  for (const auto& [own, of] : {std::pair("aaaa", "aaaa"), {"", "aaaa"}, {"aaaa", ""}}) {
    auto all = with_credentials_of(of);
    all[0].check.cluster = own;
    mark_foreign(all);
    EXPECT_FALSE(all[0].stopped() || all[1].stopped()) << own << " " << of;
  }
  auto all = with_credentials_of("");
  mark_foreign(all);
  EXPECT_FALSE(all[0].stopped() || all[1].stopped());
}

TEST(Foreign, TheCredentialsOnTheHostSayWhichClusterItIs) {
  const LocalHost local;
  ssh::NoPrompts nobody;
  auto host = host_over(local, nobody);
  ASSERT_TRUE(host) << host.error().message;
  const Places places{.prefix = local.dir().string()};
  auto found = credentials_cluster(*host, places);
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(*found, "");
  local.program(places.current() + "/bin/muster",
                "[ \"$3\" = " + places.credentials() +
                    " ] && printf \"for      node 'n1'\\ncluster  aaaa\\nkey      1\\n\"\n");
  found = credentials_cluster(*host, places);
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(*found, "aaaa");
}

}  // namespace
}  // namespace muster::rollout
