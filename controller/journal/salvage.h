// The work of --accept-loss: makes a new database from the sound rows of a damaged one, and keeps
// the damaged one in the same directory. SqliteJournal calls these functions while it opens and
// loads, on that caller's thread. The caller must own the directory's lock.
//
// One commit point makes this safe against crashes: the rename of the finished and synced copy to
// `journal.db.salvaged`.
// - Before the commit point, nothing of the old journal has changed. The next start finds the same
//   damage.
// - After the commit point, finish_salvage(), which every open() that may write runs, does the
//   remaining steps again from wherever they stopped. The steps are: move the old WAL away, move
//   the old database away, write the head of the new database, move the new database to its final
//   name. The WAL is first, because SQLite would play it into the new database. The new head keeps
//   the generation of the old head or mark.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "common/base/error.h"
#include "controller/journal/head.h"

namespace muster::journal {

struct Salvage {
  JournalIndex sound;  // last row that was kept
  // First index that new rows get. A lost bridge covers the indexes between the two: at least one,
  // so that every accepted loss leaves one, and no index that may have been used is used again.
  JournalIndex next;
  std::size_t archived_lost = 0;    // archived jobs that could not be kept
  bool archive_unreadable = false;  // none could be kept, and their number is unknown
};

// `head` is the content of the head file, if it can be read. If the database is missing or
// unreadable, nothing of it is kept.
Result<Salvage> salvage(const std::filesystem::path& dir, const std::optional<Head>& head);
// Does nothing when there is no finished salvage. Returns the new name of the damaged database.
Result<std::optional<std::string>> finish_salvage(const std::filesystem::path& dir);

}  // namespace muster::journal
