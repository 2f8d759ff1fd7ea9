// PlogTree is the directory of a rank's process log, which belongs to the run and in which the rank
// may write any files. It has no state but its path: the watch thread has one (PlogReader), and an
// upload of logs has its own.
//
// The layout of CANN:
//
//   plog/rank-3/debug/plog/plog-<pid>_<time>.log   errors; also "run" instead of "debug"
//   plog/rank-3/debug/device-0/...                 logs of the device
//
// No file in the tree can lead outside it. Every part of a path is opened below the previous part,
// and symbolic links are not followed. Only regular files with a single name are read or cut. Every
// scan is bounded.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <ctime>
#include <filesystem>
#include <string>
#include <vector>

#include "common/io/unique_fd.h"

namespace muster::agent {

inline constexpr std::size_t kPlogNamesMost = 4096;  // names read in one scan of one tree
inline constexpr std::size_t kPlogFilesMost = 1024;  // files kept in one tree
inline constexpr std::size_t kPlogDirsDeep = 4;      // levels of directories below the tree's own

struct PlogFile {
  // relative to the tree's directory: "debug/plog/plog-4711_20260107224103518.log"
  std::string path;
  ino_t inode = 0;
  std::uint64_t size = 0;
  std::uint64_t bytes = 0;  // on the disk
  timespec changed{};
};

class PlogTree {
 public:
  explicit PlogTree(std::filesystem::path dir) : dir_(std::move(dir)) {}

  [[nodiscard]] bool exists() const;
  // Returns the files plog-<pid>_<time>.log of debug/plog and run/plog, the newest first.
  [[nodiscard]] std::vector<PlogFile> logs() const;
  // Returns all files of the tree, at most kPlogFilesMost, the newest first.
  [[nodiscard]] std::vector<PlogFile> files() const;
  // Opens the file for reading. Returns no descriptor if another file now has its name.
  [[nodiscard]] io::UniqueFd open(const PlogFile& file) const;
  // Removes the oldest files until at most `cap` bytes on the disk and kPlogFilesMost files are
  // left. The newest file stays. If it alone is larger than `cap`, its oldest bytes are punched.
  // Returns the bytes that are left.
  std::uint64_t trim(std::uint64_t cap) const;

 private:
  [[nodiscard]] io::UniqueFd open_below(const std::string& path, int flags) const;
  void walk(const std::string& below, std::size_t deep, std::vector<PlogFile>& files,
            std::size_t& names) const;
  std::filesystem::path dir_;
};

}  // namespace muster::agent
