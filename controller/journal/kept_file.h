// That a file which is written by an open descriptor still is the one that its path names: what is
// removed or replaced under a running daemon takes every later write without an error, and none of
// them is found again. Costs a stat(2) a look. One thread.
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
  // The first look remembers it. DataLoss: it is gone, or another.
  Result<void> check();

 private:
  std::filesystem::path file_;
  std::optional<std::pair<dev_t, ino_t>> id_;
};

}  // namespace muster::journal
