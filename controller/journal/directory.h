// The journal's directory and its lock: the directory is private (0700), and only one process at a
// time may own the lock. SqliteJournal takes the DirectoryLock when it opens, and destroying the
// lock releases it. All functions block on file calls and may run on any thread.
//
//   <dir>/lock                   flock'd while a journal is open; contains the owner's pid, for
//                                people
//   <dir>/journal.db, -wal, -shm SQLite
//   <dir>/journal.db.salvaged    what --accept-loss saved, complete, about to replace journal.db
//                                (salvage.h)
//   <dir>/journal.damaged-N.db   the database that was replaced; muster never reads it again
//   <dir>/head                   newest index, chain value and generation (head.h)
//   <dir>/ballast                space for facts on a full disk (ballast.h)
#pragma once

#include <filesystem>
#include <utility>

#include "common/base/error.h"
#include "common/io/unique_fd.h"

namespace muster::journal {

// Makes the directory (one level) if it is missing, and removes all rights of the group and of
// others.
Result<void> make_private_directory(const std::filesystem::path& dir);
Result<void> sync_directory(const std::filesystem::path& dir);

class DirectoryLock {
 public:
  // Conflict: another process, or this process, already owns the lock.
  static Result<DirectoryLock> take(const std::filesystem::path& dir);
  // The same for a process that only reads; the disk does not change. If there is no lock file,
  // nobody owns the lock.
  static Result<DirectoryLock> take_to_read(const std::filesystem::path& dir);

 private:
  explicit DirectoryLock(io::UniqueFd descriptor) : descriptor_(std::move(descriptor)) {}
  io::UniqueFd descriptor_;  // closing it releases the lock
};

}  // namespace muster::journal
