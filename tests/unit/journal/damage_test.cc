// What happens to a damaged, cut or old journal: a refusal that names the row and the remedy, or
// nothing worse than the promises allow.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "controller/journal/head.h"
#include "controller/journal/row_table.h"
#include "controller/journal/schema.h"
#include "tests/unit/journal/journal_dir.h"

namespace muster::journal {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

// Twelve rows in six batches, closed in good order: all of it is in journal.db.
std::vector<std::string> small_history(const std::filesystem::path& dir) {
  Opened opened = open_journal(dir);
  std::vector<std::string> written;
  const auto add = [&](const std::vector<core::Event>& events) {
    const auto texts = append(*opened.journal, events);
    written.insert(written.end(), texts.begin(), texts.end());
  };
  add({started(1), registered("n01", "b1")});
  add({submitted("j1", "one"), submitted("j2", "two"), submitted("j3", "three")});
  add({exited("j1", 0, 0)});
  add({exited("j1", 1, 1), exited("j2", 0, 0), exited("j3", 0, 0)});
  add({ended("j1"), ended("j2")});
  add({ended("j3")});
  return written;
}
bool is_prefix(const std::vector<std::string>& of, const std::vector<std::string>& rows) {
  return rows.size() <= of.size() && std::equal(rows.begin(), rows.end(), of.begin());
}

struct Hurt {
  std::string what, statement;
  std::size_t sound;
  std::string says;
  std::uint64_t highest = 12;  // index that can still be read
};
class DamagedRow : public testing::TestWithParam<Hurt> {};

TEST_P(DamagedRow, IsRefusedByNameAndGivenUpOnRequest) {
  const Hurt& hurt = GetParam();
  TempDir dir;
  const auto written = small_history(dir.path());
  sql(dir.path(), hurt.statement);

  const Opened refused = open_journal(dir.path());
  ASSERT_TRUE(refused.error);
  EXPECT_EQ(refused.error->code, ErrorCode::DataLoss);
  EXPECT_THAT(
      refused.error->message,
      AllOf(StartsWith("loading the journal in '" + dir.path().native() + "'"),
            HasSubstr(hurt.says),
            HasSubstr("rows 1 to " + std::to_string(hurt.sound) + " are sound"),
            HasSubstr("would be lost"),
            HasSubstr("start with --accept-loss to go on from row " + std::to_string(hurt.sound))));
  EXPECT_EQ(open_journal(dir.path()).error, refused.error) << "a refusal changes nothing";

  Opened accepted = open_journal(dir.path(), true);
  ASSERT_FALSE(accepted.error) << accepted.error->message;
  EXPECT_EQ(accepted.rows.size(), hurt.sound);
  EXPECT_TRUE(is_prefix(written, accepted.rows));
  EXPECT_EQ(accepted.journal->last(), JournalIndex(hurt.highest)) << "no index is used twice";
  ASSERT_TRUE(accepted.journal->lost());
  EXPECT_EQ(accepted.journal->lost()->rows, hurt.highest - hurt.sound);
  EXPECT_EQ(accepted.journal->lost()->generation, 0u);
  ASSERT_EQ(accepted.journal->notices().size(), 1u);
  EXPECT_THAT(accepted.journal->notices()[0],
              AllOf(HasSubstr(hurt.says), HasSubstr("journal.damaged-1.db")));
  EXPECT_TRUE(std::filesystem::exists(dir.path() / "journal.damaged-1.db"));
  const auto more = append(*accepted.journal, {end_lost(1), started(2)});
  EXPECT_THAT(more.at(0), StartsWith(std::to_string(hurt.highest + 1) + " "));
  EXPECT_FALSE(accepted.journal->lost());
  accepted.journal.reset();

  const Opened after = open_journal(dir.path());
  ASSERT_FALSE(after.error) << after.error->message;
  EXPECT_EQ(after.rows.size(), hurt.sound + 2);
  EXPECT_EQ(after.rows.at(hurt.sound), more[0]);
  EXPECT_EQ(after.rows.back(), more[1]);
  EXPECT_FALSE(after.journal->lost());
}

INSTANTIATE_TEST_SUITE_P(
    Each, DamagedRow,
    testing::Values(
        Hurt{"a bit of a payload",
             "UPDATE rows SET payload=CAST(substr(payload,1,9) || char(unicode(substr(CAST(payload "
             "AS TEXT),10,1))+1) || substr(payload,11) AS BLOB) WHERE idx=7",
             6, "row 7 does not fit its checksum"},
        Hurt{"a cut payload",
             "UPDATE rows SET payload=substr(payload,1,length(payload)-1) WHERE idx=5", 4,
             "row 5 does not fit its checksum"},
        Hurt{"its type", "UPDATE rows SET type=type+1 WHERE idx=9", 8,
             "row 9 does not fit its checksum"},
        Hurt{"its format", "UPDATE rows SET format=3 WHERE idx=2", 1,
             "row 2 does not fit its checksum"},
        Hurt{"posing as a bridge", "UPDATE rows SET format=0, type=0 WHERE idx=2", 1,
             "row 2 cannot be read as a row"},
        Hurt{"its index", "UPDATE rows SET idx=999 WHERE idx=8", 7,
             "after row 7 comes row 9: what was between is gone", 999},
        Hurt{"a negative index", "UPDATE rows SET idx=-3 WHERE idx=8", 0,
             "after row 0 comes row 18446744073709551613"},
        Hurt{"its checksum", "UPDATE rows SET chain=zeroblob(16) WHERE idx=6", 5,
             "row 6 does not fit its checksum"},
        Hurt{"no checksum", "UPDATE rows SET chain=x'' WHERE idx=6", 5,
             "row 6 cannot be read as a row"},
        Hurt{"a hole", "DELETE FROM rows WHERE idx=4", 3,
             "after row 3 comes row 5: what was between is gone"},
        Hurt{"a hole closed up",
             "DELETE FROM rows WHERE idx=4; UPDATE rows SET idx=idx-1 WHERE idx>4", 3,
             "row 4 does not fit its checksum"},
        Hurt{"the first row", "DELETE FROM rows WHERE idx=1", 0, "after row 0 comes row 2"},
        Hurt{"the tail", "DELETE FROM rows WHERE idx>10", 10,
             "the database ends at row 10, but row 12 was durable: it is an old copy, or its end "
             "was cut off"},
        Hurt{"the last row", "DELETE FROM rows WHERE idx=12", 11,
             "the database ends at row 11, but row 12 was durable"},
        Hurt{"two rows exchanged",
             "UPDATE rows SET idx=1000 WHERE idx=7; UPDATE rows SET idx=7 WHERE idx=8; UPDATE rows "
             "SET idx=8 WHERE idx=1000",
             6, "row 7 does not fit its checksum"}),
    [](const auto& param) {
      std::string name = param.param.what;
      std::ranges::replace(name, ' ', '_');
      return name;
    });

// A flipped bit anywhere in the file leads to the same rows, or to a refusal; and what
// --accept-loss then gives is a prefix. Never other rows, never a crash.
TEST(DamagedFile, AFlippedBitNeverGoesUnseen) {
  TempDir dir;
  const auto written = small_history(dir.path() / "good");
  // closed in good order: everything is in the database
  std::filesystem::remove(dir.path() / "good" / "journal.db-wal");
  std::filesystem::remove(dir.path() / "good" / "journal.db-shm");
  const std::string good = read_all(dir.path() / "good" / "journal.db");
  std::size_t refused = 0, unharmed = 0, known = 0, unknown = 0;
  for (std::size_t at = 0; at < good.size(); ++at) {
    // One byte in thirteen of the used space, one in 97 of the empty space between.
    const bool empty = good.compare(at, 16, std::string(16, '\0')) == 0;
    if (empty ? at % 97 != 0 : at % 13 != 0) continue;
    copy_dir(dir.path() / "good", dir.path() / "bad");
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ (1 << (at % 8)));
    write_all(dir.path() / "bad" / "journal.db", bad);
    const Opened opened = open_journal(dir.path() / "bad");
    if (!opened.error) {
      ASSERT_EQ(opened.rows, written) << "at byte " << at;
      ++unharmed;
      continue;
    }
    ++refused;
    ASSERT_TRUE(opened.error->code == ErrorCode::DataLoss ||
                opened.error->code == ErrorCode::Unsupported)
        << "at byte " << at << ": " << opened.error->message;
    // The version number itself: it looks like a newer muster's journal.
    if (opened.error->code == ErrorCode::Unsupported) continue;
    const Opened accepted = open_journal(dir.path() / "bad", true);
    ASSERT_FALSE(accepted.error) << "at byte " << at << ": " << accepted.error->message;
    ASSERT_TRUE(is_prefix(written, accepted.rows)) << "at byte " << at;
    const auto lost = accepted.journal->lost();
    ASSERT_TRUE(lost) << "at byte " << at;
    ASSERT_GE(accepted.journal->last(), JournalIndex(12)) << "at byte " << at;
    const std::uint64_t given_up = accepted.journal->last().value - accepted.rows.size();
    ASSERT_EQ(lost->rows, given_up < kRowsUnknown ? std::optional(given_up) : std::nullopt)
        << "at byte " << at;
    ++(lost->rows ? known : unknown);
  }
  EXPECT_GT(refused, 60u);
  EXPECT_GT(unharmed, 0u);
  EXPECT_GT(known, 0u);
  EXPECT_GT(unknown, 0u);
}

// No row is seen missing. The head may be older than the last row, so some may be: each start with
// --accept-loss counts as a loss.
TEST(DamagedFile, ALostJournalIdCostsNoRow) {
  TempDir dir;
  const auto written = small_history(dir.path());
  std::uint64_t last = 12;
  for (const char* hurt : {"UPDATE meta SET value='0123'", "DELETE FROM meta"}) {
    sql(dir.path(), hurt);
    EXPECT_EQ(open_journal(dir.path()).error.value_or(Error{}).code, ErrorCode::DataLoss);
    const Opened accepted = open_journal(dir.path(), true);
    ASSERT_FALSE(accepted.error) << accepted.error->message;
    EXPECT_EQ(accepted.rows, written);
    ASSERT_TRUE(accepted.journal->lost());
    EXPECT_EQ(accepted.journal->lost()->rows, std::nullopt);
    last += kRowsUnknown;
    EXPECT_EQ(accepted.journal->last(), JournalIndex(last));
  }
}

TEST(DamagedFile, ACutDatabaseIsRefused) {
  TempDir dir;
  const auto written = small_history(dir.path() / "good");
  std::filesystem::remove(dir.path() / "good" / "journal.db-wal");
  std::filesystem::remove(dir.path() / "good" / "journal.db-shm");
  const std::string good = read_all(dir.path() / "good" / "journal.db");
  for (std::size_t size = 0; size < good.size(); size += 512) {
    copy_dir(dir.path() / "good", dir.path() / "bad");
    write_all(dir.path() / "bad" / "journal.db", good.substr(0, size));
    const Opened opened = open_journal(dir.path() / "bad");
    if (!opened.error) {
      // only the archive's empty page was cut
      ASSERT_EQ(opened.rows, written) << "cut to " << size;
      continue;
    }
    ASSERT_EQ(opened.error->code, ErrorCode::DataLoss)
        << "cut to " << size << ": " << opened.error->message;
    const Opened accepted = open_journal(dir.path() / "bad", true);
    ASSERT_FALSE(accepted.error) << "cut to " << size << ": " << accepted.error->message;
    ASSERT_TRUE(is_prefix(written, accepted.rows));
    ASSERT_TRUE(accepted.journal->lost()) << "cut to " << size;
  }
  std::filesystem::remove(dir.path() / "good" / "journal.db");
  const Opened gone = open_journal(dir.path() / "good");
  ASSERT_TRUE(gone.error);
  EXPECT_THAT(gone.error->message,
              AllOf(HasSubstr("journal.db' is gone"), HasSubstr("go on from the last sound row")));
  const Opened anew = open_journal(dir.path() / "good", true);
  ASSERT_FALSE(anew.error) << anew.error->message;
  EXPECT_EQ(anew.journal->last(), JournalIndex(12 + kRowsUnknown))
      << "the head may be older than the rows that are gone";
}

TEST(OldDatabase, UnderANewerHeadIsRefused) {
  TempDir dir;
  {
    append(*open_journal(dir.path() / "journal").journal, {started(1), submitted("j1", "one")});
  }
  copy_dir(dir.path() / "journal", dir.path() / "backup");
  {
    append(*open_journal(dir.path() / "journal").journal, {exited("j1", 0, 0), ended("j1")});
  }
  for (const char* file : {"journal.db", "journal.db-wal", "journal.db-shm"}) {
    std::filesystem::remove(dir.path() / "journal" / file);
    if (std::filesystem::exists(dir.path() / "backup" / file))
      std::filesystem::copy_file(dir.path() / "backup" / file, dir.path() / "journal" / file);
  }
  const Opened opened = open_journal(dir.path() / "journal");
  ASSERT_TRUE(opened.error);
  EXPECT_EQ(opened.error->code, ErrorCode::DataLoss);
  EXPECT_THAT(opened.error->message,
              AllOf(HasSubstr("ends at row 2, but row 4 was durable"),
                    HasSubstr("rows 3 to 4 would be lost"), HasSubstr("--accept-loss")));
  // The whole directory, including its head, can be restored.
  EXPECT_FALSE(open_journal(dir.path() / "backup").error);
}

TEST(OldDatabase, WithANewerWalIsSoundOrRefused) {
  // Somebody restores only journal.db, and leaves the WAL of a killed controller next to it.
  TempDir dir;
  Opened opened = open_journal(dir.path() / "journal");
  append(*opened.journal, {started(1)});
  opened.journal.reset();
  copy_dir(dir.path() / "journal", dir.path() / "backup");
  opened = open_journal(dir.path() / "journal");
  std::vector<std::string> written = opened.rows;
  for (std::uint32_t i = 0; i < 3'000; ++i) {
    const auto texts = append(*opened.journal, {exited("j1", i, 1)});
    written.push_back(texts[0]);
  }
  copy_dir(dir.path() / "journal", dir.path() / "killed");
  std::filesystem::copy_file(dir.path() / "backup" / "journal.db",
                             dir.path() / "killed" / "journal.db",
                             std::filesystem::copy_options::overwrite_existing);
  const std::string database = read_all(dir.path() / "killed" / "journal.db"),
                    wal = read_all(dir.path() / "killed" / "journal.db-wal");
  const Opened mixed = open_journal(dir.path() / "killed");
  if (mixed.error) {
    EXPECT_EQ(mixed.error->code, ErrorCode::DataLoss) << mixed.error->message;
    EXPECT_EQ(read_all(dir.path() / "killed" / "journal.db"), database)
        << "put the right database back, and it is whole again";
    EXPECT_EQ(read_all(dir.path() / "killed" / "journal.db-wal"), wal);
  } else {
    EXPECT_EQ(mixed.rows, written);
  }
}

TEST(Head, BehindItsDatabaseIsOrdinary) {
  TempDir dir;
  Opened opened = open_journal(dir.path());
  append(*opened.journal, {started(1)});
  const std::string old_head = read_all(dir.path() / "head");
  append(*opened.journal, {submitted("j1", "one")});
  append(*opened.journal, {ended("j1")});
  opened.journal.reset();
  write_all(dir.path() / "head", old_head);
  const Opened after = open_journal(dir.path());
  ASSERT_FALSE(after.error) << after.error->message;
  EXPECT_EQ(after.rows.size(), 3u);
  EXPECT_EQ(head_in(dir.path()).index, JournalIndex(3));
}

TEST(Head, ATornSlotLeavesTheOther) {
  TempDir dir;
  Opened opened = open_journal(dir.path());
  append(*opened.journal, {started(1)});
  append(*opened.journal, {submitted("j1", "one")});
  opened.journal.reset();
  const std::string head = read_all(dir.path() / "head");
  ASSERT_EQ(head.size(), 1024u);
  EXPECT_THAT(head, HasSubstr(" c-1 0 "));  // people can read it
  for (const std::size_t slot : {0u, 512u}) {
    std::string torn = head;
    torn.replace(slot + 60, 200, 200, '#');
    write_all(dir.path() / "head", torn);
    EXPECT_EQ(head_in(dir.path()).index, JournalIndex(slot == 0 ? 2 : 1));
    const Opened after = open_journal(dir.path());
    EXPECT_FALSE(after.error);
    EXPECT_EQ(after.rows.size(), 2u);
  }
}

TEST(Head, GoneOrWhollyDamagedIsRefused) {
  TempDir dir;
  {
    append(*open_journal(dir.path()).journal, {started(1), submitted("j1", "one")});
  }
  const std::string head = read_all(dir.path() / "head");
  const auto refuses = [&](const std::string& says) {
    const Opened opened = open_journal(dir.path());
    ASSERT_TRUE(opened.error);
    EXPECT_EQ(opened.error->code, ErrorCode::DataLoss);
    EXPECT_THAT(opened.error->message, AllOf(HasSubstr(says), HasSubstr("rows 1 to 2 are sound"),
                                             HasSubstr("--accept-loss")));
  };
  write_all(dir.path() / "head", std::string(1024, 'x'));
  refuses("neither of its two slots is sound");
  write_all(dir.path() / "head", "");
  refuses("neither of its two slots is sound");
  std::filesystem::remove(dir.path() / "head");
  refuses("is gone, so that it is unknown whether the database is the newest");
  const Opened accepted = open_journal(dir.path(), true);
  ASSERT_FALSE(accepted.error);
  EXPECT_EQ(accepted.rows.size(), 2u);
  EXPECT_FALSE(std::filesystem::exists(dir.path() / "journal.damaged-1.db"))
      << "the database was sound: it stays";
}

// Without a head of its own, nobody knows what came after the database's last row. No index that
// anybody may have seen is used again. The loss is reported as unknown, not as none.
TEST(Head, WithoutItTheLossIsUnknown) {
  TempDir dir;
  for (const char* name :
       {"gone", "torn", "of another journal", "of another branch", "gone, and a row damaged"}) {
    SCOPED_TRACE(name);
    const std::filesystem::path at = dir.path() / name;
    {
      append(*open_journal(at).journal, {started(1)});
    }
    copy_dir(at, dir.path() / "branch");
    {
      append(*open_journal(at).journal, {submitted("j1", "one"), submitted("j2", "two")});
    }
    if (std::string_view(name).starts_with("gone")) std::filesystem::remove(at / "head");
    if (std::string_view(name) == "torn") write_all(at / "head", std::string(1024, 'x'));
    if (std::string_view(name).starts_with("of another")) {
      const std::filesystem::path other = std::string_view(name) == "of another branch"
                                              ? dir.path() / "branch"
                                              : dir.path() / "other";
      {
        append(*open_journal(other).journal, {started(1), ended("j9")});
      }
      std::filesystem::copy_file(other / "head", at / "head",
                                 std::filesystem::copy_options::overwrite_existing);
    }
    if (std::string_view(name).ends_with("damaged"))
      sql(at, "UPDATE rows SET type=type+1 WHERE idx=3");
    const std::uint64_t sound = std::string_view(name).ends_with("damaged") ? 2 : 3;
    ASSERT_TRUE(open_journal(at).error);
    // It dies before it has written its first batch: the next start knows no more.
    for (const bool accept_loss : {true, false}) {
      const Opened opened = open_journal(at, accept_loss);
      ASSERT_FALSE(opened.error) << opened.error->message;
      EXPECT_EQ(opened.rows.size(), sound);
      ASSERT_TRUE(opened.journal->lost());
      EXPECT_EQ(opened.journal->lost()->rows, std::nullopt);
      EXPECT_EQ(opened.journal->last(), JournalIndex(3 + kRowsUnknown)) << "row 3 can be read";
      if (accept_loss) {
        ASSERT_EQ(opened.journal->notices().size(), 1u);
        EXPECT_THAT(opened.journal->notices()[0],
                    HasSubstr("how many rows came between is not known"));
      }
    }
    Opened opened = open_journal(at);
    const auto more = append(*opened.journal, {end_lost(1), started(2)});
    EXPECT_THAT(more.at(0), StartsWith(std::to_string(3 + kRowsUnknown + 1) + " "));
    opened.journal.reset();
    opened = open_journal(at);
    ASSERT_FALSE(opened.error) << opened.error->message;
    EXPECT_EQ(opened.rows.size(), sound + 2);
    EXPECT_FALSE(opened.journal->lost()) << "it is recorded";
    std::filesystem::remove_all(dir.path() / "branch");
    std::filesystem::remove_all(dir.path() / "other");
  }
}

TEST(Head, ComesBackAsItWent) {
  TempDir dir;
  const auto file = dir.path() / "head";
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  Head head{.journal_id = std::string(32, 'a'),
            .index = JournalIndex(kMost),
            .chain = chain_start("a"),
            .cluster = ClusterId(std::string(128, 'c')),
            .generation = kMost};
  auto made = HeadFile::create(file, head);
  ASSERT_TRUE(made);
  EXPECT_EQ(head_in(dir.path()), head);
  EXPECT_EQ(generation_of(*HeadFile::read(file)), kMost);
  head.cluster = {};
  for (const std::uint64_t generation : {std::uint64_t{0}, std::uint64_t{7}}) {
    head.generation = generation;
    ASSERT_TRUE(made->write(head));
    ASSERT_TRUE(made->write(head));
    EXPECT_EQ(head_in(dir.path()), head);
    EXPECT_EQ(generation_of(*HeadFile::read(file)), generation);
  }
  // The checksum covers the generation.
  std::string text = read_all(file);
  for (std::size_t at = 0; (at = text.find(" - 7 ", at)) != std::string::npos;) text[at + 3] = '8';
  write_all(file, text);
  auto content = HeadFile::read(file);
  ASSERT_TRUE(content && std::holds_alternative<DamagedHead>(*content));
  EXPECT_EQ(generation_of(*content), 0u);
  std::filesystem::remove(file);
  content = HeadFile::read(file);
  ASSERT_TRUE(content && std::holds_alternative<NoHead>(*content));
  EXPECT_EQ(generation_of(*content), 0u);
  std::filesystem::create_directory(file);
  EXPECT_EQ(HeadFile::read(file).error().code, ErrorCode::Io) << "it is there, and unknown";
}

TEST(Head, OfAnotherJournalIsRefused) {
  TempDir dir;
  {
    append(*open_journal(dir.path() / "a").journal, {started(1)});
  }
  {
    append(*open_journal(dir.path() / "b").journal, {started(1)});
  }
  write_all(dir.path() / "a" / "head", read_all(dir.path() / "b" / "head"));
  const Opened opened = open_journal(dir.path() / "a");
  ASSERT_TRUE(opened.error);
  EXPECT_THAT(opened.error->message, HasSubstr("the head file belongs to another journal"));
}

TEST(Head, OfAnotherBranchIsRefused) {
  // Two controllers continued from copies of one directory: each is sound, but their heads do not
  // fit each other.
  TempDir dir;
  {
    append(*open_journal(dir.path() / "a").journal, {started(1)});
  }
  copy_dir(dir.path() / "a", dir.path() / "b");
  {
    append(*open_journal(dir.path() / "a").journal, {submitted("j1", "one"), ended("j1")});
  }
  {
    append(*open_journal(dir.path() / "b").journal, {submitted("j2", "two")});
  }
  write_all(dir.path() / "a" / "head", read_all(dir.path() / "b" / "head"));
  const Opened opened = open_journal(dir.path() / "a");
  ASSERT_TRUE(opened.error);
  EXPECT_THAT(opened.error->message,
              HasSubstr("row 2 is not the one that the head file was written for"));
}

// --- lost ends and generations -------------------------------------------------------------------
// A start, and a loss of generation 3 that was accepted before the next one.
void write_generation_3(const std::filesystem::path& dir) {
  append(*open_journal(dir).journal, {started(1), submitted("j1", "one")});
  append(*open_journal(dir).journal, {end_lost(3), started(2)});
  EXPECT_EQ(head_in(dir).generation, 3u);
}
void expect_lost(const Opened& opened, std::optional<std::uint64_t> rows,
                 std::uint64_t generation) {
  ASSERT_FALSE(opened.error) << opened.error->message;
  const auto lost = opened.journal->lost();
  ASSERT_TRUE(lost);
  EXPECT_EQ(lost->rows, rows);
  EXPECT_EQ(lost->generation, generation);
}

// A power cut may leave the head of an earlier batch, and so does this.
void put_older_head(const std::filesystem::path& dir, JournalIndex index) {
  Head head = head_in(dir);
  const auto database = Database::open(dir / "journal.db", Database::Mode::Write, kDatabaseText);
  ASSERT_TRUE(database);
  auto rows = RowTable::open(**database, head.journal_id);
  ASSERT_TRUE(rows);
  const auto row = rows->find(index);
  ASSERT_TRUE(row && *row);
  head.index = index;
  head.chain = (*row)->chain;
  ASSERT_TRUE(HeadFile::create(dir / "head", head));
}

// Twelve rows, the head of an earlier batch, and a damage.
struct Behindhand {
  std::string what;
  std::uint64_t head;
  std::string statement;
  std::uint64_t sound, last;
  std::optional<std::uint64_t> rows;
};
class OlderHead : public testing::TestWithParam<Behindhand> {};

TEST_P(OlderHead, NoLossIsUnseenAndNoIndexIsUsedTwice) {
  const Behindhand& param = GetParam();
  TempDir dir;
  const auto written = small_history(dir.path());
  put_older_head(dir.path(), JournalIndex(param.head));
  sql(dir.path(), param.statement);
  const Opened refused = open_journal(dir.path());
  ASSERT_TRUE(refused.error);
  EXPECT_EQ(refused.error->code, ErrorCode::DataLoss);
  // It dies before it has written its first batch, and more than once.
  for (const bool accept_loss : {true, false, false}) {
    const Opened opened = open_journal(dir.path(), accept_loss);
    expect_lost(opened, param.rows, 0);
    EXPECT_EQ(opened.rows.size(), param.sound);
    EXPECT_TRUE(is_prefix(written, opened.rows));
    EXPECT_EQ(opened.journal->last(), JournalIndex(param.last));
  }
  Opened opened = open_journal(dir.path());
  const auto more = append(*opened.journal, {end_lost(1), started(2)});
  EXPECT_THAT(more.at(0), StartsWith(std::to_string(param.last + 1) + " "));
  opened.journal.reset();
  opened = open_journal(dir.path());
  ASSERT_FALSE(opened.error) << opened.error->message;
  EXPECT_EQ(opened.rows.size(), param.sound + 2);
  EXPECT_FALSE(opened.journal->lost()) << "it is recorded";
}

INSTANTIATE_TEST_SUITE_P(
    Each, OlderHead,
    testing::Values(
        Behindhand{"a damaged row behind it", 5, "UPDATE rows SET type=type+1 WHERE idx=9", 8, 12,
                   4},
        Behindhand{"a damaged row in front of it", 8, "UPDATE rows SET type=type+1 WHERE idx=6", 5,
                   12, 7},
        Behindhand{"the last row damaged", 10, "UPDATE rows SET chain=x'' WHERE idx=12", 11, 12, 1},
        Behindhand{"a hole behind it", 5, "DELETE FROM rows WHERE idx=9", 8, 12, 4},
        Behindhand{"a hole in front of it", 8, "DELETE FROM rows WHERE idx=6", 5, 12, 7},
        Behindhand{"the journals id", 5, "UPDATE meta SET value='0123'", 12, 12 + kRowsUnknown,
                   std::nullopt},
        // Nothing shows whether the row had the next index.
        Behindhand{"an index beyond reason", 5, "UPDATE rows SET idx=1<<60 WHERE idx=12", 11,
                   11 + kRowsUnknown, std::nullopt},
        // A row may have had each of these indexes.
        Behindhand{"a higher index", 5, "UPDATE rows SET idx=999 WHERE idx=12", 11, 999, 988}),
    [](const auto& param) {
      std::string name = param.param.what;
      std::ranges::replace(name, ' ', '_');
      return name;
    });

TEST(LostEnd, ARecordedOneIsNotCountedAgain) {
  for (const char* id :
       {"", "UPDATE meta SET value='0123';"}) {  // then no row is replayed at first
    SCOPED_TRACE(id);
    TempDir dir;
    small_history(dir.path());
    sql(dir.path(), "DELETE FROM rows WHERE idx>8");
    {
      const Opened opened = open_journal(dir.path(), true);
      expect_lost(opened, 4, 0);
      append(*opened.journal, {end_lost(1), started(2)});
      append(*opened.journal, {exited("j1", 0, 1)});
    }
    sql(dir.path(), std::string(id) + "UPDATE rows SET type=type+1 WHERE idx=15");
    for (const bool accept_loss : {true, false}) {
      const Opened opened = open_journal(dir.path(), accept_loss);
      expect_lost(opened, 1, 1);
      EXPECT_EQ(opened.rows.size(), 10u);
      EXPECT_EQ(opened.journal->last(), JournalIndex(15));
    }
  }
}

// Without a head, rows behind the damage still count: an accepted loss may be among them.
TEST(LostEnd, WithoutAHeadGoesBeyondTheRowsBehindTheDamage) {
  TempDir dir;
  {
    append(*open_journal(dir.path()).journal, {started(1), submitted("j1", "one")});
  }
  {
    append(*open_journal(dir.path(), true).journal, {end_lost(1), started(2)});
  }
  const std::uint64_t last = 2 + kRowsUnknown + 2;
  EXPECT_EQ(open_journal(dir.path()).journal->last(), JournalIndex(last));
  sql(dir.path(), "UPDATE rows SET type=type+1 WHERE idx=2");
  std::filesystem::remove(dir.path() / "head");
  for (const bool accept_loss : {true, false}) {
    const Opened opened = open_journal(dir.path(), accept_loss);
    expect_lost(opened, std::nullopt, 0);
    EXPECT_EQ(opened.rows.size(), 1u);
    EXPECT_EQ(opened.journal->last(), JournalIndex(last + kRowsUnknown));
  }
}

TEST(LostEnd, IsUnknownIfTheEndOfTheTableCannotBeRead) {
  for (const std::uint64_t head : {2u, 31u}) {
    SCOPED_TRACE(head);
    TempDir dir;
    {
      Opened opened = open_journal(dir.path());
      append(*opened.journal, {started(1)});
      for (std::uint32_t rank = 0; rank < 30; ++rank) {  // two rows a page
        core::Event event = exited("j1", rank, 1);
        std::get<core::RankExited>(event.body).evidence.assign(1'500, 'x');
        append(*opened.journal, {event});
      }
    }
    put_older_head(dir.path(), JournalIndex(head));
    sql(dir.path(), "PRAGMA wal_checkpoint(TRUNCATE)");
    std::string content = read_all(dir.path() / "journal.db");
    ASSERT_GT(content.size(), 16u * 4'096);
    content.replace(content.size() - 4'096, 4'096, 4'096, '\xff');
    write_all(dir.path() / "journal.db", content);
    const Opened refused = open_journal(dir.path());
    ASSERT_TRUE(refused.error);
    EXPECT_THAT(refused.error->message,
                AllOf(HasSubstr("the database cannot be read after row "),
                      HasSubstr(head == 2 ? "every row after them would be lost"
                                          : " to 31 would be lost")));
    for (const bool accept_loss : {true, false}) {
      const Opened opened = open_journal(dir.path(), accept_loss);
      expect_lost(opened, std::nullopt, 0);
      EXPECT_LT(opened.rows.size(), 31u);
      EXPECT_EQ(opened.journal->last().value,
                (head == 2 ? opened.rows.size() : head) + kRowsUnknown);
    }
  }
}

TEST(LostEnd, IsReportedUntilARowRecordsIt) {
  for (const bool known : {true, false}) {
    SCOPED_TRACE(known);
    const auto rows = known ? std::optional<std::uint64_t>(2) : std::nullopt;
    TempDir dir;
    small_history(dir.path());
    if (known) sql(dir.path(), "DELETE FROM rows WHERE idx>10");
    expect_lost(open_journal(dir.path(), true), rows, 0);
    Opened opened = open_journal(dir.path());
    expect_lost(opened, rows, 0);
    append(*opened.journal, {started(2)});
    expect_lost(opened, rows, 0);
    opened.journal.reset();
    opened = open_journal(dir.path());
    expect_lost(opened, rows, 0);
    append(*opened.journal, {end_lost(1), started(3)});
    EXPECT_FALSE(opened.journal->lost());
    for (std::uint64_t epoch = 4; epoch < 7; ++epoch) {
      opened.journal.reset();
      opened = open_journal(dir.path());
      ASSERT_FALSE(opened.error) << opened.error->message;
      EXPECT_FALSE(opened.journal->lost());
      EXPECT_EQ(std::ranges::count_if(
                    opened.rows,
                    [](const std::string& row) { return row.contains(" journal_end_lost "); }),
                1);
      append(*opened.journal, {started(epoch)});
    }
    EXPECT_EQ(head_in(dir.path()).generation, 1u);
  }
}

// What was lost contained an accepted loss: the next lineage must be a newer one.
TEST(LostEnd, KeepsTheGenerationOfTheHead) {
  TempDir dir;
  write_generation_3(dir.path());
  sql(dir.path(), "DELETE FROM rows WHERE idx>2");
  // It dies before it has written its first batch, and more than once.
  for (const bool accept_loss : {true, false, false}) {
    const Opened opened = open_journal(dir.path(), accept_loss);
    expect_lost(opened, 2, 3);
    EXPECT_EQ(opened.rows.size(), 2u);
    EXPECT_EQ(head_in(dir.path()).generation, 3u);
  }
  Opened opened = open_journal(dir.path());
  append(*opened.journal, {end_lost(4), started(2)});
  opened.journal.reset();
  EXPECT_FALSE(open_journal(dir.path()).journal->lost());
  EXPECT_EQ(head_in(dir.path()).generation, 4u);
}

TEST(LostEnd, KeepsTheGenerationOfTheRows) {
  TempDir dir;
  write_generation_3(dir.path());
  std::filesystem::remove(dir.path() / "head");
  expect_lost(open_journal(dir.path(), true), std::nullopt, 3);
  expect_lost(open_journal(dir.path()), std::nullopt, 3);
  EXPECT_EQ(head_in(dir.path()).generation, 3u);
}

TEST(LostEnd, KeepsTheGenerationOfTheMark) {
  for (const bool damaged : {false, true}) {
    SCOPED_TRACE(damaged);
    TempDir dir;
    write_generation_3(dir.path());
    ASSERT_TRUE(open_journal(dir.path()).journal->mark_behind("node 'n1' knows more", 9));
    if (damaged) sql(dir.path(), "UPDATE rows SET type=type+1 WHERE idx=3");
    for (const bool accept_loss : {true, false})
      expect_lost(open_journal(dir.path(), accept_loss), std::nullopt, 9);
    EXPECT_EQ(head_in(dir.path()).generation, 9u);
  }
}

// A mark replaces the head, so it must not know less.
TEST(LostEnd, AMarkForgetsNoGeneration) {
  TempDir dir;
  write_generation_3(dir.path());
  ASSERT_TRUE(open_journal(dir.path()).journal->mark_behind("node 'n1' knows more", 1));
  EXPECT_EQ(mark_in(dir.path()).generation, 3u);
}

TEST(LostEnd, ADamagedMarkStillPauses) {
  TempDir dir;
  write_generation_3(dir.path());
  const auto file = dir.path() / "head";
  ASSERT_TRUE(HeadFile::mark_behind(file, "why", 70));
  const std::string whole = read_all(file);
  ASSERT_THAT(whole, AllOf(StartsWith("muster-journal-behind-1 70 "), HasSubstr("\nwhy\n")));
  EXPECT_EQ(mark_in(dir.path()).generation, 70u);
  std::string flipped = whole, cut = whole;
  flipped[whole.find("70")] = '6';
  cut.resize(whole.find("70") + 4);
  for (const std::string& text :
       {flipped, cut, std::string("muster-journal-behind-1 \nwhy\n"),
        std::string("muster-journal-behind-1 70\nwhy\n"), std::string("muster-journal-behind-1 "),
        std::string("muster-journal-behind-1 99999999999999999999999 0\n\n")}) {
    SCOPED_TRACE(text);
    write_all(file, text);
    const Behind mark = mark_in(dir.path());
    EXPECT_EQ(mark.generation, 0u);
    EXPECT_EQ(mark.why == "why", text.contains("why"));
    const Opened opened = open_journal(dir.path());
    ASSERT_FALSE(opened.error) << opened.error->message;
    EXPECT_NE(opened.journal->behind(), "");
    EXPECT_EQ(opened.rows.size(), 4u);
  }
  // The journal's own rows still show theirs.
  expect_lost(open_journal(dir.path(), true), std::nullopt, 3);
}

// If a copy was restored together with its head, it is sound, and nothing shows that it is a copy.
TEST(WholeCopy, OnceAcceptedItsLossIsUnknown) {
  TempDir dir;
  {
    append(*open_journal(dir.path()).journal, {started(1), submitted("j1", "one")});
  }
  std::uint64_t last = 2;
  for (std::uint64_t round = 1; round <= 2; ++round) {  // accepting once more does no harm
    last += kRowsUnknown;
    // It dies before it has written its first batch: the next start knows the same, and a start
    // that accepts again adds nothing.
    for (const bool accept_loss : {true, false, true}) {
      const Opened opened = open_journal(dir.path(), accept_loss);
      ASSERT_FALSE(opened.error) << opened.error->message;
      EXPECT_EQ(opened.rows.size(), 2 * round);
      ASSERT_TRUE(opened.journal->lost());
      EXPECT_EQ(opened.journal->lost()->rows, std::nullopt);
      EXPECT_EQ(opened.journal->lost()->generation, round - 1);
      EXPECT_EQ(opened.journal->last(), JournalIndex(last));
    }
    Opened opened = open_journal(dir.path());
    append(*opened.journal, {end_lost(round), started(1 + round)});
    last += 2;
    opened.journal.reset();
    opened = open_journal(dir.path());
    EXPECT_FALSE(opened.journal->lost()) << "it is recorded";
    EXPECT_EQ(opened.journal->last(), JournalIndex(last));
  }
  const Opened opened = open_journal(dir.path(), true);
  EXPECT_THAT(opened.rows,
              ElementsAre(HasSubstr(" controller_started "), HasSubstr(" job_submitted "),
                          HasSubstr(" journal_end_lost "), HasSubstr(" journal_end_lost "),
                          HasSubstr(" controller_started ")))
      << "a start in between may go, a loss may not";
  ASSERT_EQ(opened.journal->notices().size(), 1u);
  EXPECT_THAT(opened.journal->notices()[0],
              AllOf(HasSubstr("nothing is seen missing"),
                    HasSubstr("how many rows came between is not known")));
}

TEST(WholeCopy, ANewJournalHasNothingToLose) {
  TempDir dir;
  const Opened opened = open_journal(dir.path(), true);
  ASSERT_FALSE(opened.error) << opened.error->message;
  EXPECT_FALSE(opened.journal->lost());
  EXPECT_EQ(opened.journal->last(), JournalIndex(0));
}

// The journal's own rows would soon cover what showed that it is a copy. So the mark is durable,
// and every start only reads.
TEST(WholeCopy, OnceKnownItIsOnlyRead) {
  const std::string why = "node 'n1' was told up to row 9";
  for (const std::string_view way_out : {"accepted", "put back", "a false alarm"}) {
    TempDir dir;
    Opened opened = open_journal(dir.path() / "journal");
    append(*opened.journal, {started(1), submitted("j1", "one")});
    copy_dir(dir.path() / "journal", dir.path() / "newest");
    const std::string head = read_all(dir.path() / "journal" / "head");
    ASSERT_TRUE(opened.journal->mark_behind(why + std::string(5'000, '.'), 4));
    EXPECT_LE(std::filesystem::file_size(dir.path() / "journal" / "head"), 1'024u);
    EXPECT_EQ(read_all(dir.path() / "journal" / "head.before-mark"), head);
    EXPECT_THROW(append(*opened.journal, {ended("j1")}), std::runtime_error);
    for (int start = 0; start < 2; ++start) {
      opened.journal.reset();
      opened = open_journal(dir.path() / "journal");
      ASSERT_FALSE(opened.error) << opened.error->message;
      EXPECT_THAT(opened.journal->behind(), HasSubstr(why));
      EXPECT_LT(opened.journal->behind().size(), 2'000u);
      EXPECT_EQ(mark_in(dir.path() / "journal").generation, 4u);
      EXPECT_EQ(opened.rows.size(), 2u);
      EXPECT_THROW(append(*opened.journal, {ended("j1")}), std::runtime_error);
    }
    opened.journal.reset();
    if (way_out == "put back") {
      std::filesystem::copy(dir.path() / "newest", dir.path() / "journal",
                            std::filesystem::copy_options::recursive |
                                std::filesystem::copy_options::overwrite_existing);
    }
    if (way_out == "a false alarm")
      std::filesystem::rename(dir.path() / "journal" / "head.before-mark",
                              dir.path() / "journal" / "head");
    opened = open_journal(dir.path() / "journal", way_out == "accepted");
    ASSERT_FALSE(opened.error) << opened.error->message;
    EXPECT_EQ(opened.rows.size(), 2u);
    EXPECT_EQ(opened.journal->behind(), "");
    for (int start = 0; start < 2; ++start) {  // the second without the flag, and without the mark
      ASSERT_FALSE(opened.error) << opened.error->message;
      EXPECT_EQ(opened.journal->lost().has_value(), way_out == "accepted");
      if (way_out == "accepted") {
        EXPECT_EQ(opened.journal->lost()->rows, std::nullopt);
        EXPECT_EQ(opened.journal->lost()->generation, 4u);
        EXPECT_EQ(opened.journal->last(), JournalIndex(2 + kRowsUnknown));
      }
      opened.journal.reset();
      opened = open_journal(dir.path() / "journal");
    }
    EXPECT_FALSE(opened.error);
  }
}

// A supervisor that always starts it with the flag uses up indexes and attempt numbers. So the
// number of losses is bounded, and there is a way to continue.
TEST(WholeCopy, IsNotAcceptedWithoutEnd) {
  TempDir dir;
  {
    append(*open_journal(dir.path()).journal, {started(1)});
  }
  {
    auto database = Database::open(dir.path() / "journal.db", Database::Mode::Write, kDatabaseText);
    ASSERT_TRUE(database);
    auto rows = RowTable::open(**database, **journal_id_of(**database));
    ASSERT_TRUE(rows);
    const auto end = rows->walk({}, [](const RowTable::Stored&) { return Result<void>(); });
    ASSERT_TRUE(end);
    ASSERT_TRUE(rows->bridge_lost(end->chain, JournalIndex(2), JournalIndex(500 * kRowsUnknown)));
  }
  {
    append(*open_journal(dir.path()).journal, {end_lost(1), started(2)});
  }
  const Opened refused = open_journal(dir.path(), true);
  ASSERT_TRUE(refused.error);
  EXPECT_EQ(refused.error->code, ErrorCode::ResourceExhausted);
  EXPECT_THAT(refused.error->message, HasSubstr("start without --accept-loss"));
  EXPECT_FALSE(open_journal(dir.path()).error);
}

// A crash anywhere between the steps of an accepted loss leads, after the next start, to the same
// journal.
TEST(Salvage, IsFinishedByTheNextStart) {
  TempDir dir;
  const auto written = small_history(dir.path() / "damaged");
  sql(dir.path() / "damaged", "DELETE FROM rows WHERE idx=9");
  copy_dir(dir.path() / "damaged", dir.path() / "done");
  ASSERT_FALSE(open_journal(dir.path() / "done", true).error);
  // The state right after the commit point: the old files under their names, and the complete new
  // one next to them. Then one step further each time.
  for (int step = 0; step < 3; ++step) {
    const auto stopped = dir.path() / ("stopped-" + std::to_string(step));
    copy_dir(dir.path() / "damaged", stopped);
    write_all(stopped / "journal.db-wal", "an old WAL");
    std::filesystem::copy_file(dir.path() / "done" / "journal.db", stopped / "journal.db.salvaged");
    if (step >= 1)
      std::filesystem::rename(stopped / "journal.db-wal", stopped / "journal.damaged-1.db-wal");
    if (step >= 2)
      std::filesystem::rename(stopped / "journal.db", stopped / "journal.damaged-1.db");
    // No --accept-loss, because it was already accepted.
    const Opened opened = open_journal(stopped);
    ASSERT_FALSE(opened.error) << opened.error->message;
    EXPECT_EQ(opened.rows, (std::vector<std::string>{written.begin(), written.begin() + 8}));
    EXPECT_EQ(opened.journal->last(), JournalIndex(12));
    ASSERT_TRUE(opened.journal->lost()) << "the bridge still shows it";
    EXPECT_EQ(opened.journal->lost()->rows, 4u);
    ASSERT_EQ(opened.journal->notices().size(), 1u);
    EXPECT_EQ(read_all(stopped / "journal.damaged-1.db-wal"), "an old WAL");
    EXPECT_FALSE(std::filesystem::exists(stopped / "journal.db.salvaged"));
  }
}

// The same with a head, or a mark, that knows of more generations than the rows that were kept.
TEST(Salvage, KeepsTheGenerationOfTheHeadOrMark) {
  TempDir dir;
  write_generation_3(dir.path() / "damaged");
  sql(dir.path() / "damaged", "DELETE FROM rows WHERE idx=3");
  copy_dir(dir.path() / "damaged", dir.path() / "done");
  expect_lost(open_journal(dir.path() / "done", true), 2, 3);
  for (const bool marked : {false, true}) {
    const auto stopped = dir.path() / (marked ? "marked" : "stopped");
    copy_dir(dir.path() / "damaged", stopped);
    std::filesystem::copy_file(dir.path() / "done" / "journal.db", stopped / "journal.db.salvaged");
    if (marked) {
      ASSERT_TRUE(HeadFile::mark_behind(stopped / "head", "why", 9));
    }
    for (int start = 0; start < 2; ++start) expect_lost(open_journal(stopped), 2, marked ? 9 : 3);
  }
}

}  // namespace
}  // namespace muster::journal
