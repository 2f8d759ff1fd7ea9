// Whether the agent that the controller sees is the host's own.
#include "deploy/rollout/instance.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "common/io/frames.h"
#include "muster/rundir/v1/rundir.pb.h"
#include "tests/unit/rollout/local_session.h"

namespace muster::rollout {
namespace {

using testing::HasSubstr;

TEST(Instance, AnotherAgentOfTheNameIsNotTheHostsOwn) {
  const LocalHost local;
  ssh::NoPrompts nobody;
  auto host = host_over(local, nobody);
  ASSERT_TRUE(host) << host.error().message;
  const Places places{.state_dir = (local.dir() / "state").string()};
  EXPECT_EQ(why_not_own(*host, places, "aaaa"), "");
  ::muster::rundir::v1::Identity own;
  own.set_instance("aaaa");
  local.write(local.dir() / "state/identity", io::encode_frame(own.SerializeAsString()));
  EXPECT_EQ(why_not_own(*host, places, "aaaa"), std::nullopt);
  EXPECT_EQ(why_not_own(*host, places, "bbbb"), "the controller sees another agent of this name");
  local.write(local.dir() / "state/identity", "x");
  EXPECT_THAT(why_not_own(*host, places, "aaaa").value_or(""), HasSubstr("it makes no sense"));
}

}  // namespace
}  // namespace muster::rollout
