// A temporary directory of a test, and a writer of log files. A test owns them. They run on the
// test's thread.
//
// The files are real files on a real file system, because the tests need holes, truncation and
// inotify.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>

namespace muster::test {

class TempDir {
 public:
  TempDir() {
    std::string path = (std::filesystem::temp_directory_path() / "muster-logs-XXXXXX").string();
    if (::mkdtemp(path.data()) == nullptr) std::abort();
    path_ = path;
  }
  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// Writes as a rank does: with O_APPEND, so that after a truncation the next byte is at the
// beginning.
class Appender {
 public:
  explicit Appender(const std::filesystem::path& path)
      : fd_(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600)) {
    if (fd_ < 0) std::abort();
  }
  ~Appender() { ::close(fd_); }
  Appender(const Appender&) = delete;
  Appender& operator=(const Appender&) = delete;
  void write(std::string_view bytes) const {
    while (!bytes.empty()) {
      const ssize_t went = ::write(fd_, bytes.data(), bytes.size());
      if (went <= 0) std::abort();
      bytes.remove_prefix(static_cast<std::size_t>(went));
    }
  }
  void truncate() const {
    if (::ftruncate(fd_, 0) != 0) std::abort();
  }

 private:
  int fd_;
};

}  // namespace muster::test
