#include "controller/journal/sqlite_journal.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "common/base/assert.h"
#include "common/base/time.h"
#include "controller/journal/salvage.h"
#include "controller/journal/schema.h"

namespace muster::journal {

namespace fs = std::filesystem;

namespace {

// How many unknown losses a journal has at most when a loss is accepted although nothing shows one.
// Each of them raises the numbers of the attempts, usually by less than twice kAttemptsUnknown, and
// agents are not believed beyond kAttemptReportedMax.
constexpr std::uint64_t kUnknownLossesMost = 500;
static_assert(kUnknownLossesMost * 2 * core::kAttemptsUnknown <= core::kAttemptReportedMax);
// How many archived jobs are dropped when one is archived. It is more than one, so that a backlog
// shrinks as well.
constexpr std::size_t kDropMost = 4;
// A start writes less than this: its own row, the head, and SQLite's index of the WAL.
constexpr std::uint64_t kStartBytes = 4 << 20;

}  // namespace

SqliteJournal::SqliteJournal(SqliteOptions options, DirectoryLock lock)
    : options_(std::move(options)),
      lock_(std::move(lock)),
      ballast_(options_.dir, options_.ballast_bytes, options_.low_space_bytes),
      database_kept_(database_file()),
      wal_kept_(options_.dir / "journal.db-wal") {}

SqliteJournal::~SqliteJournal() {
  // Not needed for safety. After an orderly stop, this sync lets a head as new as the database
  // survive a power cut.
  if (head_file_ && !failed_) (void)head_file_->sync();
}

Result<std::unique_ptr<SqliteJournal>> SqliteJournal::open(SqliteOptions options) {
  if (options.read_only) {
    auto lock = DirectoryLock::take_to_read(options.dir);
    if (!lock) return fail(std::move(lock.error()));
    return std::unique_ptr<SqliteJournal>(new SqliteJournal(std::move(options), std::move(*lock)));
  }
  if (auto made = make_private_directory(options.dir); !made) return fail(std::move(made.error()));
  auto lock = DirectoryLock::take(options.dir);
  if (!lock) return fail(std::move(lock.error()));
  std::unique_ptr<SqliteJournal> journal(new SqliteJournal(std::move(options), std::move(*lock)));
  journal->ballast_.spend_early(kStartBytes);
  auto finished = finish_salvage(journal->options_.dir);
  if (!finished) return fail(std::move(finished.error()));
  if (*finished)
    journal->notices_.push_back(
        fmt::format("an accepted loss was finished: the damaged database is kept as '{}'",
                    (journal->options_.dir / **finished).native()));
  return journal;
}

// --- load ----------------------------------------------------------------------------------------
fs::path SqliteJournal::database_file() const {
  // What an accepted loss saved, and what no start has renamed yet.
  fs::path salvaged = options_.dir / "journal.db.salvaged";
  if (std::error_code ignored; options_.read_only && fs::exists(salvaged, ignored)) return salvaged;
  return options_.dir / "journal.db";
}

Result<void> SqliteJournal::open_database(bool make) {
  auto database = Database::open(
      database_file(), options_.read_only ? Database::Mode::Inspect : Database::Mode::Write,
      kDatabaseText);
  if (!database) return fail(std::move(database.error()));
  auto id = journal_id_of(**database);
  if (!id) return fail(std::move(id.error()));
  if (!*id) {
    if (!make || options_.read_only) return fail(ErrorCode::DataLoss, "the database is empty");
    auto fresh = new_journal_id();
    if (!fresh) return fail(std::move(fresh.error()));
    if (auto made = make_tables(**database, *fresh); !made) return made;
    *id = std::move(*fresh);
    if (auto synced = sync_directory(options_.dir); !synced) return synced;
  }
  if (auto set = (*database)->execute(
          "PRAGMA busy_timeout=2000; PRAGMA cell_size_check=ON; PRAGMA trusted_schema=OFF");
      !set)
    return set;
  if (!options_.read_only) {
    // synchronous=FULL syncs the WAL in each commit; only checkpoints sync the database file
    // itself.
    if (auto set = (*database)->execute("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL"); !set)
      return set;
  }
  auto rows = RowTable::open(**database, **id);
  if (!rows) return fail(std::move(rows.error()));
  auto archive = ArchiveTable::open(**database);
  if (!archive) return fail(std::move(archive.error()));
  archive_ = std::move(*archive);
  rows_ = std::move(*rows);
  database_ = std::move(*database);
  journal_id_ = std::move(**id);
  return {};
}

void SqliteJournal::remember(JournalIndex index, const core::Event& event) {
  if (const auto* started = std::get_if<core::ControllerStarted>(&event.body))
    cluster_ = started->cluster;
  if (const auto* end_lost = std::get_if<core::JournalEndLost>(&event.body)) {
    lost_ = 0;
    generation_ = std::max(generation_, end_lost->lineage.generation);
  }
  live_.add(index, event);
}

Result<RowTable::End> SqliteJournal::replay(JournalIndex after, JournalIndex mark,
                                            const std::function<void(const Row&)>& each) {
  return rows_->walk(mark, [&](const RowTable::Stored& row) -> Result<void> {
    if (row.index <= after) return {};
    if (row.is_bridge()) {
      if (row.lost) lost_ += row.index.value - row.from.value + 1;
      return {};
    }
    auto event = decode(row.record);
    if (!event) return fail(std::move(event.error()).in(fmt::format("row {}", row.index.value)));
    remember(row.index, *event);
    each({.index = row.index, .event = std::move(*event)});
    return {};
  });
}

Result<SqliteJournal::Loaded> SqliteJournal::verify(const std::function<void(const Row&)>& each) {
  Loaded loaded;
  const auto damaged = [&](std::string what, bool rebuild) -> Result<Loaded> {
    loaded.damage = std::move(what);
    loaded.rebuild = rebuild;
    return loaded;
  };
  auto content = HeadFile::read(options_.dir / "head");
  if (!content) return fail(std::move(content.error()));
  generation_ = generation_of(*content);
  std::string head_trouble;
  const fs::path file = database_file();
  const bool salvaged = file.extension() == ".salvaged";  // it gets its head when it is renamed
  if (!salvaged) {
    if (const auto* head = std::get_if<Head>(&*content)) found_head_ = *head;
    if (const auto* mark = std::get_if<Behind>(&*content)) loaded.marked = mark->why;
    if (const auto* bad = std::get_if<DamagedHead>(&*content)) head_trouble = bad->why;
    if (!loaded.marked.empty()) head_trouble = loaded.marked;
  }
  const bool may_be_new = head_trouble.empty() && (!found_head_ || found_head_->index.value == 0);
  struct stat status{};
  const bool gone = ::stat(file.c_str(), &status) != 0;
  if (gone && !may_be_new)
    return damaged(fmt::format("the database '{}' is gone", file.native()), true);
  if (gone && options_.read_only)
    return fail(ErrorCode::NotFound, fmt::format("there is no journal '{}'", file.native()));
  if (auto opened = open_database(may_be_new); !opened) {
    if (opened.error().code == ErrorCode::DataLoss)
      return damaged(std::move(opened.error().message), true);
    return fail(std::move(opened.error()));
  }

  auto end = replay({}, found_head_ ? found_head_->index : JournalIndex(), each);
  if (!end) return fail(std::move(end.error()));
  loaded.last = end->last;
  loaded.chain = end->chain;
  loaded.walked = true;
  if (!end->damage.empty()) return damaged(std::move(end->damage), true);
  if (!head_trouble.empty()) return damaged(std::move(head_trouble), false);
  if (!found_head_) {
    // A new journal: its creation ends with the head file.
    if (loaded.last.value == 0 || salvaged) return loaded;
    return damaged(
        fmt::format(
            "the head file '{}' is gone, so that it is unknown whether the database is the newest",
            (options_.dir / "head").native()),
        false);
  }
  if (found_head_->journal_id != journal_id_ && found_head_->index.value != 0)
    return damaged("the head file belongs to another journal", false);
  if (loaded.last < found_head_->index) {
    return damaged(fmt::format("the database ends at row {}, but row {} was durable: it is an old "
                               "copy, or its end was cut off",
                               loaded.last.value, found_head_->index.value),
                   true);
  }
  if (found_head_->journal_id == journal_id_ && end->at_mark &&
      *end->at_mark != found_head_->chain) {
    return damaged(fmt::format("row {} is not the one that the head file was written for: the two "
                               "come from different copies",
                               found_head_->index.value),
                   false);
  }
  return loaded;
}

// The database is sound, but no head file shows how far it went: it may be an old copy. Its rows
// stay, and no index that anybody may have seen is used again.
Result<void> SqliteJournal::accept_unknown_loss(const Loaded& loaded) {
  const JournalIndex from(loaded.last.value + 1), to(loaded.last.value + kRowsUnknown);
  auto bridged = database_->transaction([&]() -> Result<void> {
    auto chain = rows_->bridge_lost(loaded.chain, from, to);
    if (!chain) return fail(std::move(chain.error()));
    chain_ = *chain;
    return {};
  });
  if (!bridged) return bridged;
  last_ = to;
  lost_ += kRowsUnknown;
  notices_.push_back(
      fmt::format("accepted: {}; going on from row {}, new rows begin at {}; how many rows came "
                  "between is not known",
                  loaded.damage, loaded.last.value, to.value + 1));
  return {};
}

Result<void> SqliteJournal::accept_loss(const Loaded& loaded,
                                        const std::function<void(const Row&)>& each) {
  if (!loaded.rebuild) return accept_unknown_loss(loaded);
  archive_.reset();
  rows_.reset();
  database_.reset();
  auto saved = salvage(options_.dir, found_head_);
  if (!saved) return fail(std::move(saved.error()).in("saving what is sound of the journal"));
  auto aside = finish_salvage(options_.dir);
  if (!aside) return fail(std::move(aside.error()).in("saving what is sound of the journal"));
  if (auto opened = open_database(false); !opened) return opened;
  // The rows of the damaged database up to its first damage have been passed on. There are more
  // rows only when that database could not be opened, or when it had lost its id.
  auto end = replay(loaded.last, {}, each);
  if (!end) return fail(std::move(end.error()));
  MUSTER_ASSERT(saved->sound >= loaded.last && end->last.value + 1 == saved->next.value,
                "a salvage that kept other rows than were replayed");
  MUSTER_ASSERT(lost_ > 0, "an accepted loss that nothing records");
  notices_.push_back(
      fmt::format("accepted: {}; going on from row {}, new rows begin at {}{}; {} of the archived "
                  "jobs lost; the damaged database is kept as '{}'",
                  loaded.damage, saved->sound.value, saved->next.value,
                  lost_unknown() ? ", how many rows came between is not known" : "",
                  saved->archive_unreadable ? "all" : fmt::format("{}", saved->archived_lost),
                  (options_.dir / aside->value_or("")).native()));
  last_ = end->last;
  chain_ = end->chain;
  return {};
}

// The form is "doing what: what is wrong; what is sound and what would be lost; what to do".
Error SqliteJournal::refusal(const Loaded& loaded) const {
  const std::uint64_t newest = found_head_ ? found_head_->index.value : 0;
  std::string extent = "which rows are sound shows only when it is taken apart",
              from = "the last sound row";
  if (loaded.walked) {
    extent = fmt::format("rows 1 to {} are sound", loaded.last.value);
    from = fmt::format("row {}", loaded.last.value);
    if (newest > loaded.last.value) {
      extent += fmt::format(", rows {} to {} would be lost", loaded.last.value + 1, newest);
    } else if (loaded.rebuild) {
      extent += ", every row after them would be lost";
    }
  }
  return {.code = ErrorCode::DataLoss,
          .message = fmt::format(
              "{}; {}; restore the whole directory from a newer copy, or start with --accept-loss "
              "to go on from {}{}",
              loaded.damage, extent, from,
              loaded.rebuild ? " (the damaged database is kept next to the new one)" : "")};
}

Result<void> SqliteJournal::load(const std::function<void(const Row&)>& each) {
  MUSTER_ASSERT(!loaded_ && database_ == nullptr, "a journal loaded twice");
  const std::string doing = fmt::format("loading the journal in '{}'", options_.dir.native());
  auto loaded = verify(each);
  if (!loaded) return fail(std::move(loaded.error()).in(doing));
  last_ = loaded->last;
  chain_ = loaded->chain;
  if (!loaded->marked.empty() && !loaded->rebuild && !options_.accept_loss && !options_.read_only) {
    behind_ = std::move(loaded->marked);
    failed_ = loaded_ = true;
    return {};
  }
  if (!loaded->damage.empty()) {
    if (!options_.accept_loss || options_.read_only) return fail(refusal(*loaded).in(doing));
    if (auto accepted = accept_loss(*loaded, each); !accepted)
      return fail(std::move(accepted.error()).in(doing));
  } else if (options_.accept_loss && !options_.read_only && last_.value != 0 && !lost_unknown()) {
    loaded->damage =
        "nothing is seen missing, as in a directory that was put back whole from an older copy";
    if (last_.value / kRowsUnknown >= kUnknownLossesMost) {
      return fail(ErrorCode::ResourceExhausted,
                  fmt::format("{}: {}, and such a loss was accepted {} times already, which is as "
                              "often as its numbers allow; start without --accept-loss",
                              doing, loaded->damage, kUnknownLossesMost));
    }
    if (auto accepted = accept_unknown_loss(*loaded); !accepted)
      return fail(std::move(accepted.error()).in(doing));
  }
  if (options_.read_only) {
    loaded_ = true;
    return {};
  }
  auto created = HeadFile::create(options_.dir / "head", head());
  if (!created) return fail(std::move(created.error()).in(doing));
  head_file_ = std::move(*created);
  if (auto ballast = ballast_.restore(); !ballast) {
    if (ballast.error().code != ErrorCode::ResourceExhausted)
      return fail(std::move(ballast.error()).in(doing));
    notices_.push_back(std::move(ballast.error().message));
  }
  if (auto tidied = tidy(); !tidied) {
    if (!database_->no_room()) return fail(std::move(tidied.error()).in(doing));
    notices_.push_back(std::move(tidied.error().message));
  }
  if (auto kept = database_kept_.check(); !kept) return fail(std::move(kept.error()).in(doing));
  database_->checkpoint_on_close();
  loaded_ = true;
  return {};
}

std::optional<core::LostEnd> SqliteJournal::lost() const {
  if (lost_ == 0) return std::nullopt;
  return core::LostEnd{.rows = lost_unknown() ? std::nullopt : std::optional(lost_),
                       .generation = generation_};
}

Head SqliteJournal::head() const {
  return {.journal_id = journal_id_,
          .index = last_,
          .chain = chain_,
          .cluster = cluster_,
          .generation = generation_};
}

Result<void> SqliteJournal::mark_behind(std::string_view why, std::uint64_t generation) {
  MUSTER_ASSERT(loaded_ && !options_.read_only,
                "a journal marked before it was loaded, or one that is only read");
  failed_ = true;
  const fs::path file = options_.dir / "head";
  generation_ = std::max(generation_, generation);
  auto marked = HeadFile::mark_behind(file, why, generation_);
  if (!marked && ballast_.spend()) marked = HeadFile::mark_behind(file, why, generation_);
  return marked ? marked : HeadFile::mark_behind_in_place(file, why, generation_);
}

// --- append --------------------------------------------------------------------------------------
Result<void> SqliteJournal::write_batch(std::span<const Row> batch,
                                        const std::vector<Record>& records, Digest& chain) {
  return database_->transaction([&]() -> Result<void> {
    for (std::size_t i = 0; i < batch.size(); ++i) {
      chain = chain_next(chain, batch[i].index, records[i]);
      if (auto inserted = rows_->insert(batch[i].index, records[i], chain); !inserted)
        return inserted;
    }
    if (options_.before_sync) options_.before_sync();
    return {};
  });
}

Result<void> SqliteJournal::append(std::span<const Row> batch) {
  MUSTER_ASSERT(loaded_ && !options_.read_only,
                "a journal appended to before it was loaded, or one that is only read");
  if (failed_)
    return fail(ErrorCode::Io, fmt::format("appending to the journal in '{}': an earlier write "
                                           "failed, or it is older than it must be; start again",
                                           options_.dir.native()));
  if (batch.empty()) return {};
  std::vector<Record> records;
  records.reserve(batch.size());
  for (const Row& row : batch) {
    MUSTER_ASSERT(row.index.value == last_.value + records.size() + 1,
                  "a batch whose indexes are not the next ones");
    records.push_back(encode(row.event));
  }
  const std::string doing =
      fmt::format("appending rows {} to {} to the journal in '{}'", batch.front().index.value,
                  batch.back().index.value, options_.dir.native());
  Digest chain = chain_;
  auto written = write_batch(batch, records, chain);
  if (!written && database_->no_room() && ballast_.spend()) {
    chain = chain_;
    written = write_batch(batch, records, chain);
  }
  if (written) written = database_kept_.check();
  if (written) written = wal_kept_.check();  // the first write makes the WAL
  if (!written) {
    failed_ = true;
    return fail(std::move(written.error()).in(doing));
  }
  if (options_.after_sync) options_.after_sync();
  last_ = batch.back().index;
  chain_ = chain;
  for (const Row& row : batch) remember(row.index, row.event);
  if (auto wrote = head_file_->write(head()); !wrote) {
    failed_ = true;
    return fail(std::move(wrote.error()).in(doing));
  }
  restore_ballast();
  return {};
}

// Runs after a full disk: as soon as there is room, so that the journal survives the next full
// disk, too. Until then each call costs one statvfs.
void SqliteJournal::restore_ballast() {
  if (loaded_ && !failed_ && !ballast_.there()) (void)ballast_.restore();
}

// --- archive -------------------------------------------------------------------------------------
// Commits without a sync. The WAL is written in order, and is valid only up to its first hole. So
// this commit is undone as a whole, or becomes durable as a whole (at the latest with the sync of
// the next append). If it is undone, load() notices this and repeats the work.
Result<void> SqliteJournal::unsynced(const std::function<Result<void>()>& work) {
  if (auto set = database_->execute("PRAGMA synchronous=NORMAL"); !set) return set;
  Result<void> done = database_->transaction(work);
  if (auto set = database_->execute("PRAGMA synchronous=FULL"); !set) {
    failed_ = true;  // no append may continue without its sync
    return set;
  }
  return done;
}

Result<void> SqliteJournal::move_rows(const JobId& job) {
  const std::vector<JournalIndex>& indexes = live_.of_job(job);
  std::vector<RowTable::Stored> moving;
  moving.reserve(indexes.size());
  for (const JournalIndex index : indexes) {
    auto row = rows_->find(index);
    if (!row) return fail(std::move(row.error()));
    if (!*row || (*row)->is_bridge())
      return fail(ErrorCode::DataLoss,
                  fmt::format("archiving job '{}': row {} is gone", job.value, index.value));
    moving.push_back(std::move(**row));
  }
  if (auto added = archive_->add(job, moving); !added) return added;
  return rows_->remove(indexes);
}

Result<void> SqliteJournal::tidy() {
  const std::vector<JobId> jobs(live_.unmoved().begin(), live_.unmoved().end());
  const std::vector<JournalIndex> superseded = live_.superseded();
  if (jobs.empty() && superseded.empty()) return {};
  auto done = unsynced([&]() -> Result<void> {
    for (const JobId& job : jobs) {
      if (auto moved = move_rows(job); !moved) return moved;
    }
    if (options_.archive_keep && !jobs.empty()) {
      if (auto dropped =
              archive_->drop(system_clock().now().wall - *options_.archive_keep, kDropMost);
          !dropped)
        return dropped;
    }
    return rows_->remove(superseded);
  });
  if (!done) return done;
  for (const JobId& job : jobs) live_.moved(job);
  live_.dropped();
  return {};
}

Result<void> SqliteJournal::archive(const JobId& job) {
  MUSTER_ASSERT(loaded_ && !options_.read_only,
                "a journal used before it was loaded, or changed though it is only read");
  if (failed_) return fail(ErrorCode::Io, "archiving: an earlier write to the journal failed");
  if (live_.of_job(job).empty()) return {};
  if (!live_.has_archived_record(job)) {
    return fail(ErrorCode::Internal,
                fmt::format("archiving job '{}': its 'archived' record is not in the journal yet",
                            job.value));
  }
  return tidy();
}

Result<ArchiveTable*> SqliteJournal::archive_to_read() {
  MUSTER_ASSERT(loaded_, "a journal used before it was loaded");
  if (options_.read_only) return &*archive_;  // that connection admits no other
  if (!read_archive_) {
    auto database = Database::open(database_file(), Database::Mode::Read, kDatabaseText);
    if (!database) return fail(std::move(database.error()));
    if (auto set = (*database)->execute("PRAGMA busy_timeout=2000; PRAGMA cell_size_check=ON; "
                                        "PRAGMA trusted_schema=OFF; PRAGMA query_only=ON");
        !set)
      return fail(std::move(set.error()));
    auto archive = ArchiveTable::open_to_read(**database);
    if (!archive) return fail(std::move(archive.error()));
    reading_ = std::move(*database);
    read_archive_ = std::move(*archive);
  }
  return &*read_archive_;
}

Result<std::vector<ArchivedJob>> SqliteJournal::archived(const std::optional<JobId>& before,
                                                         std::size_t most) {
  auto archive = archive_to_read();
  if (!archive) return fail(std::move(archive.error()));
  return (*archive)->list(before, most);
}

Result<std::optional<ArchivedJob>> SqliteJournal::archived_job(const JobId& job) {
  auto archive = archive_to_read();
  if (!archive) return fail(std::move(archive.error()));
  return (*archive)->find(job);
}

}  // namespace muster::journal
