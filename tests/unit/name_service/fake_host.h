// A host for a test: a directory with tables and perhaps a getent of its own. A test owns it, and
// its destructor removes the directory. It runs on the test's thread.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "common/name_service/getent.h"

namespace muster::name_service {

class FakeHost {
 public:
  FakeHost() {
    std::string name = (std::filesystem::temp_directory_path() / "muster-names-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  FakeHost(const FakeHost&) = delete;
  FakeHost& operator=(const FakeHost&) = delete;
  ~FakeHost() { std::filesystem::remove_all(path_); }

  // Without getent() the host has none. The bound is for a slow machine.
  [[nodiscard]] Tables tables() const {
    return {.path = file("bin"),
            .most = std::chrono::minutes(2),
            .passwd = file("passwd"),
            .group = file("group"),
            .hosts = file("hosts")};
  }
  [[nodiscard]] std::string file(const std::string& name) const { return (path_ / name).string(); }
  void write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories((path_ / name).parent_path());
    std::ofstream(path_ / name) << text;
  }
  // `body`: lines of a shell script. The script first notes what it was asked.
  void getent(const std::string& body) const {
    write("bin/getent", "#!/bin/sh\nPATH=/usr/bin:/bin\necho \"$# $*\" >> '" + file("asked") +
                            "'\n" + body + "\n");
    std::filesystem::permissions(path_ / "bin/getent", std::filesystem::perms::owner_all);
  }
  // What the getent was asked, a line each: the number of arguments, and the arguments.
  [[nodiscard]] std::string asked() const {
    std::ostringstream text;
    text << std::ifstream(file("asked")).rdbuf();
    return std::filesystem::exists(file("asked")) ? text.str() : "";
  }

 private:
  std::filesystem::path path_;
};

}  // namespace muster::name_service
