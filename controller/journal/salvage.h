// --accept-loss: a new database from the sound rows of a damaged one, which is kept beside it. The
// directory's lock is held.
//
// Crash-safe by one commit point, the rename of the finished, synced copy to `journal.db.salvaged`:
//   before it   nothing of the old journal was touched; the next start finds the same damage
//   after it    finish_salvage, which every open() runs, does the rest again from wherever it
//               stopped: the WAL aside (else SQLite would play the old WAL into the new database),
//               the old database aside, the head as of the new one, the new one in place
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "common/base/error.h"
#include "controller/journal/head.h"

namespace muster::journal {

struct Salvage {
  JournalIndex sound;  // last row kept
  // first index that new rows get; between the two a bridge stands, so that no index is used twice
  JournalIndex next;
  std::size_t archived_lost = 0;    // archived jobs that could not be kept
  bool archive_unreadable = false;  // none could be kept, and nobody knows how many there were
};

// `head`: what the head file says, if it can be read. The database may be missing or unreadable:
// then nothing of it is kept.
Result<Salvage> salvage(const std::filesystem::path& dir, const std::optional<Head>& head);
// Nothing to do when there is no finished salvage. Returns the name the damaged database got.
Result<std::optional<std::string>> finish_salvage(const std::filesystem::path& dir);

}  // namespace muster::journal
