// The journal on SQLite: WAL, synchronous=FULL, one transaction and one sync a batch. Owns its
// directory (directory.h draws it), locked against a second controller. Format and reasons:
// docs/journal.md.
//
// Threads: as journal.h says; shortage() may be called from any. The archive is read by a
// connection of its own, opened when it is first asked for, in read transactions as long as one
// answer: the WAL can be begun anew between any two.
// Promises: what append returned for is there after power loss. What load() passes on is verified:
// each row's checksum over the row before it, the end against the head file. Damage is DataLoss,
// naming the index and the remedy; with accept_loss it goes on from the last sound row and keeps
// the damaged database beside the new one. With accept_loss and nothing to see the directory counts
// as an older copy: a loss of unknown size. A batch that was being written when the power went is
// there whole or not at all. Leaves to others: whether events make sense (the fold), whether the
// journal is behind what an agent was acknowledged (links; mark_behind() then: from there on it is
// only read), logging (notices()).
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "controller/journal/archive_table.h"
#include "controller/journal/ballast.h"
#include "controller/journal/database.h"
#include "controller/journal/directory.h"
#include "controller/journal/head.h"
#include "controller/journal/journal.h"
#include "controller/journal/kept_file.h"
#include "controller/journal/live_rows.h"
#include "controller/journal/row_table.h"

namespace muster::journal {

struct SqliteOptions {
  std::filesystem::path dir;  // made 0700 where missing (its parent must be there)
  bool accept_loss = false;
  // for load() alone, and nothing on the disk changes; NotFound: no journal is there. An unfinished
  // accepted loss is read as finished
  bool read_only = false;
  // an archived job, from its last event; nothing: for ever
  std::optional<Duration> archive_keep;
  std::uint64_t ballast_bytes = 64ull << 20;  // 0: none
  // the mark: below this much free space beside the ballast there is a shortage()
  std::uint64_t low_space_bytes = 128ull << 20;
  // Seams for tests: right before a batch's one sync, and right after it, before anything is
  // released. What they throw leaves append.
  std::function<void()> before_sync, after_sync;
};

class SqliteJournal final : public Journal {
 public:
  // Takes the directory; Conflict: another controller has it. Reads nothing yet.
  static Result<std::unique_ptr<SqliteJournal>> open(SqliteOptions options);
  ~SqliteJournal() override;

  Result<void> load(const std::function<void(const Row&)>& each) override;
  Result<void> append(std::span<const Row> batch) override;
  [[nodiscard]] JournalIndex last() const override { return last_; }
  // Not synced by itself: what a power cut undoes, the next load does again. ResourceExhausted (a
  // full disk) is not final here.
  Result<void> archive(const JobId& job) override;
  Result<std::vector<ArchivedJob>> archived(const std::optional<JobId>& before,
                                            std::size_t most) override;
  Result<std::optional<ArchivedJob>> archived_job(const JobId& job) override;

  // The journal is older than what was told to others, and only they know: nothing is appended any
  // more, also not after a later load(), until the loss is accepted or a newer directory is put
  // back. Durable.
  Result<void> mark_behind(std::string_view why);
  // Of a loaded one that was marked before: the sentence. It can be read, and nothing is appended.
  // Empty: it is not marked.
  [[nodiscard]] const std::string& behind() const { return behind_; }

  // Why the disk has no room for new jobs, which the caller refuses then; empty: it has. As the
  // disk is now, whatever was written last. Any thread.
  [[nodiscard]] std::string shortage() const { return ballast_.shortage(); }
  [[nodiscard]] bool ballast_is_there() const { return ballast_.there(); }  // any thread
  // A ballast that was spent is made again, if there is room; each append does so, too.
  void restore_ballast();
  // How many indexes --accept-loss gave up since the last ControllerStarted that is left, in this
  // life or in one that ended before it wrote its own (0: none). As many epochs may be among them:
  // add it to the next one. Nothing: unknown, because no head file of this
  // database's said how far it went, or the whole directory may be a copy.
  [[nodiscard]] std::optional<std::uint64_t> lost() const {
    return lost_ < kRowsUnknown ? std::optional(lost_) : std::nullopt;
  }
  // Of those behind lost(), how many losses were unknown: each moved the index on by kRowsUnknown.
  [[nodiscard]] std::uint64_t unknown_losses() const { return lost_ / kRowsUnknown; }
  // What open and load found or did that a person should read in the log.
  [[nodiscard]] const std::vector<std::string>& notices() const { return notices_; }

 private:
  explicit SqliteJournal(SqliteOptions options, DirectoryLock lock);

  struct Loaded {
    JournalIndex last;
    Digest chain;
    std::string damage;    // not empty: nothing behind `last` can be trusted
    bool walked = false;   // false: the database could not even be opened, and `last` says nothing
    bool rebuild = false;  // the damage is in the database, not only in the head file
  };
  Result<ArchiveTable*> archive_to_read();
  Result<void> open_database(bool make);
  [[nodiscard]] std::filesystem::path database_file() const;
  Result<Loaded> verify(const std::function<void(const Row&)>& each);
  Result<RowTable::End> replay(JournalIndex after, JournalIndex mark,
                               const std::function<void(const Row&)>& each);
  Result<void> accept_loss(const Loaded& loaded, const std::function<void(const Row&)>& each);
  Result<void> accept_unknown_loss(const Loaded& loaded);
  [[nodiscard]] Error refusal(const Loaded& loaded) const;
  Result<void> tidy();
  Result<void> move_rows(const JobId& job);
  Result<void> unsynced(const std::function<Result<void>()>& work);
  Result<void> write_batch(std::span<const Row> batch, const std::vector<Record>& records,
                           Digest& chain);

  SqliteOptions options_;
  DirectoryLock lock_;
  Ballast ballast_;
  std::unique_ptr<Database> database_;
  KeptFile database_kept_, wal_kept_;
  std::optional<RowTable> rows_;
  std::optional<ArchiveTable> archive_;
  // Of the thread that reads the archive. It goes before database_, whose closing moves what the
  // WAL holds.
  std::unique_ptr<Database> reading_;
  std::optional<ArchiveTable> read_archive_;
  std::optional<Head> found_head_;
  std::optional<HeadFile> head_file_;
  std::string journal_id_;
  ClusterId cluster_;
  LiveRows live_;
  JournalIndex last_;
  Digest chain_;
  std::uint64_t lost_ = 0;
  bool loaded_ = false, failed_ = false;
  std::string behind_;
  std::vector<std::string> notices_;
};

}  // namespace muster::journal
