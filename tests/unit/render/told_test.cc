#include "client/render/told.h"

#include <gtest/gtest.h>

namespace muster::render {
namespace {

const std::string kReason =
    "launch.run: there is no 'no-such-program' on PATH '/usr/local/bin:/usr/bin:/bin'; install it "
    "on this node, or set PATH in runtime.env";

// `muster run` of a program that is not there told all of it six times, in a dozen lines.
TEST(Told, ALongReasonIsSaidOnce) {
  Told told;
  EXPECT_EQ(told.once("node 'n0' could not start (launch): " + kReason),
            "node 'n0' could not start (launch): " + kReason);
  EXPECT_EQ(told.once("attempt 1 broke: node 'n0' could not start its part: " + kReason),
            "attempt 1 broke: node 'n0' could not start its part: as above");
  EXPECT_EQ(told.once("node 'n1' could not start (launch): " + kReason),
            "node 'n1' could not start (launch): as above");
  EXPECT_EQ(told.once("attempt 1 ended (launch): node 'n0' could not start its part: " + kReason),
            "attempt 1 ended (launch): as above");
  EXPECT_EQ(told.once("job failed: node 'n0' could not start its part: " + kReason +
                      "; a failure before the program started is not tried again"),
            "job failed: as above; a failure before the program started is not tried again");
}

TEST(Told, WhatIsShortOrFarAboveIsSaidAgain) {
  Told told;
  for (int again = 0; again < 2; ++again)
    EXPECT_EQ(told.once("attempt 1 broke: rank 1 on node 'n1' ended with status 1"),
              "attempt 1 broke: rank 1 on node 'n1' ended with status 1");
  (void)told.once("x: " + kReason);
  for (std::size_t line = 0; line + 1 < Told::kLines; ++line) told.pass();
  EXPECT_EQ(told.once("y: " + kReason), "y: as above");
  for (std::size_t line = 0; line < Told::kLines; ++line) told.pass();
  EXPECT_EQ(told.once("z: " + kReason), "z: " + kReason);
}

// "attempt 2 broke: as above" stood under the reason of attempt 1.
TEST(Told, OfTwoReasonsByTurnsEachIsSaid) {
  Told told;
  const std::string other = "runtime.python: " + std::string(100, 'p');
  for (int turn = 0; turn < 2; ++turn) {
    EXPECT_EQ(told.once("x: " + kReason), "x: " + kReason);
    EXPECT_EQ(told.once("y: " + kReason), "y: as above");
    EXPECT_EQ(told.once("z: " + other), "z: " + other);
  }
}

TEST(Told, AnotherReasonIsSaid) {
  Told told;
  (void)told.once("x: " + kReason);
  std::string other = kReason;
  other.replace(other.find("no-such"), 7, "another");
  EXPECT_EQ(told.once("x: " + other), "x: " + other);
  EXPECT_EQ(told.once(""), "");
  EXPECT_EQ(told.once(std::string(300, ':')), std::string(300, ':'));
}

}  // namespace
}  // namespace muster::render
