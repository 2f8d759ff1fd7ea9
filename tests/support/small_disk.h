// A file system of a test's own (a tmpfs), so that it can be full. The test that needs it creates
// it, and its destructor unmounts it. It runs on the test's thread.
//
// It needs root: if it could not be made, problem() returns the reason, and the test skips itself.
#pragma once

#include <fcntl.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

namespace muster::test {

class SmallDisk {
 public:
  // `options`: "size=16m", "size=16m,nr_inodes=64".
  SmallDisk(const std::filesystem::path& at, const std::string& options) : at_(at) {
    std::filesystem::create_directory(at);
    mounted_ =
        ::mount("muster-test", at.c_str(), "tmpfs", 0, (options + ",mode=0700").c_str()) == 0;
    error_ = errno;
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;
  ~SmallDisk() {
    if (mounted_) ::umount2(at_.c_str(), MNT_DETACH);
  }
  [[nodiscard]] std::string problem() const {
    return mounted_
               ? ""
               : std::string("cannot mount a tmpfs here (needs root): ") + std::strerror(error_);
  }

 private:
  std::filesystem::path at_;
  bool mounted_ = false;
  int error_ = 0;
};

// Writes until there is no room. Returns the size of the file.
inline std::uintmax_t fill_disk(const std::filesystem::path& file) {
  std::ofstream out(file, std::ios::binary | std::ios::app);
  const std::string block(4'096, 'x');
  while (out.write(block.data(), static_cast<std::streamsize>(block.size())).flush()) {
  }
  out.close();
  return std::filesystem::file_size(file);
}

}  // namespace muster::test
