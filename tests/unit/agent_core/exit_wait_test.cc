#include "agent/core/exit_wait.h"

#include <gtest/gtest.h>

namespace muster::agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr BootTime kBegin{seconds(1000)};

TEST(ExitWait, NothingIsOver) { EXPECT_LE(ExitWait().until(), kBegin); }

TEST(ExitWait, ABoundIsABound) {
  ExitWait wait = ExitWait::at_most(kBegin, milliseconds(5));
  EXPECT_EQ(wait.until(), kBegin + milliseconds(5));
  wait.check(kBegin + milliseconds(5), 1000);
  EXPECT_EQ(wait.until(), kBegin + milliseconds(5))
      << "what is read meanwhile is no reason to go on";
}

// Regression: the log of a rank that had ended with success took longer than 10 s to read. Its exit
// was sent without the success at the log's end, and the job failed.
TEST(ExitWait, AsLongAsBytesAreRead) {
  ExitWait wait = ExitWait::while_read(kBegin, seconds(10), 50);
  wait.check(kBegin + seconds(3), 60);
  EXPECT_EQ(wait.until(), kBegin + seconds(10)) << "looked at when it is due";
  BootTime now = kBegin;
  for (std::uint64_t read = 51; read < 60; ++read) {
    now = wait.until();
    wait.check(now, read);
    EXPECT_EQ(wait.until(), now + seconds(10));
  }
  now = wait.until();
  wait.check(now, 59);
  EXPECT_EQ(wait.until(), now) << "nothing was read since: given up";
}

}  // namespace
}  // namespace muster::agent
