#include "common/io/descriptor_limit.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

namespace muster::io {
namespace {

// Regression: a controller with 1,024 descriptors answered "Too many open files" to the agents of a
// cluster that it could serve well, because nothing had raised the soft limit.
TEST(DescriptorLimit, the_soft_limit_goes_up_to_the_hard_one) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit low{.rlim_cur = before.rlim_max / 2, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &low), 0);
  raise_descriptor_limit();
  rlimit after{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &after), 0);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(after.rlim_cur, before.rlim_max);
  EXPECT_EQ(after.rlim_max, before.rlim_max);
}

}  // namespace
}  // namespace muster::io
