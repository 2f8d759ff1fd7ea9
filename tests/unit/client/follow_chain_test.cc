#include "client/commands/follow/follow_chain.h"

#include <gtest/gtest.h>

namespace muster::client {
namespace {

TEST(WorseExit, AFailureCountsMoreThanItsConsequences) {
  EXPECT_EQ(worse_exit(kOk, kOk), kOk);
  EXPECT_EQ(worse_exit(kOk, kCancelled), kCancelled);
  EXPECT_EQ(worse_exit(kJobFailed, kCancelled), kJobFailed);
  EXPECT_EQ(worse_exit(kCancelled, kJobFailed), kJobFailed);
  EXPECT_EQ(worse_exit(kJobFailed, kOk), kJobFailed);
  EXPECT_EQ(worse_exit(kJobFailed, kInternal), kInternal);
}

}  // namespace
}  // namespace muster::client
