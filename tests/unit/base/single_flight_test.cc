#include "common/base/single_flight.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(SingleFlight, StartsAtOnceWhenNothingIsUnderWay) {
  SingleFlight scan;
  EXPECT_FALSE(scan.under_way());
  EXPECT_TRUE(scan.want());
  EXPECT_TRUE(scan.under_way());
  EXPECT_FALSE(scan.due());
  EXPECT_FALSE(scan.landed()) << "nothing was wanted meanwhile";
  EXPECT_FALSE(scan.under_way());
}

TEST(SingleFlight, WhatIsWantedMeanwhileIsDoneOnceMore) {
  SingleFlight scan;
  EXPECT_TRUE(scan.want());
  EXPECT_FALSE(scan.want());
  EXPECT_FALSE(scan.want());
  EXPECT_TRUE(scan.due());
  EXPECT_TRUE(scan.landed()) << "the next one begins";
  EXPECT_TRUE(scan.under_way());
  EXPECT_FALSE(scan.due());
  EXPECT_FALSE(scan.landed());
}

TEST(SingleFlight, WantOneIsContentWithWhatIsUnderWay) {
  SingleFlight turn;
  EXPECT_TRUE(turn.want_one());
  EXPECT_FALSE(turn.want_one());
  EXPECT_FALSE(turn.due());
  EXPECT_FALSE(turn.landed());
  EXPECT_TRUE(turn.want_one());
}

TEST(SingleFlight, WhatIsDueIsTakenWhenNothingIsUnderWay) {
  SingleFlight write;
  EXPECT_FALSE(write.take());
  write.set_due();
  EXPECT_TRUE(write.due());
  EXPECT_FALSE(write.under_way());
  EXPECT_TRUE(write.take());
  EXPECT_TRUE(write.under_way());
  EXPECT_FALSE(write.take()) << "it is not due any more";
  write.set_due();
  EXPECT_FALSE(write.take()) << "one is under way";
  EXPECT_TRUE(write.landed());
}

TEST(SingleFlight, WhatIsGivenUpLeavesWhatIsDue) {
  SingleFlight write;
  EXPECT_TRUE(write.want());
  EXPECT_FALSE(write.want());
  write.ended();
  EXPECT_FALSE(write.under_way());
  EXPECT_TRUE(write.due());
  EXPECT_TRUE(write.take());
}

}  // namespace
}  // namespace muster
