// Journals of released versions replay for ever. tests/dumps/journal/VERSION has one journal, and,
// as text, the rows that it must give. A new version adds a directory: MUSTER_WRITE_DUMP=DIR makes
// this test write one there (docs/journal.md). Nothing is released yet: until then a change of the
// format makes the dump of v0.1.0 anew.
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/support/checkout.h"
#include "tests/unit/journal/journal_dir.h"

namespace muster::journal {
namespace {

std::string joined(const std::vector<std::string>& rows) {
  std::string text;
  for (const std::string& row : rows) text += row + "\n";
  return text;
}
// Rows of the replay, then of the archive.
std::string everything_in(const Opened& opened) {
  std::string text = "# replay\n" + joined(opened.rows) + "# archive\n";
  const auto jobs = opened.journal->archived({}, 1'000);
  for (const ArchivedJob& job : *jobs) {
    text += "job " + job.job.value + " " + job.name + "\n";
    for (const Row& row : job.rows) text += text_of(row) + "\n";
  }
  return text;
}

void write_dump(const std::filesystem::path& dir) {
  TempDir temporary;
  {
    Opened opened = open_journal(temporary.path());
    append(*opened.journal,
           {started(1), submitted("j1", "one"), submitted("j2", "two"), exited("j1", 0, 0),
            ended("j1"), archived("j1", "one"), exited("j2", 1, 1)});
    append(*opened.journal, {submitted("j3", "three"), ended("j3"), archived("j3", "three")});
    for (const char* job : {"j1", "j3"}) {
      if (!opened.journal->archive(JobId(job))) throw std::runtime_error("archiving");
    }
    for (core::Event& event : one_of_every_kind()) {
      // Rows of the last two kinds are those of j1 and j3.
      if (!std::holds_alternative<core::JobArchived>(event.body) &&
          !std::holds_alternative<core::TombstoneDropped>(event.body))
        append(*opened.journal, {event});
    }
  }
  {
    append(*open_journal(temporary.path()).journal, {started(2), tombstone_dropped("j3")});
  }
  sql(temporary.path(), "PRAGMA wal_checkpoint(TRUNCATE)");
  std::filesystem::create_directories(dir);
  for (const char* file : {"journal.db", "head"})
    write_all(dir / file, read_all(temporary.path() / file));
  // Last, because this load drops rows that have no effect.
  write_all(dir / "rows.txt", everything_in(open_journal(temporary.path())));
}

TEST(Dump, OfEveryReleasedVersionReplays) {
  if (const char* dir = std::getenv("MUSTER_WRITE_DUMP"); dir != nullptr) write_dump(dir);
  int versions = 0;
  for (const auto& version :
       std::filesystem::directory_iterator(test::checkout("tests/dumps/journal"))) {
    SCOPED_TRACE(version.path().filename().native());
    TempDir dir;
    copy_dir(version.path(), dir.path() / "journal");  // a test must not write into the checkout
    const Opened opened = open_journal(dir.path() / "journal");
    ASSERT_FALSE(opened.error) << opened.error->message;
    EXPECT_EQ(everything_in(opened), read_all(version.path() / "rows.txt"));
    ++versions;
  }
  EXPECT_GE(versions, 1);
}

}  // namespace
}  // namespace muster::journal
