// The faults of the MemoryJournal. archive_test.cc tests that it agrees with the real journal.
#include "controller/journal/memory_journal.h"

#include <gtest/gtest.h>

#include "tests/unit/journal/sample_events.h"

namespace muster::journal {
namespace {

Result<void> append(MemoryJournal& journal, core::Event event) {
  const Row row{.index = JournalIndex(journal.last().value + 1), .event = std::move(event)};
  return journal.append({&row, 1});
}
std::size_t rows_after_restart(const std::shared_ptr<MemoryDisk>& disk) {
  MemoryJournal journal(disk);
  std::size_t rows = 0;
  EXPECT_TRUE(journal.load([&](const Row&) { ++rows; }));
  return rows;
}

TEST(MemoryJournal, FailsBeforeOrAfterTheEffect) {
  auto disk = std::make_shared<MemoryDisk>();
  MemoryJournal journal(disk);
  ASSERT_TRUE(journal.load([](const Row&) {}));
  ASSERT_TRUE(append(journal, started(1)));
  disk->fail_next_append = MemoryDisk::Fail::BeforeEffect;
  EXPECT_FALSE(append(journal, submitted("j1", "one")));
  EXPECT_EQ(rows_after_restart(disk), 1u);
  disk->fail_next_append = MemoryDisk::Fail::AfterEffect;
  EXPECT_FALSE(append(journal, submitted("j1", "one")));
  EXPECT_EQ(rows_after_restart(disk), 2u);
  EXPECT_TRUE(append(journal, ended("j1")));
}

TEST(MemoryJournal, ForgetsWhatALazyDiskAcknowledged) {
  auto disk = std::make_shared<MemoryDisk>();
  MemoryJournal journal(disk);
  ASSERT_TRUE(journal.load([](const Row&) {}));
  ASSERT_TRUE(append(journal, started(1)));
  disk->lazy = true;
  ASSERT_TRUE(append(journal, submitted("j1", "one")));
  disk->sync();
  ASSERT_TRUE(append(journal, submitted("j2", "two")));
  disk->lose_power();
  EXPECT_EQ(rows_after_restart(disk), 2u);
  EXPECT_EQ(MemoryJournal(disk).last(), JournalIndex(2));
}

}  // namespace
}  // namespace muster::journal
