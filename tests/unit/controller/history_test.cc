#include "controller/shell/history.h"

#include <gtest/gtest.h>

namespace muster::controller {
namespace {

EventPtr event(std::uint64_t index, const std::string& job = {}) {
  auto made = std::make_shared<v1::Event>();
  made->set_index(index);
  made->set_job_id(job);
  return made;
}

TEST(History, KeepsATailAndSaysFromWhere) {
  History history(10);
  for (std::uint64_t i = 1; i <= 25; ++i) history.add(event(i));
  EXPECT_EQ(history.oldest().value, 15u);
  EXPECT_FALSE(history.after(JournalIndex(14)));
  ASSERT_TRUE(history.after(JournalIndex(15)));
  EXPECT_EQ(history.after(JournalIndex(15))->size(), 10u);
  EXPECT_EQ(history.after(JournalIndex(24))->front()->index(), 25u);
  EXPECT_TRUE(history.after(JournalIndex(25))->empty());
  ASSERT_TRUE(history.after(JournalIndex(0)));  // from the beginning of what is kept
  EXPECT_EQ(history.after(JournalIndex(0))->front()->index(), 16u);
}

TEST(History, AJobsOwnEventsOutliveTheTailUntilItIsForgotten) {
  History history(4);
  history.add(event(1, "j"));
  for (std::uint64_t i = 2; i < 20; ++i) history.add(event(i, "other"));
  history.add(event(20, "j"));
  EXPECT_EQ(history.of_job(JobId("j"), JournalIndex(0)).size(), 2u);
  EXPECT_EQ(history.of_job(JobId("j"), JournalIndex(1)).size(), 1u);
  history.forget(JobId("j"));
  EXPECT_TRUE(history.of_job(JobId("j"), JournalIndex(0)).empty());
}

TEST(History, RowsThatWereArchivedBeforeTheLoadAreAHole) {
  History history;
  history.add(event(1));
  history.missing_to(JournalIndex(7));
  history.add(event(8));
  EXPECT_FALSE(history.after(JournalIndex(3)));
  EXPECT_TRUE(history.after(JournalIndex(7)));
}

}  // namespace
}  // namespace muster::controller
