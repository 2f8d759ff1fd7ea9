// A file in memory that a child process opens by its path. It is on no disk, and gone with its
// owner. A plain value; any thread.
#pragma once

#include <string>
#include <string_view>

#include "common/base/error.h"
#include "common/io/unique_fd.h"

namespace muster::agent {

class MemoryFile {
 public:
  // Only this process's user can open it. Errors: Io, ResourceExhausted.
  static Result<MemoryFile> make(std::string_view bytes);
  // As long as this lives: /proc/PID/fd/N.
  [[nodiscard]] std::string path() const;

 private:
  explicit MemoryFile(io::UniqueFd fd) : fd_(std::move(fd)) {}
  io::UniqueFd fd_;
};

}  // namespace muster::agent
