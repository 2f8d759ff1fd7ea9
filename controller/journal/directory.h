// The journal's directory: private (0700), and held by one process at a time. Blocking file calls;
// any thread.
//
//   <dir>/lock                   flock'd while a journal is open; holds the holder's pid, for
//                                people
//   <dir>/journal.db, -wal, -shm SQLite
//   <dir>/journal.db.salvaged    what --accept-loss saved, complete, about to take journal.db's
//                                place (salvage.h)
//   <dir>/journal.damaged-N.db   what it took the place of; muster never reads it again
//   <dir>/head                   newest index and chain value (head.h)
//   <dir>/ballast                room for facts on a full disk (ballast.h)
#pragma once

#include <filesystem>
#include <utility>

#include "common/base/error.h"
#include "common/io/unique_fd.h"

namespace muster::journal {

// Makes it (one level) where it is missing, and takes group's and others' rights off it.
Result<void> make_private_directory(const std::filesystem::path& dir);
Result<void> sync_directory(const std::filesystem::path& dir);

class DirectoryLock {
 public:
  // Conflict when another process, or this one, holds it already.
  static Result<DirectoryLock> take(const std::filesystem::path& dir);
  // The same for somebody who only looks: without a change on the disk. Where there is no lock
  // file, nobody has it.
  static Result<DirectoryLock> take_to_read(const std::filesystem::path& dir);

 private:
  explicit DirectoryLock(io::UniqueFd descriptor) : descriptor_(std::move(descriptor)) {}
  io::UniqueFd descriptor_;  // closing it lets go
};

}  // namespace muster::journal
