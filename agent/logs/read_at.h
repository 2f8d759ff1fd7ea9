// read_at() reads bytes of a file at an offset, whatever signals come. It keeps no state and may
// run on any thread. It may hang with the file's file system.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>

namespace muster::agent {

// Returns how many bytes were read: fewer than `most` at the end of the file, or after an error,
// whose errno is then in `error` (else 0).
inline std::size_t read_at(int fd, char* to, std::size_t most, std::uint64_t at, int& error) {
  std::size_t done = 0;
  error = 0;
  while (done < most) {
    const ssize_t got = ::pread(fd, to + done, most - done, static_cast<off_t>(at + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) error = errno;
    if (got <= 0) break;
    done += static_cast<std::size_t>(got);
  }
  return done;
}
inline std::size_t read_at(int fd, char* to, std::size_t most, std::uint64_t at) {
  int ignored = 0;
  return read_at(fd, to, most, at, ignored);
}

}  // namespace muster::agent
