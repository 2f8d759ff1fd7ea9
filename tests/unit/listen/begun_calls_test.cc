#include "controller/listen/begun_calls.h"

#include <gtest/gtest.h>

namespace muster::controller {
namespace {

constexpr BootTime kBegan{std::chrono::seconds(1'000)};

class BegunCallsTest : public testing::Test {
 protected:
  int one_ = 0, other_ = 0;  // connections
  BegunCalls calls_;
};

TEST_F(BegunCallsTest, AConnectionIsInTheBookUntilAllItsRequestsAreWhole) {
  EXPECT_TRUE(calls_.begin(&one_, "ann", kBegan));
  EXPECT_TRUE(calls_.begin(&one_, "ann", kBegan));
  EXPECT_TRUE(calls_.begin(&other_, "ann", kBegan));
  calls_.whole(&one_);
  ASSERT_NE(calls_.find(&one_), nullptr);
  EXPECT_EQ(calls_.find(&one_)->count, 1U);
  calls_.whole(&one_);
  EXPECT_EQ(calls_.find(&one_), nullptr);
  EXPECT_NE(calls_.find(&other_), nullptr);
  calls_.whole(&one_);  // of a call that began before the book
  calls_.forget(&other_);
  EXPECT_TRUE(calls_.all().empty());
}

TEST_F(BegunCallsTest, AnOwnerHasABoundOnAllConnections) {
  for (std::size_t i = 0; i < BegunCalls::kOfOwnerMost; ++i)
    EXPECT_TRUE(calls_.begin(i % 2 == 0 ? &one_ : &other_, "ann", kBegan));
  EXPECT_FALSE(calls_.begin(&one_, "ann", kBegan));
  int third = 0;
  EXPECT_TRUE(calls_.begin(&third, "bob", kBegan));
  calls_.whole(&one_);
  EXPECT_TRUE(calls_.begin(&other_, "ann", kBegan));
  EXPECT_FALSE(calls_.begin(&other_, "ann", kBegan));
  calls_.forget(&one_);
  EXPECT_TRUE(calls_.begin(&other_, "ann", kBegan));
}

TEST_F(BegunCallsTest, AnIdThatComesAgainForAnotherOwnerBeginsAnew) {
  EXPECT_TRUE(calls_.begin(&one_, "ann", kBegan));
  EXPECT_TRUE(calls_.begin(&one_, "bob", kBegan));
  EXPECT_EQ(calls_.find(&one_)->count, 1U);
  calls_.whole(&one_);
  EXPECT_TRUE(calls_.all().empty());
}

}  // namespace
}  // namespace muster::controller
