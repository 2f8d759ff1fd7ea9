// Names of segments of logs.
#include "common/store/log_segment.h"

#include <gtest/gtest.h>

namespace muster::store {
namespace {

TEST(LogSegment, IsReadAsItIsWritten) {
  const std::string text = text_of(LogSegment{.sequence = 12, .from = 34, .to = 5'600'000'000});
  EXPECT_EQ(text, "000012-000000000000034-000005600000000.log.gz");
  const auto segment = parse_log_segment(text);
  ASSERT_TRUE(segment);
  EXPECT_EQ(segment->sequence, 12U);
  EXPECT_EQ(segment->from, 34U);
  EXPECT_EQ(segment->to, 5'600'000'000U);
  for (const char* other : {"", "000001-0-5.log", "000001-5-5.log.gz", "000000-0-5.log.gz",
                            "a-0-5.log.gz", "000001-0-5.log.gz.tmp", "000001-0-5", "1-2-.log.gz",
                            ".unfinished", "99999999999999999999999-0-5.log.gz"})
    EXPECT_FALSE(parse_log_segment(other)) << other;
}

}  // namespace
}  // namespace muster::store
