#include "client/commands/local/local_socket.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

namespace muster::client {
namespace {

namespace fs = std::filesystem;

class LocalSocketTest : public testing::Test {
 protected:
  LocalSocketTest() {
    std::string pattern = (fs::temp_directory_path() / "muster-XXXXXX").string();
    dir_ = ::mkdtemp(pattern.data());
    if (const char* before = std::getenv("XDG_RUNTIME_DIR")) before_ = before;
    ::setenv("XDG_RUNTIME_DIR", (dir_ / "run").c_str(), 1);
  }
  ~LocalSocketTest() override {
    if (before_.empty()) {
      ::unsetenv("XDG_RUNTIME_DIR");
    } else {
      ::setenv("XDG_RUNTIME_DIR", before_.c_str(), 1);
    }
    fs::remove_all(dir_);
  }
  fs::path dir_;
  std::string before_;
  const fs::path long_ = "/" + std::string(120, 'x');
};

TEST_F(LocalSocketTest, ALongPathGetsAShortSocket) {
  const auto socket = place_local_socket(long_);
  ASSERT_TRUE(socket) << socket.error().message;
  EXPECT_EQ(socket->parent_path(), dir_ / "run");
}

TEST_F(LocalSocketTest, APlainFileInThePlaceOfTheDirectory) {
  std::ofstream(dir_ / "run") << "mine";
  const auto socket = place_local_socket(long_);
  ASSERT_FALSE(socket);
  EXPECT_NE(socket.error().message.find("; set XDG_RUNTIME_DIR to a directory of this user alone"),
            std::string::npos)
      << socket.error().message;
  EXPECT_TRUE(fs::is_regular_file(dir_ / "run"));
}

}  // namespace
}  // namespace muster::client
