// The next program of a name on PATH, skipping every file that is this binary.
#include "worker/shim/find_program.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "worker/shim/shim.h"

namespace muster::shim {
namespace {

namespace fs = std::filesystem;

class FindProgram : public testing::Test {
 protected:
  FindProgram() {
    std::string pattern = (fs::temp_directory_path() / "find.XXXXXX").string();
    dir_ = ::mkdtemp(pattern.data());
    for (const char* name : {"shim", "again", "env", "system"}) fs::create_directory(dir_ / name);
  }
  ~FindProgram() override { fs::remove_all(dir_); }
  void program(const std::string& path, fs::perms mode = fs::perms::owner_all) const {
    std::ofstream(dir_ / path) << "#!/bin/sh\n";
    fs::permissions(dir_ / path, mode);
  }
  [[nodiscard]] std::string path_of(const std::vector<std::string>& names) const {
    std::string path;
    for (const std::string& name : names)
      path += (path.empty() ? "" : ":") + (dir_ / name).string();
    return path;
  }
  fs::path dir_;
};

// A link to the shim, a link to that link, a hard link: none of them is found, so that no shim ever
// executes a shim.
TEST_F(FindProgram, NeverFindsItself) {
  const fs::path self = fs::read_symlink("/proc/self/exe");
  fs::create_symlink(self, dir_ / "shim/torchrun");
  fs::create_symlink(dir_ / "shim/torchrun", dir_ / "again/torchrun");
  EXPECT_EQ(find_program("torchrun", path_of({"shim", "again"})), "");
  program("system/torchrun");
  EXPECT_EQ(find_program("torchrun", path_of({"shim", "again", "system"})),
            (dir_ / "system/torchrun").string());
  EXPECT_EQ(find_program("torchrun", ""), "");
}

TEST_F(FindProgram, OnlyWhatCanBeExecuted) {
  program("env/msrun", fs::perms::owner_read);
  fs::create_directory(dir_ / "again/msrun");
  program("system/msrun");
  EXPECT_EQ(find_program("msrun", path_of({"env", "again", "nowhere", "system"})),
            (dir_ / "system/msrun").string());
}

TEST_F(FindProgram, ThePythonOfALaunch) {
  EXPECT_EQ(find_python("/opt/py", path_of({"env"})), "/opt/py");
  EXPECT_EQ(find_python("", path_of({"env"})), "/usr/bin/python3");
  program("system/python3");
  program("env/python");
  EXPECT_EQ(find_python("", path_of({"env"})), (dir_ / "env/python").string());
  EXPECT_EQ(find_python("", path_of({"env", "system"})), (dir_ / "system/python3").string());
}

TEST(ShimName, IsALaunchersOrAPythons) {
  for (const char* name : {"torchrun", "msrun", "python", "python3", "python3.11"})
    EXPECT_TRUE(is_shim_name(name)) << name;
  for (const char* name : {"muster-worker", "", "python-config", "pythonw", "torchrun2", "bash"})
    EXPECT_FALSE(is_shim_name(name)) << name;
}

}  // namespace
}  // namespace muster::shim
