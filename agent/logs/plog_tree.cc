#include "agent/logs/plog_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <tuple>

#include "common/io/beneath.h"

namespace muster::agent {
namespace {

constexpr int kDirectoryFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

bool digits(std::string_view text) {
  return !text.empty() && text.size() <= 24 &&
         text.find_first_not_of("0123456789") == std::string_view::npos;
}

bool is_plog_name(std::string_view name) {
  constexpr std::string_view kBegin = "plog-", kEnd = ".log";
  if (name.size() <= kBegin.size() + kEnd.size() || !name.starts_with(kBegin) ||
      !name.ends_with(kEnd))
    return false;
  name = name.substr(kBegin.size(), name.size() - kBegin.size() - kEnd.size());
  const std::size_t middle = name.find('_');
  return middle != std::string_view::npos && digits(name.substr(0, middle)) &&
         digits(name.substr(middle + 1));
}

// Calls `take` for every name except "." and "..", with its stat; at most `most` names, which is
// counted down.
void each_name(const io::UniqueFd& dir, std::size_t& most,
               const std::function<void(const char* name, const struct stat& there)>& take) {
  const int own = ::fcntl(dir.get(), F_DUPFD_CLOEXEC, 0);
  if (own < 0) return;
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(::fdopendir(own), &::closedir);
  if (stream == nullptr) {
    ::close(own);
    return;
  }
  while (const dirent* entry = ::readdir(stream.get())) {
    const std::string_view name = entry->d_name;
    if (name == "." || name == "..") continue;
    if (most == 0) return;
    --most;
    struct stat there{};
    if (::fstatat(dir.get(), entry->d_name, &there, AT_SYMLINK_NOFOLLOW) == 0)
      take(entry->d_name, there);
  }
}

PlogFile file_of(std::string path, const struct stat& there) {
  return {.path = std::move(path),
          .inode = there.st_ino,
          .size = static_cast<std::uint64_t>(there.st_size),
          .bytes = static_cast<std::uint64_t>(there.st_blocks) * 512,
          .changed = there.st_mtim};
}

bool is_plain(const struct stat& there) { return S_ISREG(there.st_mode) && there.st_nlink == 1; }

void newest_first(std::vector<PlogFile>& files) {
  std::ranges::sort(files, std::greater<>(), [](const PlogFile& file) {
    return std::tuple(file.changed.tv_sec, file.changed.tv_nsec, file.path);
  });
}

}  // namespace

// The tree is "plog/rank-N" in the run directory, and no part of it may be a link.
io::UniqueFd PlogTree::open_below(const std::string& path, int flags) const {
  const auto plog = dir_.parent_path();
  const io::UniqueFd run(
      ::open(plog.parent_path().c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!run) return {};
  const auto tree = plog.filename() / dir_.filename();
  return io::open_beneath(run.get(), path.empty() ? tree : tree / path,
                          path.empty() ? kDirectoryFlags : flags);
}

bool PlogTree::exists() const { return open_below("", kDirectoryFlags).get() >= 0; }

io::UniqueFd PlogTree::open(const PlogFile& file) const {
  io::UniqueFd fd =
      open_below(file.path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  struct stat there{};
  if (fd && (::fstat(fd.get(), &there) != 0 || !is_plain(there) || there.st_ino != file.inode))
    fd.reset();
  return fd;
}

std::vector<PlogFile> PlogTree::logs() const {
  std::vector<PlogFile> found;
  std::size_t most = kPlogNamesMost;
  for (const std::string below : {"debug/plog", "run/plog"}) {
    const io::UniqueFd dir = open_below(below, kDirectoryFlags);
    if (!dir) continue;
    each_name(dir, most, [&](const char* name, const struct stat& there) {
      if (is_plain(there) && is_plog_name(name))
        found.push_back(file_of(below + "/" + name, there));
    });
  }
  newest_first(found);
  return found;
}

std::vector<PlogFile> PlogTree::files() const {
  std::vector<PlogFile> files;
  std::size_t names = kPlogNamesMost;
  walk("", kPlogDirsDeep, files, names);
  newest_first(files);
  if (files.size() > kPlogFilesMost) files.resize(kPlogFilesMost);
  return files;
}

void PlogTree::walk(const std::string& below, std::size_t deep, std::vector<PlogFile>& files,
                    std::size_t& names) const {
  const io::UniqueFd dir = open_below(below, kDirectoryFlags);
  if (!dir) return;
  std::vector<std::string> dirs;
  each_name(dir, names, [&](const char* name, const struct stat& there) {
    std::string path = below.empty() ? name : below + "/" + name;
    if (S_ISDIR(there.st_mode)) {
      dirs.push_back(std::move(path));
    } else if (is_plain(there)) {
      files.push_back(file_of(std::move(path), there));
    }
  });
  if (deep == 0) return;
  for (const std::string& path : dirs) walk(path, deep - 1, files, names);
}

std::uint64_t PlogTree::trim(std::uint64_t cap) const {
  std::vector<PlogFile> files;
  std::size_t names = kPlogNamesMost;
  walk("", kPlogDirsDeep, files, names);
  newest_first(files);
  std::uint64_t bytes = 0;
  for (const PlogFile& file : files) bytes += file.bytes;
  while (files.size() > 1 && (bytes > cap || files.size() > kPlogFilesMost)) {
    const PlogFile& oldest = files.back();
    const std::size_t slash = oldest.path.rfind('/');
    const io::UniqueFd dir =
        open_below(slash == std::string::npos ? "" : oldest.path.substr(0, slash), kDirectoryFlags);
    if (dir)
      ::unlinkat(dir.get(), oldest.path.c_str() + (slash == std::string::npos ? 0 : slash + 1), 0);
    bytes -= std::min(bytes, oldest.bytes);
    files.pop_back();
  }
  if (files.empty() || bytes <= cap) return bytes;
  // The newest file is being written: its newest half of the cap stays, and the rest becomes a
  // hole.
  const PlogFile& newest = files.front();
  const io::UniqueFd fd =
      open_below(newest.path, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  struct stat there{};
  if (!fd || ::fstat(fd.get(), &there) != 0 || !is_plain(there) || there.st_ino != newest.inode)
    return bytes;
  const off_t hole = there.st_size - std::min(there.st_size, static_cast<off_t>(cap / 2));
  if (hole > 0) (void)::fallocate(fd.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, hole);
  return ::fstat(fd.get(), &there) == 0 ? static_cast<std::uint64_t>(there.st_blocks) * 512 : bytes;
}

}  // namespace muster::agent
