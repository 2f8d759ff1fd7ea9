// Access below a directory in which others may replace what is there: a job writes in its run
// directory. Beneath owns a descriptor of the directory (O_PATH). Any thread; blocking.
//
// Names are relative to it, and may have several parts, none of them "..". No part may be a link,
// also none of /proc (magic links), and nothing leads out of the directory, however fast somebody
// replaces its parts. A pipe is opened without waiting for its other end.
//
// It uses openat2(2) with RESOLVE_BENEATH, RESOLVE_NO_SYMLINKS and RESOLVE_NO_MAGICLINKS. A kernel
// before Linux 5.6 has no openat2 (ENOSYS: openEuler 20.03 has 4.19), and seccomp filters of old
// container engines answer EPERM. There the parts are opened one by one with O_NOFOLLOW, which
// gives the same result and costs one open for each part.
#pragma once

#include <sys/stat.h>

#include <filesystem>
#include <string>

#include "common/base/error.h"
#include "common/io/file.h"
#include "common/io/unique_fd.h"

namespace muster::io {

// Opens `name` below `dir`. O_NOFOLLOW, O_CLOEXEC, O_NOCTTY and O_NONBLOCK are added to `flags`.
// No descriptor, and errno: it cannot be opened. ELOOP: one of its parts is a link. EXDEV: it would
// leave the directory.
UniqueFd open_beneath(int dir, const std::filesystem::path& name, int flags, unsigned mode = 0);
// The same without openat2. For tests; open_beneath() uses it where it must.
UniqueFd open_beneath_by_parts(int dir, const std::filesystem::path& name, int flags,
                               unsigned mode = 0);

class Beneath {
 public:
  // The path above `dir` is trusted, and links in it are followed; `dir` itself may be a link only
  // with Links::Follow. NotFound: it does not exist. DataLoss: a link or a file has its place.
  static Result<Beneath> open(const std::filesystem::path& dir, Links links = Links::Refuse);
  // The same for a directory below this one.
  [[nodiscard]] Result<Beneath> below(const std::filesystem::path& name) const;

  [[nodiscard]] int fd() const { return fd_.get(); }
  [[nodiscard]] UniqueFd open(const std::filesystem::path& name, int flags,
                              unsigned mode = 0) const {
    return open_beneath(fd_.get(), name, flags, mode);
  }
  // For the functions of file.h and frames.h. `name` has one part.
  [[nodiscard]] At at(const std::string& name) const { return {fd_.get(), name, shown_ / name}; }
  // Makes a directory of one part with `mode`, whatever the umask is. An existing one stays as it
  // is; a link or a file in its place is ErrorCode::DataLoss.
  [[nodiscard]] Result<void> make_dir(const std::string& name, unsigned mode) const;
  // As lstat(2); `name` has one part.
  int stat(const std::string& name, struct stat& status) const;

 private:
  Beneath(UniqueFd fd, std::filesystem::path shown)
      : fd_(std::move(fd)), shown_(std::move(shown)) {}
  UniqueFd fd_;
  std::filesystem::path shown_;  // its path, for texts
};

}  // namespace muster::io
