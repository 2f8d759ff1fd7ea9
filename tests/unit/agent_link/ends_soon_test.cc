#include "agent/link/ends_soon.h"

#include <gtest/gtest.h>

namespace muster::agent {
namespace {

TEST(EndsSoon, OnlyTheLastSevenDaysAreReported) {
  const WallTime end{std::chrono::sys_days{std::chrono::year{2026} / 12 / 31}};
  pki::Credentials own;
  own.identity = {.cluster = "c0ffee", .role = pki::Role::Node, .name = "n1"};
  own.not_after = end;
  using std::chrono::days;
  using std::chrono::seconds;
  EXPECT_EQ(ends_soon(own, end - days(365)), "");
  EXPECT_EQ(ends_soon(own, end - days(7) - seconds(1)), "");
  EXPECT_TRUE(ends_soon(own, end - days(7))
                  .starts_with("the certificate of node 'n1' ends at 2026-12-31T00:00:00Z: with "
                               "--enrol the agent renews it by itself"));
  EXPECT_NE(ends_soon(own, end), "");
  EXPECT_EQ(ends_soon(own, end + seconds(1)), "") << "the error of each try says so";
}

}  // namespace
}  // namespace muster::agent
