#include "common/io/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>

#include "common/io/unique_fd.h"

namespace muster::io {
namespace {

std::unexpected<Error> failed(const char* doing, const std::filesystem::path& path, int error) {
  auto result = fail_errno(std::string(doing) + " '" + path.string() + "'", error);
  if (error == ENOENT) result.error().code = ErrorCode::NotFound;
  return result;
}

// A stale file of a dead process with our pid may have the first numbers.
constexpr int kTemporaryTries = 100;

At temporary_for(const At& at) {
  static std::atomic<unsigned> counter{0};
  const std::string name = "." + at.path.filename().string() + "." + std::to_string(::getpid()) +
                           "." + std::to_string(counter++);
  return {at.dir, at.path.parent_path() / name, at.shown.parent_path() / name};
}

Result<void> sync_folder(const At& at) {
  const auto folder =
      at.path.has_parent_path() ? at.path.parent_path() : std::filesystem::path(".");
  UniqueFd fd(::openat(at.dir, folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd || ::fsync(fd.get()) != 0)
    return failed("syncing", at.dir == AT_FDCWD ? folder : at.shown.parent_path(), errno);
  return {};
}

void remove(const At& at) { ::unlinkat(at.dir, at.path.c_str(), 0); }

struct Temporary {
  At at;
  UniqueFd fd;
};

// The file is always a new one. In a directory that others write in, somebody may have made the
// file of the next number, with a mode of their own or as a link.
Result<Temporary> create_temporary(const At& at) {
  for (int tries = 1;; ++tries) {
    At temporary = temporary_for(at);
    UniqueFd fd(::openat(temporary.dir, temporary.path.c_str(),
                         O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (fd) return Temporary{.at = std::move(temporary), .fd = std::move(fd)};
    if (const int error = errno; error != EEXIST || tries == kTemporaryTries)
      return failed("creating", temporary.shown, error);
  }
}

// Writes a complete temporary file in the directory of `at`. On an error it leaves no file.
Result<At> write_temporary(const At& at, std::string_view bytes, Durable durable) {
  auto temporary = create_temporary(at);
  if (!temporary) return fail(std::move(temporary.error()));
  const int fd = temporary->fd.get();
  std::size_t written = 0;
  int error = write_all(fd, bytes, written);
  if (error == 0 && durable == Durable::Yes && ::fsync(fd) != 0) error = errno;
  if (error != 0) {
    remove(temporary->at);
    return failed("writing", at.shown, error);
  }
  return std::move(temporary->at);
}

}  // namespace

int write_all(int fd, std::string_view bytes, std::size_t& written) {
  written = 0;
  while (written < bytes.size()) {
    const ssize_t count = ::write(fd, bytes.data() + written, bytes.size() - written);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno;
    if (count == 0) return ENOSPC;
    written += static_cast<std::size_t>(count);
  }
  return 0;
}

namespace {

Result<std::string> read_open(const UniqueFd& fd, const struct stat& status,
                              const std::filesystem::path& path, std::size_t most) {
  std::string bytes;
  // Files of /proc report 0 bytes, so read until the end whatever stat reports.
  std::size_t room = static_cast<std::size_t>(status.st_size) + 1;
  if (room < 4096) room = 4096;
  for (std::size_t used = 0;;) {
    if (used > most)
      return fail(ErrorCode::ResourceExhausted,
                  "reading '" + path.string() + "': more than " + std::to_string(most) + " bytes");
    if (room > most - used + 1) room = most - used + 1;
    bytes.resize(used + room);
    const ssize_t count = ::read(fd.get(), bytes.data() + used, room);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return failed("reading", path, errno);
    used += static_cast<std::size_t>(count);
    if (count == 0) {
      bytes.resize(used);
      return bytes;
    }
    room = used;
    if (room < 4096) room = 4096;
  }
}

Result<std::string> read_at(const At& at, std::size_t most, int flags,
                            const StatusCheck& check = {}) {
  const auto& path = at.shown;
  const UniqueFd fd(::openat(at.dir, at.path.c_str(), O_RDONLY | O_CLOEXEC | flags));
  const bool refuses_links = (flags & O_NOFOLLOW) != 0;
  if (!fd && errno == ELOOP && refuses_links)
    return fail(ErrorCode::DataLoss, "reading '" + path.string() + "': it is a link");
  if (!fd) return failed("opening", path, errno);
  struct stat status{};
  if (::fstat(fd.get(), &status) != 0) return failed("reading", path, errno);
  if (flags != 0 && !S_ISREG(status.st_mode))
    return fail(refuses_links ? ErrorCode::DataLoss : ErrorCode::Io,
                "reading '" + path.string() + "': it is no regular file");
  if (check) {
    if (auto sound = check(status); !sound) return fail(std::move(sound.error()));
  }
  return read_open(fd, status, path, most);
}

}  // namespace

std::string not_own(const struct stat& status) {
  if (status.st_uid != ::geteuid())
    return "it belongs to user " + std::to_string(status.st_uid) +
           ", and this process is of user " + std::to_string(::geteuid());
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0) return "others than its owner may write it";
  return {};
}

Result<std::string> read_file(const std::filesystem::path& path, std::size_t most) {
  return read_at(path, most, 0);
}
Result<std::string> read_regular_file(const At& at, std::size_t most, Links links) {
  constexpr int kFlags = O_NONBLOCK | O_NOCTTY;
  if (links == Links::Follow) return read_at(at, most, kFlags);
  if (links == Links::Refuse) return read_at(at, most, kFlags | O_NOFOLLOW);
  return read_at(at, most, kFlags | O_NOFOLLOW, [&at](const struct stat& status) -> Result<void> {
    const std::string wrong = not_own(status);
    if (wrong.empty()) return {};
    return fail(ErrorCode::DataLoss,
                "reading '" + at.shown.string() + "': " + wrong + "; it is not believed");
  });
}
Result<std::string> read_checked_file(const std::filesystem::path& path, std::size_t most,
                                      const StatusCheck& check) {
  return read_at(path, most, O_NONBLOCK | O_NOCTTY, check);
}

Result<void> replace_file(const At& at, std::string_view bytes, Durable durable) {
  auto temporary = write_temporary(at, bytes, durable);
  if (!temporary) return fail(std::move(temporary.error()));
  if (::renameat(at.dir, temporary->path.c_str(), at.dir, at.path.c_str()) != 0) {
    const int error = errno;
    remove(*temporary);
    return failed("replacing", at.shown, error);
  }
  if (durable == Durable::Yes) return sync_folder(at);
  return {};
}

Result<void> overwrite_file(const At& at, std::string_view bytes) {
  const UniqueFd fd(
      ::openat(at.dir, at.path.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!fd) return failed("opening", at.shown, errno);
  struct stat status{};
  if (::fstat(fd.get(), &status) != 0) return failed("opening", at.shown, errno);
  if (!S_ISREG(status.st_mode) || status.st_nlink > 1)
    return fail(ErrorCode::DataLoss,
                "writing '" + at.shown.string() + "': it is no regular file with one name");
  std::size_t written = 0;
  if (const int error = write_all(fd.get(), bytes, written); error != 0)
    return failed("writing", at.shown, error);
  if (::ftruncate(fd.get(), static_cast<off_t>(bytes.size())) != 0)
    return failed("cutting", at.shown, errno);
  return {};
}

Result<bool> create_file(const At& at, std::string_view bytes, Durable durable) {
  auto temporary = write_temporary(at, bytes, durable);
  if (!temporary) return fail(std::move(temporary.error()));
  // File systems without RENAME_NOREPLACE (NFS) use link(2) instead.
  int error = 0;
  if (::renameat2(at.dir, temporary->path.c_str(), at.dir, at.path.c_str(), RENAME_NOREPLACE) !=
      0) {
    error = errno;
    if (error == EINVAL || error == ENOSYS)
      error =
          ::linkat(at.dir, temporary->path.c_str(), at.dir, at.path.c_str(), 0) == 0 ? 0 : errno;
    remove(*temporary);
  }
  if (error == EEXIST) return false;
  if (error != 0) return failed("creating", at.shown, error);
  if (durable == Durable::Yes) {
    if (auto synced = sync_folder(at); !synced) return fail(std::move(synced.error()));
  }
  return true;
}

Result<void> make_dirs(const std::filesystem::path& path, unsigned mode) {
  if (::mkdir(path.c_str(), mode) == 0) {
    if (::chmod(path.c_str(), mode) != 0) return failed("setting the mode of", path, errno);
    return {};
  }
  if (errno == ENOENT && path.has_parent_path() && path.parent_path() != path) {
    if (auto parent = make_dirs(path.parent_path(), mode); !parent) return parent;
    if (::mkdir(path.c_str(), mode) == 0) {
      if (::chmod(path.c_str(), mode) != 0) return failed("setting the mode of", path, errno);
      return {};
    }
  }
  const int error = errno;
  struct stat status{};
  if (error == EEXIST && ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode)) return {};
  return failed("making directory", path, error == EEXIST ? ENOTDIR : error);
}

}  // namespace muster::io
