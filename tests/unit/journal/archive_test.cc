// Finished jobs leave the replay, the chain stays whole, and what a replay needs stays.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <iterator>
#include <map>
#include <random>
#include <thread>

#include "controller/journal/memory_journal.h"
#include "tests/unit/journal/journal_dir.h"

namespace muster::journal {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

std::vector<std::string> texts_of(const ArchivedJob& job) {
  std::vector<std::string> texts;
  for (const Row& row : job.rows) texts.push_back(text_of(row));
  return texts;
}
std::int64_t rows_in(const std::filesystem::path& dir) {
  return sql_number(dir, "SELECT count(*) FROM rows WHERE format<>0");
}
std::int64_t bridges_in(const std::filesystem::path& dir) {
  return sql_number(dir, "SELECT count(*) FROM rows WHERE format=0");
}

TEST(Archive, TakesAJobOutOfTheReplay) {
  TempDir dir;
  Opened opened = open_journal(dir.path());
  const auto first =
      append(*opened.journal, {started(1), submitted("j1", "one"), submitted("j2", "two"),
                               exited("j1", 0, 0), exited("j2", 0, 0)});
  const auto second = append(*opened.journal, {ended("j1"), archived("j1", "one")});
  ASSERT_TRUE(opened.journal->archive(JobId("j1")));
  ASSERT_TRUE(opened.journal->archive(JobId("j1"))) << "idempotent";
  EXPECT_EQ(opened.journal->last(), JournalIndex(7));
  const auto check = [&](Journal& journal) {
    const auto job = journal.archived_job(JobId("j1"));
    ASSERT_TRUE(job && *job);
    EXPECT_EQ((*job)->name, "one");
    EXPECT_NE((*job)->submitted_at, WallTime{});
    EXPECT_THAT(texts_of(**job), ElementsAre(first[1], first[3], second[0]));
    EXPECT_FALSE(*journal.archived_job(JobId("j2")));
  };
  check(*opened.journal);
  opened.journal.reset();
  Opened again = open_journal(dir.path());
  ASSERT_FALSE(again.error) << again.error->message;
  EXPECT_THAT(again.rows, ElementsAre(first[0], first[2], first[4], second[1]));
  EXPECT_EQ(again.journal->last(), JournalIndex(7));
  check(*again.journal);
  const auto more = append(*again.journal, {ended("j2")});
  again.journal.reset();
  EXPECT_EQ(open_journal(dir.path()).rows.back(), more[0]);
}

TEST(Archive, WantsTheRecordFirst) {
  TempDir dir;
  Opened opened = open_journal(dir.path());
  append(*opened.journal, {submitted("j1", "one")});
  const auto refused = opened.journal->archive(JobId("j1"));
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message,
              HasSubstr("archiving job 'j1': its 'archived' record is not in the journal yet"));
  EXPECT_TRUE(opened.journal->archive(JobId("unknown")));
}

TEST(Archive, IsMadeUpForAfterACrashBeforeTheMove) {
  TempDir dir;
  {
    Opened opened = open_journal(dir.path());
    append(*opened.journal,
           {started(1), submitted("j1", "one"), ended("j1"), archived("j1", "one")});
  }
  EXPECT_THAT(open_journal(dir.path()).rows, SizeIs(4))
      << "once more in full: the fold meets JobArchived after the rest";
  const Opened after = open_journal(dir.path());
  EXPECT_THAT(after.rows, SizeIs(2));
  const auto job = after.journal->archived_job(JobId("j1"));
  ASSERT_TRUE(job && *job);
  EXPECT_THAT((*job)->rows, SizeIs(2));
}

TEST(Archive, ListsTheNewestFirstByPages) {
  TempDir dir;
  Opened opened = open_journal(dir.path());
  for (int i = 10; i < 20; ++i) {
    const std::string job = "j" + std::to_string(i);
    append(*opened.journal,
           {submitted(job, "n" + std::to_string(i)), ended(job), archived(job, "n")});
    ASSERT_TRUE(opened.journal->archive(JobId(job)));
  }
  std::vector<std::string> seen;
  std::optional<JobId> before;
  while (true) {
    const auto page = opened.journal->archived(before, 4);
    ASSERT_TRUE(page);
    if (page->empty()) break;
    EXPECT_LE(page->size(), 4u);
    for (const ArchivedJob& job : *page) {
      seen.push_back(job.name);
      EXPECT_THAT(job.rows, SizeIs(2));
    }
    before = page->back().job;
  }
  EXPECT_THAT(seen,
              ElementsAre("n19", "n18", "n17", "n16", "n15", "n14", "n13", "n12", "n11", "n10"));
}

// Regression: finished jobs stayed for ever, and the database only grew.
TEST(Archive, WhatIsOldGoesAFewAtATime) {
  TempDir dir;
  SqliteOptions options = options_for(dir.path());
  Opened opened = open_journal(options);
  const auto finish = [&](const std::string& job) {
    append(*opened.journal, {submitted(job, job), ended(job), archived(job, job)});
    ASSERT_TRUE(opened.journal->archive(JobId(job)));
  };
  const auto left = [&] {
    std::vector<std::string> names;
    const auto page = opened.journal->archived({}, 100);
    if (page) std::ranges::transform(*page, std::back_inserter(names), &ArchivedJob::name);
    return names;
  };
  for (const char* job : {"j1", "j2", "j3", "j4", "j5", "j6"}) finish(job);
  EXPECT_THAT(left(), SizeIs(6)) << "for ever, unless it is said how long";
  opened.journal.reset();
  options.archive_keep = std::chrono::hours(24 * 365 * 100);
  opened = open_journal(options);
  finish("j7");
  EXPECT_THAT(left(), SizeIs(7));
  opened.journal.reset();
  options.archive_keep = Duration::zero();  // the samples' events are years old
  opened = open_journal(options);
  finish("j8");
  EXPECT_THAT(left(), ElementsAre("j8", "j7", "j6", "j5"));
  EXPECT_FALSE(*opened.journal->archived_job(JobId("j4")));
}

TEST(Archive, ADamagedEntryHurtsNobodyElse) {
  TempDir dir;
  {
    Opened opened = open_journal(dir.path());
    for (const char* job : {"j1", "j2", "j3"})
      append(*opened.journal, {submitted(job, job), ended(job), archived(job, job)});
    for (const char* job : {"j1", "j2", "j3"}) ASSERT_TRUE(opened.journal->archive(JobId(job)));
  }
  sql(dir.path(),
      "UPDATE archive SET events=substr(events,1,length(events)-1) || x'00' WHERE job='j2'");
  Opened opened = open_journal(dir.path());
  ASSERT_FALSE(opened.error) << opened.error->message;
  const auto jobs = opened.journal->archived({}, 10);
  ASSERT_TRUE(jobs);
  ASSERT_THAT(*jobs, SizeIs(3));
  EXPECT_THAT((*jobs)[1].damage,
              HasSubstr("the stored events of job 'j2' do not fit their checksum"));
  EXPECT_THAT((*jobs)[1].rows, IsEmpty());
  EXPECT_EQ((*jobs)[0].damage, "");
  EXPECT_THAT((*jobs)[2].rows, SizeIs(2));
  // An accepted loss keeps the sound part of the archive and counts the rest.
  opened.journal.reset();
  sql(dir.path(), "UPDATE rows SET chain=zeroblob(16) WHERE idx=(SELECT max(idx) FROM rows)");
  opened = open_journal(dir.path(), true);
  ASSERT_FALSE(opened.error) << opened.error->message;
  EXPECT_THAT(opened.journal->notices().at(0), HasSubstr("1 of the archived jobs lost"));
  EXPECT_THAT(*opened.journal->archived({}, 10), SizeIs(2));
}

// A reader of the archive has a connection of its own, and delays neither an append nor a new start
// of the WAL.
TEST(Archive, IsReadDuringAppends) {
  TempDir dir;
  Opened opened = open_journal(dir.path());
  ASSERT_FALSE(opened.error) << opened.error->message;
  constexpr int kJobs = 300;
  std::atomic<int> moved = 0;
  std::atomic<bool> done = false;
  std::vector<std::string> wrong;
  std::size_t pages = 0;
  std::thread reader([&] {
    for (bool last = false; !last;) {
      last = done;
      const int there = moved;
      std::size_t seen = 0;
      for (std::optional<JobId> before;;) {
        const auto page = opened.journal->archived(before, 16);
        if (!page) wrong.push_back(page.error().message);
        if (!page || page->empty()) break;
        for (const ArchivedJob& job : *page) {
          if (!job.damage.empty()) wrong.push_back(job.damage);
        }
        seen += page->size();
        before = page->back().job;
        ++pages;
      }
      if (seen < static_cast<std::size_t>(there))
        wrong.push_back("a job that had been moved was not seen");
      if (there > 0 && !opened.journal->archived_job(JobId("j00001"))->has_value())
        wrong.push_back("the first was not found");
    }
  });
  for (int i = 1; i <= kJobs; ++i) {
    const std::string job = "j" + std::to_string(100'000 + i).substr(1);
    append(*opened.journal, {submitted(job, "n"), ended(job), archived(job, "n")});
    EXPECT_TRUE(opened.journal->archive(JobId(job)));
    moved = i;
  }
  done = true;
  reader.join();
  EXPECT_THAT(wrong, IsEmpty());
  EXPECT_GT(pages, 0U);
  // 1,000 pages of 4 KiB, after which SQLite starts the WAL anew if nobody reads, and what arrived
  // while one page was read.
  EXPECT_LT(std::filesystem::file_size(dir.path() / "journal.db-wal"), 24U << 20);
  opened.journal.reset();
  opened = open_journal(dir.path());
  ASSERT_FALSE(opened.error) << opened.error->message;
  EXPECT_EQ((*opened.journal->archived({}, kJobs + 1)).size(), static_cast<std::size_t>(kJobs));
}

TEST(Archive, DropsWhatIsSupersededOrSaysNothing) {
  TempDir dir;
  for (std::uint64_t incarnation = 1; incarnation <= 50; ++incarnation) {
    Opened opened = open_journal(dir.path());
    ASSERT_FALSE(opened.error) << opened.error->message;
    append(*opened.journal,
           {started(incarnation), registered("n01", "b" + std::to_string(incarnation)),
            registered("n02", "b" + std::to_string(incarnation))});
  }
  Opened opened = open_journal(dir.path());
  opened.journal.reset();
  opened = open_journal(dir.path());
  EXPECT_THAT(opened.rows, SizeIs(6))
      << "first and last start, first and last registration of each node";
  EXPECT_THAT(opened.rows.back(), HasSubstr("150 node_registered"));
  append(*opened.journal, {submitted("j1", "one"), ended("j1"), archived("j1", "one")});
  ASSERT_TRUE(opened.journal->archive(JobId("j1")));
  append(*opened.journal, {tombstone_dropped("j1")});
  opened.journal.reset();
  EXPECT_THAT(open_journal(dir.path()).rows, SizeIs(8));
  EXPECT_THAT(open_journal(dir.path()).rows, SizeIs(6))
      << "of a forgotten job nothing is left to replay";
  EXPECT_EQ(open_journal(dir.path()).journal->last(), JournalIndex(154));
}

TEST(Archive, DamageToABridgeIsSeen) {
  TempDir dir;
  {
    Opened opened = open_journal(dir.path());
    append(*opened.journal, {started(1), submitted("j1", "one"), ended("j1"),
                             submitted("j2", "two"), archived("j1", "one")});
    ASSERT_TRUE(opened.journal->archive(JobId("j1")));
    EXPECT_EQ(bridges_in(dir.path()), 1);
  }
  for (const char* hurt :
       {"UPDATE rows SET chain=zeroblob(16) WHERE format=0", "DELETE FROM rows WHERE format=0",
        "UPDATE rows SET payload=x'01' || substr(payload,2) WHERE format=0",
        "DELETE FROM rows WHERE idx=1", "UPDATE rows SET idx=2 WHERE format=0"}) {
    TempDir copy;
    copy_dir(dir.path(), copy.path() / "journal");
    sql(copy.path() / "journal", hurt);
    const Opened opened = open_journal(copy.path() / "journal");
    ASSERT_TRUE(opened.error) << hurt;
    EXPECT_EQ(opened.error->code, ErrorCode::DataLoss) << hurt;
    EXPECT_FALSE(open_journal(copy.path() / "journal", true).error) << hurt;
  }
}

// Many jobs at once, in and out in any order, with restarts: both implementations give the same as
// a simple model. The rows that are left to load stay in proportion to the live jobs.
TEST(Archive, AgreesWithAModelOverRandomHistories) {
  for (std::uint32_t seed = 1; seed <= 4; ++seed) {
    TempDir dir;
    std::mt19937 random(seed);
    const auto chance = [&](std::uint32_t of) { return random() % of == 0; };
    auto disk = std::make_shared<MemoryDisk>();
    Opened opened = open_journal(dir.path());
    auto memory = std::make_unique<MemoryJournal>(disk);
    ASSERT_TRUE(memory->load([](const Row&) {}));
    std::map<std::string, std::vector<std::string>> live, gone, tombs;  // job -> row texts
    int next_job = 100;
    const auto add = [&](const core::Event& event) {
      const auto texts = append(*opened.journal, {event});
      const auto same = append(*memory, {event});
      EXPECT_EQ(texts, same);
      return texts[0];
    };
    for (int step = 0; step < 600; ++step) {
      const auto any = [&](auto& map) {
        return std::next(map.begin(), static_cast<std::ptrdiff_t>(random() % map.size()));
      };
      if (live.size() < 3 || (live.size() < 12 && chance(3))) {
        const std::string job = "j" + std::to_string(next_job++);
        live[job].push_back(add(submitted(job, job)));
      } else if (chance(6)) {
        const auto job = any(live);
        job->second.push_back(add(ended(job->first)));
        tombs[job->first].push_back(add(archived(job->first, job->first)));
        ASSERT_TRUE(opened.journal->archive(JobId(job->first)));
        ASSERT_TRUE(memory->archive(JobId(job->first)));
        gone[job->first] = job->second;
        live.erase(job);
      } else if (!tombs.empty() && chance(8)) {
        const auto job = any(tombs);
        add(tombstone_dropped(job->first));
        tombs.erase(job);
      } else {
        const auto job = any(live);
        job->second.push_back(add(exited(job->first, static_cast<std::uint32_t>(step), 0)));
      }
      if (!chance(60)) continue;
      // the second time without what the first load dropped
      for (int twice = 0; twice < 2; ++twice) {
        opened.journal.reset();
        opened = open_journal(dir.path());
        ASSERT_FALSE(opened.error) << "seed " << seed << ": " << opened.error->message;
      }
      std::vector<std::string> expected, in_memory;
      for (const auto* map : {&live, &tombs}) {
        for (const auto& [job, rows] : *map)
          expected.insert(expected.end(), rows.begin(), rows.end());
      }
      std::ranges::sort(expected, {}, [](const std::string& text) { return std::stoi(text); });
      ASSERT_EQ(opened.rows, expected) << "seed " << seed;
      for (int twice = 0; twice < 2; ++twice) {
        memory = std::make_unique<MemoryJournal>(disk);
        in_memory.clear();
        ASSERT_TRUE(memory->load([&](const Row& row) { in_memory.push_back(text_of(row)); }));
      }
      ASSERT_EQ(in_memory, expected) << "seed " << seed;
      EXPECT_EQ(opened.journal->last(), memory->last());
      EXPECT_EQ(rows_in(dir.path()), static_cast<std::int64_t>(expected.size()));
      EXPECT_LE(bridges_in(dir.path()), rows_in(dir.path()) + 1);
    }
    EXPECT_GT(gone.size(), 20u);
    for (const auto& [job, rows] : gone) {
      const auto stored = opened.journal->archived_job(JobId(job));
      ASSERT_TRUE(stored && *stored);
      EXPECT_EQ(texts_of(**stored), rows);
      EXPECT_EQ(texts_of(**memory->archived_job(JobId(job))), rows);
    }
  }
}

}  // namespace
}  // namespace muster::journal
