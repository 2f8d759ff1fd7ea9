#include "client/render/printed_reasons.h"

#include <gtest/gtest.h>

namespace muster::render {
namespace {

const std::string kReason =
    "launch.run: there is no 'no-such-program' on PATH '/usr/local/bin:/usr/bin:/bin'; install it "
    "on this node, or set PATH in runtime.env";

// Regression: `muster run` of a program that does not exist printed the whole reason six times, in
// a dozen lines.
TEST(PrintedReasons, ALongReasonIsPrintedOnce) {
  PrintedReasons reported;
  EXPECT_EQ(reported.once("node 'n0' could not start (launch): " + kReason),
            "node 'n0' could not start (launch): " + kReason);
  EXPECT_EQ(reported.once("attempt 1 broke: node 'n0' could not start its part: " + kReason),
            "attempt 1 broke: node 'n0' could not start its part: as above");
  EXPECT_EQ(reported.once("node 'n1' could not start (launch): " + kReason),
            "node 'n1' could not start (launch): as above");
  EXPECT_EQ(reported.once("node 'n2' could not start (launch) in step 'check': " + kReason),
            "node 'n2' could not start (launch) in step 'check': as above");
  EXPECT_EQ(
      reported.once("attempt 1 ended (launch): node 'n0' could not start its part: " + kReason),
      "attempt 1 ended (launch): as above");
  EXPECT_EQ(reported.once("job failed: node 'n0' could not start its part: " + kReason +
                          "; a failure before the program started is not tried again"),
            "job failed: as above; a failure before the program started is not tried again");
}

TEST(PrintedReasons, WhatIsShortOrFarAboveIsPrintedAgain) {
  PrintedReasons reported;
  for (int again = 0; again < 2; ++again)
    EXPECT_EQ(reported.once("attempt 1 broke: rank 1 on node 'n1' ended with status 1"),
              "attempt 1 broke: rank 1 on node 'n1' ended with status 1");
  (void)reported.once("x: " + kReason);
  for (std::size_t line = 0; line + 1 < PrintedReasons::kLines; ++line) reported.pass();
  EXPECT_EQ(reported.once("y: " + kReason), "y: as above");
  for (std::size_t line = 0; line < PrintedReasons::kLines; ++line) reported.pass();
  EXPECT_EQ(reported.once("z: " + kReason), "z: " + kReason);
}

// Regression: "attempt 2 broke: as above" was below the reason of attempt 1.
TEST(PrintedReasons, OfTwoReasonsByTurnsEachIsPrinted) {
  PrintedReasons reported;
  const std::string other = "runtime.python: " + std::string(100, 'p');
  for (int turn = 0; turn < 2; ++turn) {
    EXPECT_EQ(reported.once("x: " + kReason), "x: " + kReason);
    EXPECT_EQ(reported.once("y: " + kReason), "y: as above");
    EXPECT_EQ(reported.once("z: " + other), "z: " + other);
  }
}

TEST(PrintedReasons, AnotherReasonIsPrinted) {
  PrintedReasons reported;
  (void)reported.once("x: " + kReason);
  std::string other = kReason;
  other.replace(other.find("no-such"), 7, "another");
  EXPECT_EQ(reported.once("x: " + other), "x: " + other);
  EXPECT_EQ(reported.once(""), "");
  EXPECT_EQ(reported.once(std::string(300, ':')), std::string(300, ':'));
}

}  // namespace
}  // namespace muster::render
