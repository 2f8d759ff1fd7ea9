// The process dies, or the power fails, at any point of the journal's writes. What was released is
// stored, and what is stored is a prefix of what was appended, with whole batches.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "tests/unit/journal/journal_dir.h"
#include "tests/unit/journal/sync_points.h"

namespace muster::journal {
namespace {

// Batches that a reopened journal shows row by row (one start, and one registration for each node:
// nothing is superseded).
std::vector<std::vector<core::Event>> script() {
  std::vector<std::vector<core::Event>> batches = {{started(1), registered("n01", "b1")},
                                                   {submitted("j1", "one")},
                                                   {submitted("j2", "two"), exited("j1", 0, 0)}};
  core::Event large = exited("j2", 7, 1);
  std::get<core::RankExited>(large.body).evidence.assign(20'000, 'x');  // several pages
  batches.push_back({large, exited("j1", 1, 0)});
  batches.push_back({ended("j1"), exited("j2", 0, 1)});
  batches.push_back({archived("j1", "one")});  // and then archive()
  batches.push_back({exited("j2", 2, 1)});
  batches.push_back({ended("j2")});
  return batches;
}
constexpr std::size_t kArchiveAfter = 5;  // the batch with JobArchived

// Texts of every row of the script, and where each batch ends in them.
struct Expected {
  std::vector<std::string> rows;
  std::vector<std::size_t> ends = {0};
};
Expected expected_of(const std::vector<std::vector<core::Event>>& batches) {
  Expected expected;
  for (const auto& batch : batches) {
    for (const core::Event& event : batch)
      expected.rows.push_back(
          text_of({.index = JournalIndex(expected.rows.size() + 1), .event = event}));
    expected.ends.push_back(expected.rows.size());
  }
  return expected;
}

// The rows of the replay and of the archive, by index.
std::vector<std::string> everything(const std::filesystem::path& dir) {
  const Opened opened = open_journal(dir);
  if (opened.error) return {opened.error->message};
  std::vector<std::string> rows = opened.rows;
  const auto archive = opened.journal->archived({}, 100);
  for (const ArchivedJob& job : *archive) {
    for (const Row& row : job.rows) rows.push_back(text_of(row));
  }
  std::ranges::sort(rows, {}, [](const std::string& text) { return std::stoi(text); });
  // load replays an unmoved job's rows and then archives them
  rows.erase(std::ranges::unique(rows).begin(), rows.end());
  return rows;
}

// Runs the script in a child that dies at sync number `die_at`, before or after it. Returns how
// many batches had been released, and the number of syncs if it did not die.
struct Ran {
  std::size_t released = 0;
  bool died = false;
};
Ran run_and_die(const std::filesystem::path& dir,
                const std::vector<std::vector<core::Event>>& batches, std::uint64_t die_at,
                bool before) {
  int pipe[2];
  if (::pipe(pipe) != 0) throw std::runtime_error("pipe");
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(pipe[0]);
    std::uint64_t seen = 0;
    on_sync([&](bool is_before) {
      if (is_before) ++seen;
      if (seen == die_at && is_before == before) ::_exit(9);
    });
    Opened opened = open_journal(dir);
    for (std::size_t i = 0; i < batches.size(); ++i) {
      append(*opened.journal, batches[i]);
      if (i == kArchiveAfter && !opened.journal->archive(JobId("j1"))) ::_exit(8);
      if (::write(pipe[1], "r", 1) != 1) ::_exit(8);
    }
    opened.journal.reset();
    ::_exit(0);
  }
  ::close(pipe[1]);
  Ran ran;
  char byte = 0;
  while (::read(pipe[0], &byte, 1) == 1) ++ran.released;
  ::close(pipe[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  if (!WIFEXITED(status) || (WEXITSTATUS(status) != 0 && WEXITSTATUS(status) != 9))
    throw std::runtime_error("the child went wrong");
  ran.died = WEXITSTATUS(status) == 9;
  return ran;
}

TEST(Crash, AtAnySyncKeepsWhatWasReleased) {
  const auto batches = script();
  const Expected expected = expected_of(batches);
  int points = 0;
  for (const bool before : {true, false}) {
    for (std::uint64_t die_at = 1;; ++die_at) {
      TempDir dir;
      const Ran ran = run_and_die(dir.path() / "journal", batches, die_at, before);
      const auto rows = everything(dir.path() / "journal");
      ASSERT_TRUE(std::ranges::find(expected.ends, rows.size()) != expected.ends.end())
          << "sync " << die_at << ": half a batch, or: " << (rows.empty() ? "" : rows[0]);
      ASSERT_TRUE(std::equal(rows.begin(), rows.end(), expected.rows.begin())) << "sync " << die_at;
      ASSERT_GE(rows.size(), expected.ends[ran.released])
          << "sync " << die_at << ": a released batch is gone";
      if (!ran.died) {
        EXPECT_EQ(rows, expected.rows);
        break;
      }
      ++points;
    }
  }
  EXPECT_GT(points, 2 * 8);
}

// The process dies at any sync of a start that accepts a loss. A next start without the flag is
// refused, pauses, or reports the loss. One with the flag may have to accept the loss again. Both
// report the highest generation that was known.
struct Loss {
  std::string what;
  std::string statement;  // that damages the database
  std::uint64_t generation;
  std::size_t sound;
};
class CrashOfAnAcceptedLoss : public testing::TestWithParam<Loss> {};

TEST_P(CrashOfAnAcceptedLoss, IsSeenByTheNextStart) {
  const Loss& loss = GetParam();
  TempDir dir;
  const auto before = dir.path() / "before", at = dir.path() / "journal";
  std::string older_head;
  {
    Opened opened = open_journal(before);
    append(*opened.journal, {started(1), submitted("j1", "one")});
    older_head = read_all(before / "head");
    append(*opened.journal, {end_lost(3), started(2)});
    if (loss.what == "marked") {
      ASSERT_TRUE(opened.journal->mark_behind("node 'n1' knows more", 9));
    }
  }
  if (!loss.statement.empty()) sql(before, loss.statement);
  if (loss.what.ends_with("older_head")) write_all(before / "head", older_head);
  if (loss.what == "no_head") std::filesystem::remove(before / "head");
  int points = 0, stopped = 0, reported = 0;
  for (std::uint64_t die_at = 1;; ++die_at) {
    SCOPED_TRACE(die_at);
    copy_dir(before, at);
    const pid_t child = ::fork();
    if (child == 0) {
      std::uint64_t seen = 0;
      on_sync([&](bool is_before) {
        if (is_before && ++seen == die_at) ::_exit(9);
      });
      ::_exit(open_journal(at, true).error ? 8 : 0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    ASSERT_TRUE(WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 9));
    const auto reports = [&loss](const Opened& opened) {
      ASSERT_FALSE(opened.error) << opened.error->message;
      ASSERT_TRUE(opened.journal->lost());
      EXPECT_EQ(opened.journal->lost()->generation, loss.generation);
      EXPECT_EQ(opened.rows.size(), loss.sound);
    };
    copy_dir(at, dir.path() / "without");
    const Opened without = open_journal(dir.path() / "without");
    if (without.error) {
      EXPECT_EQ(without.error->code, ErrorCode::DataLoss);
      ++stopped;
    } else if (!without.journal->behind().empty()) {
      ++stopped;
    } else {
      reports(without);
      ++reported;
    }
    reports(open_journal(at, true));
    if (HasFatalFailure() || WEXITSTATUS(status) == 0) break;
    ++points;
  }
  EXPECT_GT(points, 2);
  EXPECT_GT(stopped, 0);
  EXPECT_GT(reported, 0);
}

INSTANTIATE_TEST_SUITE_P(
    Each, CrashOfAnAcceptedLoss,
    testing::Values(Loss{"damaged", "DELETE FROM rows WHERE idx=3", 3, 2},
                    Loss{"damaged_behind_an_older_head", "UPDATE rows SET type=type+1 WHERE idx=4",
                         3, 3},
                    Loss{"all_rows_kept", "UPDATE meta SET value='0123'", 3, 4},
                    Loss{"all_rows_kept_with_an_older_head", "UPDATE meta SET value='0123'", 3, 4},
                    Loss{"no_head", "", 3, 4}, Loss{"marked", "", 9, 4}),
    [](const auto& param) { return param.param.what; });

TEST(Crash, AtTheSeamsOfABatch) {
  struct Dead {};
  for (const bool before : {true, false}) {
    TempDir dir;
    SqliteOptions options = options_for(dir.path());
    bool armed = false;
    const auto die = [&] {
      if (armed) throw Dead{};
    };
    (before ? options.before_sync : options.after_sync) = die;
    Opened opened = open_journal(std::move(options));
    append(*opened.journal, {started(1)});
    armed = true;
    EXPECT_THROW(append(*opened.journal, {submitted("j1", "one"), submitted("j2", "two")}), Dead);
    opened.journal.reset();
    EXPECT_EQ(open_journal(dir.path()).rows.size(), before ? 1u : 3u);
  }
}

// The power fails during a batch's sync: the WAL has some of it, and the head is the one from
// before. What is torn was not released.
TEST(Crash, ATornWalIsTheBatchBeforeOrTheWholeBatch) {
  TempDir dir;
  const auto live = dir.path() / "live", torn = dir.path() / "torn";
  const auto batches = script();
  const Expected expected = expected_of(batches);
  Opened opened = open_journal(live);
  int whole = 0, without = 0;
  for (std::size_t i = 0; i < kArchiveAfter; ++i) {
    const std::string head_before = read_all(live / "head");
    const std::size_t size_before = std::filesystem::exists(live / "journal.db-wal")
                                        ? std::filesystem::file_size(live / "journal.db-wal")
                                        : 0;
    append(*opened.journal, batches[i]);
    const std::string wal = read_all(live / "journal.db-wal"), head_after = read_all(live / "head");
    ASSERT_GT(wal.size(), size_before);
    for (std::size_t cut = size_before; cut <= wal.size();
         cut += cut + 997 < wal.size() || cut == wal.size() ? 997 : wal.size() - cut) {
      for (const char* tail : {"", "garbage that an earlier life of these blocks left behind"}) {
        copy_dir(live, torn);
        write_all(torn / "journal.db-wal", wal.substr(0, cut) + tail);
        std::filesystem::remove(torn / "journal.db-shm");
        write_all(torn / "head", head_before);
        Opened after = open_journal(torn);
        ASSERT_FALSE(after.error) << after.error->message;
        const std::size_t rows = after.rows.size();
        ASSERT_TRUE(rows == expected.ends[i] || rows == expected.ends[i + 1]) << rows;
        ASSERT_TRUE(std::equal(after.rows.begin(), after.rows.end(), expected.rows.begin()));
        ++(rows == expected.ends[i] ? without : whole);
        after.journal.reset();
        // The same WAL with the head from after: that batch was durable and released, so its loss
        // is not an ordinary crash.
        if (rows == expected.ends[i]) {
          copy_dir(live, torn);
          write_all(torn / "journal.db-wal", wal.substr(0, cut) + tail);
          std::filesystem::remove(torn / "journal.db-shm");
          const Opened refused = open_journal(torn);
          ASSERT_TRUE(refused.error);
          ASSERT_EQ(refused.error->code, ErrorCode::DataLoss);
          ASSERT_THAT(refused.error->message,
                      testing::HasSubstr("ends at row " + std::to_string(rows)));
        }
      }
    }
  }
  EXPECT_GT(whole, 0);
  EXPECT_GT(without, 20);
}

}  // namespace
}  // namespace muster::journal
