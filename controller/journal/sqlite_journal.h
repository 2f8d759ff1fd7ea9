// The journal on SQLite: WAL, synchronous=FULL, one transaction and one sync for each batch. main()
// of the controller owns one; dump_journal() opens one that only reads. The threads are those of
// journal.h.
//
// It owns its directory (see the drawing in directory.h), and locks it against a second controller.
// docs/journal.md describes the format and the reasons. Any thread may call shortage(). A
// connection of its own reads the archive. This connection is opened at the first read. Its read
// transactions last only as long as one answer, so that the WAL can start anew between any two.
//
// Promises:
// - A batch for which append() returned survives a power loss.
// - load() passes on only verified rows: each row's checksum covers the row before it, and the end
//   is compared with the head file. Damage is DataLoss; the text names the index and the remedy.
// - With accept_loss, load() continues from the last sound row, and keeps the damaged database in
//   the same directory. With accept_loss and no lost row to be seen, the directory counts as an
//   older copy: a loss of unknown size.
// - When the power fails while a batch is being written, the whole batch is stored, or none of it.
//
// It leaves to others:
// - whether events make sense (the fold does this);
// - whether the journal is older than what agents were acknowledged. The links check this, and
//   mark_behind() is called then; from there on the journal is only read;
// - logging (see notices()).
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "controller/core/journal_end/lost_end.h"
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
  std::filesystem::path dir;  // created with mode 0700 if missing (its parent must exist)
  bool accept_loss = false;
  // Only for load(); nothing on the disk changes. NotFound: there is no journal. An unfinished
  // accepted loss is read as if it were finished.
  bool read_only = false;
  // how long an archived job is kept, from its last event; nothing: for ever
  std::optional<Duration> archive_keep;
  std::uint64_t ballast_bytes = 64ull << 20;  // 0: no ballast
  // The mark: shortage() reports less free space than this, in addition to the ballast.
  std::uint64_t low_space_bytes = 128ull << 20;
  // Hooks for tests: right before a batch's one sync; and right after it, before anything is
  // released. Exceptions from them leave append().
  std::function<void()> before_sync, after_sync;
};

class SqliteJournal final : public Journal {
 public:
  // Locks the directory; Conflict: another controller has locked it. Loads nothing yet.
  static Result<std::unique_ptr<SqliteJournal>> open(SqliteOptions options);
  ~SqliteJournal() override;

  Result<void> load(const std::function<void(const Row&)>& each) override;
  Result<void> append(std::span<const Row> batch) override;
  [[nodiscard]] JournalIndex last() const override { return last_; }
  // Does not sync by itself: if a power cut undoes the move, the next load() repeats it.
  // ResourceExhausted (a full disk) is not final here.
  Result<void> archive(const JobId& job) override;
  Result<std::vector<ArchivedJob>> archived(const std::optional<JobId>& before,
                                            std::size_t most) override;
  Result<std::optional<ArchivedJob>> archived_job(const JobId& job) override;

  // Marks the journal as older than what the controller has reported to others; only the others
  // know this. `generation` is that of the lineage that they reported. Nothing is appended any
  // more, not even after a later load(), until the loss is accepted or a newer directory is
  // restored. Durable.
  Result<void> mark_behind(std::string_view why, std::uint64_t generation);
  // The sentence of the mark, if the loaded journal was marked before; it can be read, and nothing
  // is appended. Empty: the journal is not marked.
  [[nodiscard]] const std::string& behind() const { return behind_; }

  // Why the disk has no room for new jobs, which the caller then refuses; empty: it has room. The
  // answer describes the disk as it is now, not at the last write. Any thread.
  [[nodiscard]] std::string shortage() const { return ballast_.shortage(); }
  [[nodiscard]] bool ballast_is_there() const { return ballast_.there(); }  // any thread
  // Makes a spent ballast again, if there is room; each append() does so, too.
  void restore_ballast();
  // What --accept-loss has given up, if no JournalEndLost stands behind it yet. The next batch must
  // have one. This incarnation accepted the loss, or one that ended before it wrote its first
  // batch. The number of rows is unknown if no head file of this database shows how far it went, if
  // the end of its table cannot be read, or if no row is seen missing.
  [[nodiscard]] std::optional<core::LostEnd> lost() const;
  // What open() and load() found or did, and what a person should read in the log.
  [[nodiscard]] const std::vector<std::string>& notices() const { return notices_; }

 private:
  explicit SqliteJournal(SqliteOptions options, DirectoryLock lock);

  struct Loaded {
    JournalIndex last;
    Digest chain;
    std::string damage;  // not empty: nothing after `last` can be trusted
    // False: the database could not even be opened, and `last` has no meaning.
    bool walked = false;
    bool rebuild = false;  // the damage is in the database, not only in the head file
    std::string marked;    // the sentence of the mark; empty: there is none
  };
  Result<ArchiveTable*> archive_to_read();
  Result<void> open_database(bool make);
  [[nodiscard]] std::filesystem::path database_file() const;
  Result<Loaded> verify(const std::function<void(const Row&)>& each);
  Result<RowTable::End> replay(JournalIndex after, JournalIndex mark,
                               const std::function<void(const Row&)>& each);
  void remember(JournalIndex index, const core::Event& event);
  Result<void> accept_loss(const Loaded& loaded, const std::function<void(const Row&)>& each);
  Result<void> accept_unknown_loss(const Loaded& loaded);
  [[nodiscard]] Error refusal(const Loaded& loaded) const;
  [[nodiscard]] bool lost_unknown() const { return lost_ >= kRowsUnknown; }
  [[nodiscard]] Head head() const;
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
  // Used only by the thread that reads the archive. They are declared after database_, so that this
  // connection closes first: closing database_ moves the content of the WAL into the database file.
  std::unique_ptr<Database> reading_;
  std::optional<ArchiveTable> read_archive_;
  std::optional<Head> found_head_;
  std::optional<HeadFile> head_file_;
  std::string journal_id_;
  ClusterId cluster_;
  LiveRows live_;
  JournalIndex last_;
  Digest chain_;
  std::uint64_t lost_ = 0;        // indexes in lost bridges behind the last JournalEndLost
  std::uint64_t generation_ = 0;  // Head::generation
  bool loaded_ = false, failed_ = false;
  std::string behind_;
  std::vector<std::string> notices_;
};

}  // namespace muster::journal
