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

core::Event secret_set(const std::string& name, const std::string& item) {
  return {.at = {},
          .body = core::SecretSet{.key = {.owner = "ann", .shared = false, .name = name},
                                  .item = item,
                                  .replaced = {},
                                  .actor = "ann"}};
}
core::Event secret_removed(const std::string& name) {
  return {.at = {},
          .body = core::SecretRemoved{
              .key = {.owner = "ann", .shared = false, .name = name}, .item = {}, .actor = "ann"}};
}

TEST(LiveRows, OfASecretTheLastValueStays) {
  const std::vector<core::Event> events = {secret_set("hf", "i1"), secret_set("other", "i2"),
                                           secret_set("hf", "i3")};
  EXPECT_THAT(gone(events), ElementsAre(1));
  expect_same_ledger(events);
}

TEST(LiveRows, OfASecretThatWasRemovedNothingStays) {
  const std::vector<core::Event> events = {secret_set("hf", "i1"), secret_set("hf", "i2"),
                                           secret_removed("hf"), secret_set("other", "i3")};
  EXPECT_THAT(gone(events), ElementsAre(1, 2, 3));
  expect_same_ledger(events);
  EXPECT_THAT(gone({secret_set("hf", "i1"), secret_removed("hf"), secret_set("hf", "i2")}),
              ElementsAre(1, 2));
}

core::Event store_set(const std::string& name, const std::string& url) {
  core::StoreSet set{.key = {.owner = "ann", .shared = false, .name = name},
                     .profile = {},
                     .actor = "ann"};
  set.profile.set_url(url);
  return {.at = {}, .body = std::move(set)};
}
core::Event store_removed(const std::string& name) {
  return {.at = {},
          .body = core::StoreRemoved{.key = {.owner = "ann", .shared = false, .name = name},
                                     .actor = "ann"}};
}

TEST(LiveRows, OfAStoreTheLastProfileStays) {
  const std::vector<core::Event> events = {store_set("a", "s3://a"), store_set("b", "s3://b"),
                                           store_set("a", "s3://c"), store_removed("b")};
  EXPECT_THAT(gone(events), ElementsAre(1, 2, 4));
  expect_same_ledger(events);
}

core::Event drained(const std::string& node, const std::string& why) {
  return {.at = {}, .body = core::NodeDrained{.node = NodeName(node), .actor = "ann", .why = why}};
}
core::Event undrained(const std::string& node) {
  return {.at = {}, .body = core::NodeUndrained{.node = NodeName(node), .actor = "ann"}};
}
core::Event labelled(const std::string& node, const std::string& rack) {
  return {.at = {},
          .body = core::NodeLabelled{
              .node = NodeName(node), .actor = "ann", .labels = {{"rack", rack}}}};
}
core::Event removed(const std::string& node) {
  return {.at = {}, .body = core::NodeRemoved{.node = NodeName(node), .actor = "ann"}};
}

TEST(LiveRows, OnlyTheLastDrainAndTheLastLabelsStay) {
  const std::vector<core::Event> events = {
      registered("n1", "b1"), drained("n1", "a"),   labelled("n1", "r1"),  drained("n2", "b"),
      drained("n1", "c"),     labelled("n1", "r2"), registered("n1", "b2")};
  EXPECT_THAT(gone(events), ElementsAre(2, 3));
  expect_same_ledger(events);
}

TEST(LiveRows, ADrainThatIsOverLeavesNothing) {
  const std::vector<core::Event> events = {registered("n1", "b1"), drained("n1", "a"),
                                           undrained("n1"),        drained("n1", "b"),
                                           undrained("n1"),        undrained("n1")};
  EXPECT_THAT(gone(events), ElementsAre(2, 3, 4, 5, 6));
  expect_same_ledger(events);
}

TEST(LiveRows, ANodeThatWasRemovedLeavesNothing) {
  const std::vector<core::Event> events = {registered("n1", "b1"),
                                           registered("n2", "b1"),
                                           drained("n1", "a"),
                                           labelled("n1", "r1"),
                                           registered("n1", "b2"),
                                           registered("n1", "b3"),
                                           dead("n1"),
                                           removed("n1"),
                                           registered("n1", "b4"),
                                           labelled("n1", "again"),
                                           registered("n1", "b5")};
  EXPECT_THAT(gone(events), ElementsAre(1, 3, 4, 5, 6, 7, 8));
  expect_same_ledger(events);
}

core::Event renamed(const std::string& node, const std::string& new_name) {
  return {.at = {},
          .body = core::NodeRenamed{
              .node = NodeName(node), .new_name = NodeName(new_name), .actor = "ann"}};
}

TEST(LiveRows, ANodeThatWasRenamedTakesItsRowsAlong) {
  const std::vector<core::Event> events = {registered("n1", "b1"),
                                           drained("n1", "a"),
                                           labelled("n1", "r1"),
                                           registered("n1", "b2"),
                                           dead("n1"),
                                           renamed("n1", "m1"),
                                           registered("n1", "c1"),
                                           registered("m1", "b3"),
                                           labelled("m1", "r2"),
                                           renamed("m1", "m2"),
                                           undrained("m2"),
                                           registered("m2", "b4"),
                                           drained("n1", "new")};
  EXPECT_THAT(gone(events), ElementsAre(2, 3, 4, 5, 8, 11));
  expect_same_ledger(events);
  std::vector<core::Event> more = events;
  more.push_back(removed("m2"));
  EXPECT_THAT(gone(more), ElementsAre(1, 2, 3, 4, 5, 6, 8, 9, 10, 11, 12, 14));
  expect_same_ledger(more);
}

TEST(LiveRows, OnlyTheFirstAndTheLastStartStay) {
  std::vector<core::Event> events = {started(1), submitted("j1", "one"), started(2)};
  EXPECT_THAT(gone(events), IsEmpty());
  events.push_back(started(3));
  EXPECT_THAT(gone(events), ElementsAre(3));
  for (std::uint64_t epoch = 4; epoch < 40; ++epoch) events.push_back(started(epoch));
  EXPECT_EQ(gone(events).size(), 37u);
  expect_same_ledger(events);
  // The distance of the epochs means nothing.
  const std::vector<core::Event> far = {started(1), submitted("j1", "one"), started(2'000'005),
                                        started(2'000'006)};
  EXPECT_THAT(gone(far), ElementsAre(3));
  expect_same_ledger(far);
}

TEST(LiveRows, EachLossOfTheEndStays) {
  const std::vector<core::Event> events = {started(1),
                                           submitted("j1", "one"),
                                           started(2),
                                           end_lost(1),
                                           started(3),
                                           started(4),
                                           submitted("j2", "two"),
                                           end_lost(2),
                                           started(5),
                                           end_lost(3),
                                           end_lost(5),
                                           started(6),
                                           started(7)};
  EXPECT_THAT(gone(events), ElementsAre(3, 5, 6, 9, 12));
  expect_same_ledger(events);
  core::Ledger ledger;
  for (const core::Event& event : events)
    core::apply(ledger, JournalIndex(ledger.index.value + 1), event);
  EXPECT_EQ(ledger.jobs.at(JobId("j1")).attempts_lost, 12u) << "each of them counts";
  EXPECT_EQ(ledger.jobs.at(JobId("j2")).attempts_lost, 9u);
}

}  // namespace
}  // namespace muster::journal
