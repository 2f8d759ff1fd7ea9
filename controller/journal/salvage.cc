#include "controller/journal/salvage.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include "common/io/unique_fd.h"
#include "controller/journal/archive_table.h"
#include "controller/journal/database.h"
#include "controller/journal/directory.h"
#include "controller/journal/row_table.h"
#include "controller/journal/schema.h"

namespace muster::journal {
namespace {

namespace fs = std::filesystem;

bool is_there(const fs::path& file) { return ::access(file.c_str(), F_OK) == 0; }

Result<void> rename_file(const fs::path& from, const fs::path& to) {
  if (::rename(from.c_str(), to.c_str()) != 0 && errno != ENOENT) {
    return fail_errno(fmt::format("renaming '{}' to '{}'", from.native(), to.native()), errno);
  }
  return {};
}

Result<void> sync_file(const fs::path& file) {
  const io::UniqueFd descriptor(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!descriptor) return fail_errno(fmt::format("opening '{}'", file.native()), errno);
  if (::fsync(descriptor.get()) != 0)
    return fail_errno(fmt::format("syncing '{}'", file.native()), errno);
  return {};
}

// The damaged database, as far as it can be opened.
struct Source {
  std::unique_ptr<Database> database;
  std::string journal_id;
  std::optional<RowTable> rows;
  std::optional<ArchiveTable> archive;
};
Result<Source> open_source(const fs::path& file, const std::optional<Head>& head) {
  Source source;
  if (!is_there(file)) return source;
  auto database = Database::open(file, Database::Mode::Inspect, kDatabaseText);
  // A database that is too damaged to be opened counts as empty; a disk that cannot be read does
  // not.
  const auto as_empty = [](Error error) -> Result<Source> {
    if (error.code == ErrorCode::DataLoss) return Source{};
    return fail(std::move(error));
  };
  if (!database) return as_empty(std::move(database.error()));
  // The id is the beginning of the chain. If the database's own id does not fit its first row, the
  // id in the head file may fit.
  std::vector<std::string> ids;
  auto id = journal_id_of(**database);
  if (!id && id.error().code != ErrorCode::DataLoss) return fail(std::move(id.error()));
  if (id && *id) ids.push_back(**id);
  if (head) ids.push_back(head->journal_id);
  for (const std::string& candidate : ids) {
    auto rows = RowTable::open(**database, candidate);
    if (!rows) return as_empty(std::move(rows.error()));
    auto end = rows->walk({}, [](const RowTable::Stored&) { return Result<void>(); });
    if (!end) return fail(std::move(end.error()));
    if (end->last.value == 0) continue;
    source.rows = std::move(*rows);
    source.journal_id = candidate;
    break;
  }
  if (auto archive = ArchiveTable::open(**database)) source.archive = std::move(*archive);
  source.database = std::move(*database);
  return source;
}

// A higher index is damaged. JSON's numbers are exact up to this one, and nobody accepts so many
// losses of kRowsUnknown rows.
constexpr JournalIndex kIndexMost(1ull << 53);

// The last index that a lost row may have had. `head` is the one of this journal; null: it has
// none. A power cut may leave a head that is older than the last rows, and these may be behind the
// damage. Nobody knows how many rows were lost if there is no head, if the end of the damaged table
// cannot be read, or if no index shows that any was lost.
Result<JournalIndex> last_lost(const Source& source, JournalIndex sound, const Head* head) {
  const JournalIndex shown = head == nullptr ? sound : std::max(sound, head->index);
  std::optional<JournalIndex> highest;
  if (source.database) {
    const JournalIndex limit =
        head == nullptr ? kIndexMost : JournalIndex(shown.value + kRowsUnknown);
    auto read = RowTable::highest(*source.database, limit);
    if (!read && read.error().code != ErrorCode::DataLoss) return fail(std::move(read.error()));
    if (read) highest = *read;
  }
  const JournalIndex last = std::max(shown, highest.value_or(JournalIndex()));
  const bool known = head != nullptr && highest && sound < last;
  return known ? last : JournalIndex(last.value + kRowsUnknown);
}

}  // namespace

Result<Salvage> salvage(const fs::path& dir, const std::optional<Head>& head) {
  const fs::path copy = dir / "journal.db.copy", finished = dir / "journal.db.salvaged";
  for (const char* suffix : {"", "-journal"}) ::unlink((copy.native() + suffix).c_str());
  auto source = open_source(dir / "journal.db", head);
  if (!source) return fail(std::move(source.error()));
  std::string journal_id = source->journal_id;
  if (journal_id.empty()) {
    auto fresh = new_journal_id();
    if (!fresh) return fail(std::move(fresh.error()));
    journal_id = head ? head->journal_id : *fresh;
  }
  Salvage done;
  {
    auto database = Database::open(copy, Database::Mode::Write, kDatabaseText);
    if (!database) return fail(std::move(database.error()));
    // One file without a WAL next to it, because the file is about to be renamed.
    if (auto set = (*database)->execute("PRAGMA journal_mode=DELETE; PRAGMA synchronous=FULL");
        !set)
      return fail(std::move(set.error()));
    if (auto made = make_tables(**database, journal_id); !made)
      return fail(std::move(made.error()));
    auto rows = RowTable::open(**database, journal_id);
    if (!rows) return fail(std::move(rows.error()));
    auto archive = ArchiveTable::open(**database);
    if (!archive) return fail(std::move(archive.error()));
    auto copied = (*database)->transaction([&]() -> Result<void> {
      Digest chain = chain_start(journal_id);
      if (source->rows) {
        auto end =
            source->rows->walk({}, [&](const RowTable::Stored& row) { return rows->copy(row); });
        if (!end) return fail(std::move(end.error()));
        done.sound = end->last;
        chain = end->chain;
      }
      const bool own_head = head && head->journal_id == journal_id;
      auto last = last_lost(*source, done.sound, own_head ? &*head : nullptr);
      if (!last) return fail(std::move(last.error()));
      auto bridged = rows->bridge_lost(chain, JournalIndex(done.sound.value + 1), *last);
      if (!bridged) return fail(std::move(bridged.error()));
      done.next = JournalIndex(last->value + 1);
      done.archive_unreadable = !source->archive;
      if (!source->archive) return {};
      auto lost = source->archive->copy_sound(*archive);
      if (!lost) return fail(std::move(lost.error()));
      done.archived_lost = *lost;
      return {};
    });
    if (!copied) return fail(std::move(copied.error()));
  }
  if (auto synced = sync_file(copy); !synced) return fail(std::move(synced.error()));
  source->archive.reset();
  source->rows.reset();
  source->database.reset();
  if (auto renamed = rename_file(copy, finished); !renamed) return fail(std::move(renamed.error()));
  if (auto synced = sync_directory(dir); !synced) return fail(std::move(synced.error()));
  return done;
}

Result<std::optional<std::string>> finish_salvage(const fs::path& dir) {
  const fs::path finished = dir / "journal.db.salvaged", place = dir / "journal.db";
  if (!is_there(finished)) return std::optional<std::string>();
  std::string aside;
  for (int number = 1; aside.empty() || is_there(dir / aside); ++number)
    aside = fmt::format("journal.damaged-{}.db", number);
  // The WAL moves first: the new database must never be in the same directory as the old WAL.
  if (auto moved = rename_file(place.native() + "-wal", (dir / aside).native() + "-wal"); !moved)
    return fail(std::move(moved.error()));
  ::unlink((place.native() + "-shm").c_str());
  if (auto moved = rename_file(place, dir / aside); !moved) return fail(std::move(moved.error()));
  // The old head or mark may know of more generations than the rows that were kept.
  auto old_head = HeadFile::read(dir / "head");
  if (!old_head) return fail(std::move(old_head.error()));
  Head head;
  {
    auto database = Database::open(finished, Database::Mode::Write, kDatabaseText);
    if (!database) return fail(std::move(database.error()));
    auto id = journal_id_of(**database);
    if (!id) return fail(std::move(id.error()));
    if (!*id)
      return fail(ErrorCode::DataLoss,
                  fmt::format("finishing the salvage '{}': it is empty", finished.native()));
    auto rows = RowTable::open(**database, **id);
    if (!rows) return fail(std::move(rows.error()));
    auto end = rows->walk({}, [](const RowTable::Stored&) { return Result<void>(); });
    if (!end) return fail(std::move(end.error()));
    head = Head{.journal_id = **id,
                .index = end->last,
                .chain = end->chain,
                .cluster = {},
                .generation = generation_of(*old_head)};
  }
  if (auto made = HeadFile::create(dir / "head", head); !made) return fail(std::move(made.error()));
  if (auto moved = rename_file(finished, place); !moved) return fail(std::move(moved.error()));
  if (auto synced = sync_directory(dir); !synced) return fail(std::move(synced.error()));
  return std::optional(aside);
}

}  // namespace muster::journal
