// A file in memory, on no disk: gone when nobody has it open any more. It owns the descriptor. Any
// thread.
#pragma once

#include <string>
#include <string_view>

#include "common/base/error.h"
#include "common/io/unique_fd.h"

namespace muster::io {

class MemoryFile {
 public:
  // Read from its beginning. Only this process's user can open it by path(). Errors: Io,
  // ResourceExhausted.
  static Result<MemoryFile> make(std::string_view bytes);
  // For a child that opens it, as long as this lives: /proc/PID/fd/N.
  [[nodiscard]] std::string path() const;
  // For a child that inherits it.
  [[nodiscard]] UniqueFd release() && { return std::move(fd_); }

 private:
  explicit MemoryFile(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
};

}  // namespace muster::io
