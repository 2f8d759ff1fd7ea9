// The real FileView: bounded reads of what is on this node's file systems. Errors look like
// absence, as a layout wants it. Any thread, unless it is asked for its trouble; blocking.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/engine/layout.h"

namespace muster::agent {

class DiskView : public engine::FileView {
 public:
  // of a head, a part or a tail, whatever is asked
  static constexpr std::size_t kReadMost = 1 << 20;
  // `trouble`: gets the first thing that may well be there and could not be read ("reading 'X':
  // Stale file handle"): of what it holds this node knows nothing.
  explicit DiskView(std::string* trouble = nullptr) : trouble_(trouble) {}
  // Without names that are not UTF-8: nobody could be told of them, nor be ordered to resume from
  // them.
  [[nodiscard]] std::vector<Entry> list(const std::string& dir) const override;
  [[nodiscard]] std::string head(const std::string& file, std::size_t most) const override;
  [[nodiscard]] std::string tail(const std::string& file, std::size_t most) const override;
  [[nodiscard]] std::string part(const std::string& file, std::uint64_t from,
                                 std::size_t most) const override;

 private:
  void failed(const std::string& path, int error) const;
  template <class Where>
  std::string read_part(const std::string& file, std::size_t most, Where&& where) const;

  std::string* trouble_;
};

// Which file system `path` is on: st_dev of it, or of the nearest directory above it that is there.
// 0: cannot be told. Blocking.
std::uint64_t device_of(std::string path);

// The file system of `path` may change without this kernel noticing: NFS, Lustre, FUSE, Ceph, SMB,
// GPFS, BeeGFS. Not there counts as no. Blocking.
bool is_network_file_system(const std::string& path);

}  // namespace muster::agent
