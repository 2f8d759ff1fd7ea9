// A rank's process log on disk: a directory that belongs to the run, in which the rank writes what
// it likes. CANN's shape:
//
//   plog/rank-3/debug/plog/plog-<pid>_<time>.log   what went wrong; also "run" in place of "debug"
//   plog/rank-3/debug/device-0/...                 the device's own
//
// Whatever lies there, nothing of it leads elsewhere: every step is opened below the one before and
// no symbolic link is followed; only regular files with one name are read or cut. Looks are
// bounded. The watch's thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <ctime>
#include <filesystem>
#include <string>
#include <vector>

#include "common/io/unique_fd.h"

namespace muster::agent {

inline constexpr std::size_t kPlogNamesMost = 4096;  // looked at in one go, of one tree
inline constexpr std::size_t kPlogFilesMost = 1024;  // kept in one tree
inline constexpr std::size_t kPlogDirsDeep = 4;      // directories below the tree's own

struct PlogFile {
  std::string path;  // below the tree's directory: "debug/plog/plog-4711_20260107224103518.log"
  ino_t inode = 0;
  std::uint64_t size = 0;
  std::uint64_t bytes = 0;  // of the disk
  timespec changed{};
};

class PlogTree {
 public:
  explicit PlogTree(std::filesystem::path dir) : dir_(std::move(dir)) {}

  // plog-<pid>_<time>.log of debug/plog and run/plog; the newest first.
  [[nodiscard]] std::vector<PlogFile> logs() const;
  // For reading; nothing: it is not that file any more.
  [[nodiscard]] io::UniqueFd open(const PlogFile& file) const;
  // Removes the oldest files until at most `cap` bytes of the disk, and kPlogFilesMost files, are
  // left; the newest file stays, without its oldest bytes where it alone is larger. Answers the
  // bytes that are left.
  std::uint64_t trim(std::uint64_t cap) const;

 private:
  [[nodiscard]] io::UniqueFd open_below(const std::string& path, int flags) const;
  void walk(const std::string& below, std::size_t deep, std::vector<PlogFile>& files,
            std::size_t& names) const;
  std::filesystem::path dir_;
};

}  // namespace muster::agent
