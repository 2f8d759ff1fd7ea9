// Checks whether the file behind an open descriptor is still the file that its path names.
// SqliteJournal owns two: one for the database and one for the WAL. One thread uses it, the thread
// that calls the journal.
//
// If somebody removes or replaces a file under a running daemon, every later write succeeds without
// an error, and nobody finds what was written. Each check costs one stat(2).
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <utility>

#include "common/base/error.h"

namespace muster::journal {

class KeptFile {
 public:
  explicit KeptFile(std::filesystem::path file) : file_(std::move(file)) {}
  // The first check remembers the file. DataLoss: the file is gone, or the path names another file.
  Result<void> check();

 private:
  std::filesystem::path file_;
  std::optional<std::pair<dev_t, ino_t>> id_;
};

}  // namespace muster::journal
