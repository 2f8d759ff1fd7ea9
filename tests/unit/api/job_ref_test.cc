#include "controller/api/job_ref.h"

#include <gtest/gtest.h>

#include "controller/api/job_id.h"

namespace muster::controller {
namespace {

core::JobRecord job(const std::string& id, const std::string& name, core::JobPhase phase) {
  core::JobRecord record;
  record.id = JobId(id);
  record.spec.set_name(name);
  record.phase = phase;
  return record;
}

class JobRefTest : public testing::Test {
 protected:
  JobRefTest() {
    add(job("0aaaaaaaaaa01", "old", core::JobPhase::Succeeded));
    add(job("0aaaaaaaaaa02", "old", core::JobPhase::Failed));
    add(job("0aaaaaaaaab03", "live", core::JobPhase::Running));
    ledger_.indexes.live_names["live"] = JobId("0aaaaaaaaab03");
    ledger_.tombstones[JobId("0aaaaaaaaaa00")] = {.id = JobId("0aaaaaaaaaa00"), .name = "ancient"};
  }
  void add(core::JobRecord record) { ledger_.jobs.emplace(record.id, std::move(record)); }
  core::Ledger ledger_;
};

TEST_F(JobRefTest, IdsNamesPrefixesAndTheLast) {
  EXPECT_EQ(resolve_job(ledger_, "@last")->id.str(), "0aaaaaaaaab03");
  EXPECT_EQ(resolve_job(ledger_, "0aaaaaaaaaa01")->id.str(), "0aaaaaaaaaa01");
  EXPECT_EQ(resolve_job(ledger_, "live")->id.str(), "0aaaaaaaaab03");
  EXPECT_EQ(resolve_job(ledger_, "old")->id.str(), "0aaaaaaaaaa02");  // the newest of that name
  EXPECT_EQ(resolve_job(ledger_, "0aaaaaaaaab")->id.str(), "0aaaaaaaaab03");
  EXPECT_FALSE(resolve_job(ledger_, "live")->archived);
}

TEST_F(JobRefTest, ArchivedOnesAreFoundByNameAndId) {
  EXPECT_TRUE(resolve_job(ledger_, "ancient")->archived);
  EXPECT_TRUE(resolve_job(ledger_, "0aaaaaaaaaa00")->archived);
  // older than every tombstone: the archive decides
  EXPECT_TRUE(resolve_job(ledger_, "0000000000000")->archived);
}

TEST_F(JobRefTest, AmbiguousAndUnknownAreDistinguished) {
  const auto ambiguous = resolve_job(ledger_, "0aaaaaaaaaa");
  ASSERT_FALSE(ambiguous);
  EXPECT_EQ(ambiguous.error().code, ErrorCode::Conflict);
  EXPECT_NE(ambiguous.error().message.find("0aaaaaaaaaa01"), std::string::npos);
  EXPECT_EQ(resolve_job(ledger_, "nobody").error().code, ErrorCode::NotFound);
  EXPECT_EQ(resolve_job(ledger_, "").error().code, ErrorCode::InvalidArgument);
  EXPECT_EQ(resolve_job(core::Ledger(), "@last").error().code, ErrorCode::NotFound);
}

// Regression: ids begin with the time, so those of one afternoon have the same first eight
// characters. A person types the part that differs, the end, and it was refused. So was the
// beginning of a name, even by commands that only show.
TEST_F(JobRefTest, TheEndOfAnIdNamesItAsItsBeginningDoes) {
  EXPECT_EQ(resolve_job(ledger_, "aa01")->id.str(), "0aaaaaaaaaa01");
  EXPECT_EQ(resolve_job(ledger_, "ab03")->id.str(), "0aaaaaaaaab03");
  EXPECT_TRUE(resolve_job(ledger_, "aa00")->archived);
  EXPECT_EQ(resolve_job(ledger_, "a01").error().code, ErrorCode::NotFound)
      << "too short to be meant";
  add(job("1aaaaaaaaaa01", "other", core::JobPhase::Queued));
  const auto two = resolve_job(ledger_, "aaaa01");
  ASSERT_FALSE(two);
  EXPECT_EQ(two.error().code, ErrorCode::Conflict);
  EXPECT_NE(two.error().message.find("the end is ambiguous"), std::string::npos)
      << two.error().message;
  EXPECT_NE(two.error().message.find("1aaaaaaaaaa01"), std::string::npos) << two.error().message;
}

TEST_F(JobRefTest, ANameAndABeginningOfAnIdComeBeforeAnEnd) {
  add(job("2aaaaaaaalive", "x", core::JobPhase::Queued));
  EXPECT_EQ(resolve_job(ledger_, "live")->id.str(), "0aaaaaaaaab03");
  add(job("aa01aaaaaaaaa", "y", core::JobPhase::Queued));
  EXPECT_EQ(resolve_job(ledger_, "aa01")->id.str(), "aa01aaaaaaaaa");
}

TEST_F(JobRefTest, TheBeginningOfANameIsForReadingAlone) {
  EXPECT_EQ(resolve_job(ledger_, "li", RefFor::Reading)->id.str(), "0aaaaaaaaab03");
  EXPECT_EQ(resolve_job(ledger_, "ol", RefFor::Reading)->id.str(), "0aaaaaaaaaa02")
      << "the newest of that name";
  EXPECT_TRUE(resolve_job(ledger_, "anc", RefFor::Reading)->archived);
  const auto acting = resolve_job(ledger_, "li", RefFor::Acting);
  ASSERT_FALSE(acting);
  EXPECT_EQ(acting.error().code, ErrorCode::NotFound);
  EXPECT_NE(acting.error().message.find("write the whole name of 'live'"), std::string::npos)
      << acting.error().message;
  add(job("0aaaaaaaaab04", "lion", core::JobPhase::Succeeded));
  EXPECT_EQ(resolve_job(ledger_, "li", RefFor::Reading)->id.str(), "0aaaaaaaaab03")
      << "what has not ended is meant first";
  add(job("0aaaaaaaaab05", "limes", core::JobPhase::Queued));
  const auto two = resolve_job(ledger_, "li", RefFor::Reading);
  ASSERT_FALSE(two);
  EXPECT_EQ(two.error().code, ErrorCode::Conflict);
  EXPECT_NE(two.error().message.find("'limes', 'live'"), std::string::npos) << two.error().message;
  EXPECT_EQ(resolve_job(ledger_, "nobody", RefFor::Reading).error().code, ErrorCode::NotFound);
}

TEST(JobIds, SortByTimeAndNeverRepeatEvenWhenTheClockIsSetBack) {
  JobIdSource source(1);
  WallTime now(std::chrono::hours(24 * 365 * 56));
  JobId last;
  for (int i = 0; i < 5'000; ++i) {
    if (i == 1'000) now -= std::chrono::hours(1);
    if (i % 7 == 0) now += std::chrono::milliseconds(1);
    const JobId id = source.next(now);
    EXPECT_EQ(id.str().size(), kJobIdLength);
    EXPECT_GT(id, last);
    last = id;
  }
  EXPECT_NE(JobIdSource(2).next(now), JobIdSource(3).next(now));
}

}  // namespace
}  // namespace muster::controller
