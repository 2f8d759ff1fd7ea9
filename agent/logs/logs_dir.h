// LogsDir is the directory `logs` of one run. It stays open, and its files are opened in it and not
// by their paths: a job may put a link to a file system that hangs in its place, or in that of its
// run directory, and a thread that follows the link hangs. The logs and cursor files of a run share
// it (shared_ptr). Thread-safe.
//
// A directory that does not exist yet, or whose place another one took, is opened by its name at
// the next call. A link never is: errno is ELOOP, as for a log that is a link. One descriptor stays
// open for each LogsDir.
#pragma once

#include <sys/stat.h>

#include <filesystem>
#include <string>
#include <utility>

#include "common/base/error.h"
#include "common/base/mutex.h"
#include "common/io/unique_fd.h"

namespace muster::agent {

class LogsDir {
 public:
  explicit LogsDir(std::filesystem::path dir) : dir_(std::move(dir)) {}

  // Opens a file to read or to write (O_RDONLY, O_WRONLY); never a link, and never waits for the
  // other end of a pipe. No descriptor, and errno: it cannot be opened.
  [[nodiscard]] io::UniqueFd open(const std::string& name, int access) MUSTER_EXCLUDES(mutex_);
  // As lstat(2) of a file.
  [[nodiscard]] int stat(const std::string& name, struct stat& there) MUSTER_EXCLUDES(mutex_);
  // A path of a file for functions that take one. It is valid while this object lives, and leads
  // into the directory that was opened. ErrorCode::NotFound: there is none, or a link.
  [[nodiscard]] Result<std::filesystem::path> path_of(const std::string& name)
      MUSTER_EXCLUDES(mutex_);
  // Puts the directory's name into an error of such a function.
  [[nodiscard]] Error named(Error error) MUSTER_EXCLUDES(mutex_);

 private:
  // -1, and errno: it cannot be opened.
  int get() MUSTER_EXCLUDES(mutex_);
  // `run`: the run directory, -1: it cannot be opened. Returns 0 or errno.
  int reopen(int run) MUSTER_REQUIRES(mutex_);

  const std::filesystem::path dir_;
  Mutex mutex_;
  io::UniqueFd fd_ MUSTER_GUARDED_BY(mutex_);
};

// Whether something that is no directory, as a link, has the place of a run's `logs`, or of the run
// directory itself. Follows neither.
bool is_replaced(const std::filesystem::path& dir);

}  // namespace muster::agent
