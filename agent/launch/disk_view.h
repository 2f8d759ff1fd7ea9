// DiskView is the FileView that reads the file systems of this node. Each caller creates its own.
// Any thread may use it, but only one thread if it has a `trouble` string; its calls block.
//
// Each read is bounded (kReadMost), and so is each list (kNamesMost). A layout sees an error as a
// missing file, as FileView requires.
//
// A job writes what is read here. Only regular files are read, and a pipe is opened without waiting
// for its other end. Links are followed as far as `reach` allows.
#pragma once

#include <dirent.h>
#include <sys/stat.h>

#include <cstdint>
#include <string>
#include <vector>

#include "agent/launch/job_reach.h"
#include "common/engine/model/layout.h"

namespace muster::agent {

class DiskView : public engine::FileView {
 public:
  // Bytes of one head, part or tail; a larger request gets only these.
  static constexpr std::size_t kReadMost = 1 << 20;
  // Names of one directory; more are not read. A checkpoint has some names for each rank.
  static constexpr std::size_t kNamesMost = 1 << 18;
  // `trouble` receives the first path that may exist and that could not be read, for example
  // "reading 'X': Stale file handle". This node knows nothing about the contents of such a path.
  // `reach` must live as long as this; null: everything is read.
  explicit DiskView(std::string* trouble = nullptr, const InReach* reach = nullptr)
      : trouble_(trouble), reach_(reach) {}
  // Leaves out names that are not UTF-8: messages cannot carry them, so the controller could
  // neither learn of them nor order a resume from them.
  [[nodiscard]] std::vector<Entry> list(const std::string& dir) const override;
  [[nodiscard]] std::string head(const std::string& file, std::size_t most) const override;
  [[nodiscard]] std::string tail(const std::string& file, std::size_t most) const override;
  [[nodiscard]] std::string part(const std::string& file, std::uint64_t from,
                                 std::size_t most) const override;

 private:
  void failed(const std::string& path, int error) const;
  [[nodiscard]] bool allows(int fd) const { return reach_ == nullptr || reach_->allows(fd); }
  // As stat(2) in the open directory. 0, or errno; ENOENT: the job cannot reach it.
  int state_of_entry(int dir, const dirent& entry, struct stat& now) const;
  template <class Where>
  std::string read_part(const std::string& file, std::size_t most, Where&& where) const;

  std::string* trouble_;
  const InReach* reach_;
};

// Returns st_dev of the file system of `path`, or of its nearest existing parent directory. Returns
// 0 if that is unknown. Blocks.
std::uint64_t device_of(std::string path);

// Reports whether the file system of `path` may change without notice to this kernel: NFS, Lustre,
// FUSE, Ceph, SMB, GPFS, BeeGFS, 9p. A missing path counts as no. Blocks.
bool is_network_file_system(const std::string& path);

}  // namespace muster::agent
