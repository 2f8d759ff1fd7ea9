#include "agent/launch/disk_view.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include "agent/core/utf8.h"
#include "common/base/error.h"
#include "common/io/unique_fd.h"

namespace muster::agent {

void DiskView::failed(const std::string& path, int error) const {
  if (trouble_ == nullptr || !trouble_->empty() || error == ENOENT || error == ENOTDIR) return;
  *trouble_ = fail_errno(fmt::format("reading '{}'", path), error).error().message;
}

// `where` returns the offset at which to begin, for a file of `size` bytes and `most` wanted bytes.
template <class Where>
std::string DiskView::read_part(const std::string& file, std::size_t most, Where&& where) const {
  const io::UniqueFd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  struct stat now{};
  if (!fd || ::fstat(fd.get(), &now) != 0) {
    failed(file, errno);
    return {};
  }
  if (!S_ISREG(now.st_mode) || !allows(fd.get())) return {};
  const auto size = static_cast<std::uint64_t>(now.st_size);
  most = std::min(most, DiskView::kReadMost);
  const std::uint64_t from = where(size, most);
  if (from >= size) return {};
  std::string text(static_cast<std::size_t>(std::min<std::uint64_t>(most, size - from)), '\0');
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t got =
        ::pread(fd.get(), text.data() + done, text.size() - done, static_cast<off_t>(from + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) failed(file, errno);
    if (got <= 0) break;
    done += static_cast<std::size_t>(got);
  }
  text.resize(done);
  return text;
}

int DiskView::state_of_entry(int dir, const dirent& entry, struct stat& now) const {
  // Only a link can lead out of the directory; a file system may not say that it is one.
  const bool link = reach_ != nullptr && reach_->confined() && entry.d_type != DT_REG &&
                    entry.d_type != DT_DIR;
  if (!link) return ::fstatat(dir, entry.d_name, &now, 0) == 0 ? 0 : errno;
  const io::UniqueFd fd(::openat(dir, entry.d_name, O_PATH | O_CLOEXEC));
  if (!fd || ::fstat(fd.get(), &now) != 0) return errno;
  return allows(fd.get()) ? 0 : ENOENT;
}

std::vector<engine::FileView::Entry> DiskView::list(const std::string& dir) const {
  std::vector<Entry> entries;
  const std::unique_ptr<DIR, int (*)(DIR*)> open(::opendir(dir.c_str()), &::closedir);
  if (!open) {
    failed(dir, errno);
    return entries;
  }
  if (!allows(::dirfd(open.get()))) return entries;
  for (std::size_t names = 0;; ++names) {
    errno = 0;
    const dirent* found = ::readdir(open.get());
    if (found == nullptr) {
      if (errno != 0) failed(dir, errno);
      break;
    }
    if (names == kNamesMost) {
      failed(dir, EOVERFLOW);
      break;
    }
    const std::string_view name = found->d_name;
    if (name == "." || name == ".." || !is_utf8(name)) continue;
    struct stat now{};
    if (const int error = state_of_entry(::dirfd(open.get()), *found, now); error != 0) {
      failed(fmt::format("{}/{}", dir, name), error);
      continue;
    }
    entries.push_back({.name = std::string(name),
                       .directory = S_ISDIR(now.st_mode),
                       .bytes = S_ISREG(now.st_mode) ? static_cast<std::uint64_t>(now.st_size) : 0,
                       .mode = now.st_mode & 07777});
  }
  return entries;
}

std::string DiskView::head(const std::string& file, std::size_t most) const {
  return read_part(file, most, [](std::uint64_t, std::size_t) { return 0; });
}

std::string DiskView::tail(const std::string& file, std::size_t most) const {
  return read_part(file, most, [](std::uint64_t size, std::size_t wanted) {
    return size - std::min<std::uint64_t>(size, wanted);
  });
}

std::string DiskView::part(const std::string& file, std::uint64_t from, std::size_t most) const {
  return read_part(file, most, [from](std::uint64_t, std::size_t) { return from; });
}

std::uint64_t device_of(std::string path) {
  struct stat about{};
  while (::stat(path.c_str(), &about) != 0) {
    if (errno != ENOENT && errno != ENOTDIR) return 0;
    const std::size_t slash = path.rfind('/');
    if (slash == std::string::npos || path.size() == 1) return 0;
    path.resize(std::max<std::size_t>(slash, 1));
  }
  return about.st_dev;
}

bool is_network_file_system(const std::string& path) {
  struct statfs about{};
  if (::statfs(path.c_str(), &about) != 0) return false;
  switch (static_cast<std::uint32_t>(about.f_type)) {
    case 0x6969:                   // NFS
    case 0x0BD00BD0:               // Lustre
    case 0x65735546:               // FUSE
    case 0x00C36400:               // Ceph
    case 0xFF534D42:               // CIFS
    case 0xFE534D42:               // SMB2
    case 0x47504653:               // GPFS
    case 0x19830326:               // BeeGFS
    case 0x01021997: return true;  // 9p
    default: return false;
  }
}

}  // namespace muster::agent
