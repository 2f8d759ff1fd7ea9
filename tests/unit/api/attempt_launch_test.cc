// The sentence of `muster env` for a rank that does not exist.
#include "controller/api/attempt_launch.h"

#include <gtest/gtest.h>

namespace muster::controller {
namespace {

// Regression: of a job with one script and two ranks of the training inside it, `muster env JOB
// --rank 5` said "attempt 2 has ranks 0..0", while `muster env JOB --rank 1` showed a rank.
TEST(RanksThere, NamesTheRanksInsideTheScriptsToo) {
  EXPECT_EQ(ranks_there(1, 2), "rank 0, and inside the scripts ranks 0..1 of the training");
  EXPECT_EQ(ranks_there(2, 4), "ranks 0..1, and inside the scripts ranks 0..3 of the training");
  EXPECT_EQ(ranks_there(1, 1), "rank 0, and inside the scripts rank 0 of the training");
  EXPECT_EQ(ranks_there(8, 0), "ranks 0..7") << "no scripts";
  EXPECT_EQ(ranks_there(1, 0), "rank 0");
}

}  // namespace
}  // namespace muster::controller
