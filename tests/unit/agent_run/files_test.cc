// Files from one node's disk to another's: what is sent for a fetch, what is accepted, and what is
// refused or cut off.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "agent/saves/files_out.h"
#include "agent/start/files_in.h"

namespace muster::agent {
namespace {

namespace fs = std::filesystem;

class Files : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "muster-files-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
    what_.set_node("n1");
    what_.set_path((root_ / "from").string());
  }
  void TearDown() override {
    std::error_code ignored;
    fs::remove_all(root_, ignored);
  }
  void put(const std::string& path, const std::string& text) const {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  [[nodiscard]] std::string text_of(const std::string& path) const {
    std::ifstream file(root_ / path);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
  }
  [[nodiscard]] std::string to() const { return (root_ / "to").string(); }
  Result<FilesIn> begin() { return FilesIn::begin(to(), "job-0", 2, nullptr); }
  std::vector<v1::FilePart> sent() {
    std::vector<v1::FilePart> parts;
    const auto read = read_files(what_, nullptr, [&](v1::FilePart part) {
      parts.push_back(std::move(part));
      return true;
    });
    EXPECT_TRUE(read.has_value()) << (read ? "" : read.error().message);
    return parts;
  }
  static v1::FilePart file(const std::string& path, std::uint64_t size) {
    v1::FilePart part;
    part.mutable_begin()->set_path(path);
    part.mutable_begin()->set_size(size);
    part.mutable_begin()->set_mode(0644);
    return part;
  }
  static v1::FilePart data(const std::string& bytes) {
    v1::FilePart part;
    part.set_data(bytes);
    return part;
  }
  static v1::FilePart end(std::uint64_t files, std::uint64_t bytes) {
    v1::FilePart part;
    part.mutable_end()->set_files(files);
    part.mutable_end()->set_bytes(bytes);
    return part;
  }
  // True if nothing of it exists, neither under its name nor in the same directory.
  [[nodiscard]] bool nothing_there() const {
    for (const auto& entry : fs::directory_iterator(root_))
      if (entry.path().filename().string().starts_with("to")) return false;
    return true;
  }

  fs::path root_;
  v1::Fetch what_;
};

TEST_F(Files, AllOfADirectoryComesWithItsModesAndIsThereWhole) {
  const std::string large(1'300'000, 'x');
  put("from/strategy/a.ckpt", "alpha");
  put("from/strategy/deep/b.ckpt", large);
  put("from/empty", "");
  put("outside", "secret");
  fs::create_symlink(root_ / "outside", root_ / "from/link");
  ASSERT_EQ(::mkfifo((root_ / "from/fifo").c_str(), 0600), 0);
  fs::permissions(root_ / "from/strategy/a.ckpt", fs::perms::owner_read);
  put("to/strategy/a.ckpt", "older");
  put("to.fetch-job-0.1/half", "x");
  put("to.fetch-job-01.1/half", "x");
  {
    auto files = begin();
    ASSERT_TRUE(files.has_value());
    for (const v1::FilePart& part : sent()) {
      EXPECT_FALSE(files->whole());
      ASSERT_TRUE(files->take(part).has_value());
    }
    ASSERT_TRUE(files->whole());
    EXPECT_FALSE(fs::exists(root_ / "to.fetch-job-0.1")) << "of an attempt before";
    EXPECT_TRUE(fs::exists(root_ / "to.fetch-job-01.1")) << "another directory's";
    EXPECT_EQ(text_of("to/strategy/a.ckpt"), "older") << "before it is put in place";
    ASSERT_TRUE(files->put().has_value());
  }
  EXPECT_EQ(text_of("to/strategy/a.ckpt"), "alpha");
  EXPECT_EQ(text_of("to/strategy/deep/b.ckpt"), large);
  EXPECT_EQ(fs::status(root_ / "to/strategy/a.ckpt").permissions(), fs::perms::owner_read);
  EXPECT_TRUE(fs::exists(root_ / "to/empty"));
  EXPECT_FALSE(fs::exists(fs::symlink_status(root_ / "to/link"))) << "links are not followed";
  EXPECT_FALSE(fs::exists(root_ / "to/fifo"));
  EXPECT_FALSE(fs::exists(root_ / "to.fetch-job-0.2"));
}

// The job replaces things while they are sent. A link in the place of a file leads nowhere, and
// another directory in the place of the root is not mixed into the first.
TEST_F(Files, WhatIsReplacedWhileItIsReadIsNotFollowed) {
  put("from/a", "alpha");
  put("from/deep/b", "beta");
  put("outside/b", "secret");
  std::string all;
  auto replaced = read_files(what_, nullptr, [&](const v1::FilePart& part) {
    if (part.begin().path() == "a") {
      fs::rename(root_ / "from/deep", root_ / "from/was");
      fs::create_directory_symlink(root_ / "outside", root_ / "from/deep");
    }
    all += part.data();
    return true;
  });
  ASSERT_FALSE(replaced);
  EXPECT_EQ(replaced.error().message,
            "reading '" + what_.path() + "' for another node on node 'n1': opening '" +
                what_.path() + "/deep/b': Too many levels of symbolic links");
  EXPECT_EQ(all, "alpha");

  fs::remove(root_ / "from/deep");
  fs::rename(root_ / "from/was", root_ / "from/deep");
  put("other/a", "other");
  put("other/deep/b", "other");
  all.clear();
  replaced = read_files(what_, nullptr, [&](const v1::FilePart& part) {
    if (part.begin().path() == "a") {
      fs::rename(root_ / "from", root_ / "first");
      fs::rename(root_ / "other", root_ / "from");
    }
    all += part.data();
    return true;
  });
  EXPECT_TRUE(replaced);
  EXPECT_EQ(all, "alphabeta");
}

// A name on the disk is bytes. protobuf refuses a message whose text is not UTF-8.
TEST_F(Files, ANameThatIsNotUtf8Comes) {
  put("from/a\xff.ckpt", "alpha");
  auto files = begin();
  ASSERT_TRUE(files.has_value());
  for (const v1::FilePart& part : sent()) {
    v1::FilePart arrived;
    ASSERT_TRUE(arrived.ParseFromString(part.SerializeAsString()));
    ASSERT_TRUE(files->take(arrived).has_value());
  }
  ASSERT_TRUE(files->put().has_value());
  EXPECT_EQ(text_of("to/a\xff.ckpt"), "alpha");
  v1::FilePart failed, arrived;
  failed.mutable_failed()->set_text("reading 'a\xff.ckpt': Input/output error");
  ASSERT_TRUE(arrived.ParseFromString(failed.SerializeAsString()));
}

TEST_F(Files, WhatIsNotThereIsReportedWithItsNode) {
  const auto read = read_files(what_, nullptr, [](const v1::FilePart&) { return true; });
  ASSERT_FALSE(read.has_value());
  EXPECT_EQ(read.error().message, "reading '" + what_.path() +
                                      "' for another node: it has no files on node 'n1'; go on "
                                      "from another checkpoint (--from)");
}

TEST_F(Files, OneThatIsCutOffIsNotThere) {
  {
    auto files = begin();
    ASSERT_TRUE(files.has_value());
    ASSERT_TRUE(files->take(file("a", 3)).has_value());
    ASSERT_TRUE(files->take(data("ab")).has_value());
    EXPECT_FALSE(files->put().has_value());
  }
  EXPECT_TRUE(nothing_there());
  {
    auto files = begin();
    ASSERT_TRUE(files->take(file("a", 3)).has_value());
    ASSERT_TRUE(files->take(data("ab")).has_value());
    const auto ended = files->take(end(1, 2));
    ASSERT_FALSE(ended.has_value());
    EXPECT_NE(ended.error().message.find("'a' is 1 bytes short"), std::string::npos)
        << ended.error().message;
  }
  {
    auto files = begin();
    ASSERT_TRUE(files->take(file("a", 2)).has_value());
    ASSERT_TRUE(files->take(data("ab")).has_value());
    EXPECT_FALSE(files->take(end(2, 2)).has_value()) << "a file is missing";
    EXPECT_FALSE(files->put().has_value());
  }
  EXPECT_TRUE(nothing_there());
}

// On a small disk, in a mount namespace that only one thread uses.
TEST_F(Files, AFullDiskIsReportedAndNothingIsLeft) {
  put("from/a.ckpt", std::string(1 << 20, 'x'));
  fs::create_directories(root_ / "small");
  std::string why, message;
  bool left = true;
  ErrorCode code = ErrorCode::Internal;
  std::thread([&] {
    if (::unshare(CLONE_NEWNS) != 0 ||
        ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("none", (root_ / "small").c_str(), "tmpfs", 0, "size=256k,mode=0700") != 0) {
      why = std::strerror(errno);
      return;
    }
    {
      auto files = FilesIn::begin((root_ / "small/to").string(), "job-0", 1, nullptr);
      ASSERT_TRUE(files.has_value());
      for (const v1::FilePart& part : sent()) {
        if (const auto taken = files->take(part); !taken) {
          message = taken.error().message;
          code = taken.error().code;
          break;
        }
      }
    }
    left = !fs::is_empty(root_ / "small");
  }).join();
  if (!why.empty()) GTEST_SKIP() << "this user may mount nothing: " << why;
  EXPECT_EQ(message, "fetching '" + (root_ / "small/to").string() +
                         "': writing 'a.ckpt': No space left on device; make room on that disk");
  EXPECT_EQ(code, ErrorCode::ResourceExhausted) << "the failed start is one for lack of room";
  EXPECT_FALSE(left);
}

TEST_F(Files, NamesThatDoNotStayBelowAreRefused) {
  for (const std::string name : {"/etc/x", "../x", "a/../../x", "a//x", "", ".", "a/", "a/./x"}) {
    auto files = begin();
    ASSERT_TRUE(files.has_value());
    EXPECT_FALSE(files->take(file(name, 1)).has_value()) << name;
  }
  auto files = begin();
  EXPECT_FALSE(files->take(data("x")).has_value()) << "bytes of no file";
  ASSERT_TRUE(files->take(file("a", 1)).has_value());
  EXPECT_FALSE(files->take(data("xy")).has_value()) << "more than it has";
  EXPECT_FALSE(fs::exists(root_ / "x"));
}

}  // namespace
}  // namespace muster::agent
