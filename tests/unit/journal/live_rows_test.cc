// Which rows a replay still needs. archive_test.cc tests archived jobs and their tombstones.
#include "controller/journal/live_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controller/core/core.h"
#include "controller/core/dump.h"
#include "tests/unit/journal/sample_events.h"

namespace muster::journal {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

core::Event dead(const std::string& node) {
  return {.at = {}, .body = core::NodeDeclaredDead{.node = NodeName(node), .reason = "burnt"}};
}

std::vector<std::uint64_t> gone(const std::vector<core::Event>& events) {
  LiveRows live;
  std::uint64_t index = 0;
  for (const core::Event& event : events) live.add(JournalIndex(++index), event);
  std::vector<std::uint64_t> numbers;
  for (const JournalIndex one : live.superseded()) numbers.push_back(one.value);
  return numbers;
}

// Dropped rows are not needed: the remaining rows fold into the same ledger.
void expect_same_ledger(const std::vector<core::Event>& events) {
  const std::vector<std::uint64_t> superseded = gone(events);
  core::Ledger whole, left;
  for (std::uint64_t index = 1; index <= events.size(); ++index) {
    core::apply(whole, JournalIndex(index), events[index - 1]);
    if (!std::ranges::binary_search(superseded, index))
      core::apply(left, JournalIndex(index), events[index - 1]);
  }
  left.index = whole.index;
  EXPECT_EQ(core::dump(left), core::dump(whole));
}

TEST(LiveRows, ADeathIsSupersededByTheNextRegistration) {
  const std::vector<core::Event> events = {registered("n1", "b1"), registered("n2", "b1"),
                                           dead("n1"), dead("n2"), registered("n1", "b2")};
  EXPECT_THAT(gone(events), ElementsAre(3));
  expect_same_ledger(events);
}

TEST(LiveRows, ADeathThatStillHoldsStays) {
  EXPECT_THAT(gone({registered("n1", "b1"), dead("n1")}), IsEmpty());
  const std::vector<core::Event> twice = {registered("n1", "b1"), dead("n1"),
                                          registered("n1", "b2"), dead("n1")};
  EXPECT_THAT(gone(twice), ElementsAre(2));
  expect_same_ledger(twice);
}

TEST(LiveRows, TheStartsAroundALossStay) {
  const std::vector<core::Event> events = {started(1),         submitted("j1", "one"),
                                           started(2),         started(2'000'005),
                                           started(2'000'006), started(2'000'007)};
  EXPECT_THAT(gone(events), ElementsAre(5));
  expect_same_ledger(events);
}

// Starts between the first and the last are already gone: the remaining ones must not look like a
// loss.
TEST(LiveRows, ManyStartsAreNoLoss) {
  std::vector<core::Event> events = {started(1), submitted("j1", "one")};
  for (std::uint64_t epoch = 2; epoch < 40; ++epoch) events.push_back(started(epoch));
  expect_same_ledger(events);
  expect_same_ledger({started(1), submitted("j1", "one"), started(900'000), started(900'001)});
}

}  // namespace
}  // namespace muster::journal
