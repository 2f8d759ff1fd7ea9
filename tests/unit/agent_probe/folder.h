// A temporary directory for a test, and stand-in tools in it. A test owns it, and its destructor
// removes the directory. It runs on the test's thread.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "recorded.h"

namespace muster::agent::probe {

class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "muster-probe-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { std::filesystem::remove_all(path_); }

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] std::string file(const std::string& name) const { return (path_ / name).string(); }
  void write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories((path_ / name).parent_path());
    std::ofstream(path_ / name) << text;
  }
  // Copies a stand-in of tests/support/probe to a tool's name.
  void tool(const std::string& name, const std::string& stand_in) const {
    std::filesystem::copy_file(stand_ins() / stand_in, path_ / name,
                               std::filesystem::copy_options::overwrite_existing);
  }

 private:
  std::filesystem::path path_;
};

}  // namespace muster::agent::probe
