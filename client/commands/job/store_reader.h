// Reads files out of a store with an rclone of this machine, without a controller. It owns the
// configuration with the key, in memory. One thread; calls block.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "common/base/error.h"
#include "common/io/memory_file.h"
#include "common/process/tool.h"
#include "common/store/store_url.h"
#include "muster/v1/store_service.pb.h"

namespace muster::client {

class StoreReader {
 public:
  // `profile`: how the store is reached; its URL is ignored. `key`: empty: it needs none.
  // InvalidArgument: they do not reach such a store. Unsupported: it wants a password, which rclone
  // takes only in a form of its own.
  static Result<StoreReader> make(v1::StoreProfile profile, const store::Url& url,
                                  const std::string& key);

  // The names of all files below the URL. Unreachable: what rclone says. Unsupported: there is no
  // rclone.
  Result<std::vector<std::string>> list();
  // Copies these files to the same names below `dir`. Unreachable.
  Result<void> copy(const std::vector<std::string>& names, const std::filesystem::path& dir);

 private:
  StoreReader() = default;
  Result<std::string> run(std::vector<std::string> args, const std::string& doing);

  std::vector<io::MemoryFile> files_;  // configuration, known hosts, CA
  std::vector<std::string> options_, env_;
  std::string source_;
  process::ToolRunner runner_;
};

// A directory for files of this process, which is removed with it.
class TemporaryDir {
 public:
  static Result<TemporaryDir> make();
  TemporaryDir(TemporaryDir&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  TemporaryDir& operator=(TemporaryDir&&) = delete;
  ~TemporaryDir();
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  explicit TemporaryDir(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;
};

}  // namespace muster::client
