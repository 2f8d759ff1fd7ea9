// Files of an order, on the disk before anything of it starts: whole, with the right bytes and
// mode, and only where they may be.
#include "agent/start/launch_files.h"

#include <openssl/evp.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "agent/start/start_checks.h"
#include "common/rundir/records.h"
#include "common/rundir/setup_prefix.h"
#include "tests/unit/agent_run/support.h"

namespace muster::agent {
namespace {

namespace fs = std::filesystem;

class LaunchFiles : public ::testing::Test {
 protected:
  LaunchFiles() : run_(dir_.path() / "run") {
    EXPECT_TRUE(rundir::make_run(run_));
    fs::create_directories(dir_.path() / "out");
    order_.add_make_dirs((dir_.path() / "out").string());
  }
  v1::LaunchFile& file(const std::string& name, const std::string& content = "hello") {
    v1::LaunchFile& added = *order_.add_files();
    added.set_path((dir_.path() / "out" / name).string());
    added.set_mode(0644);
    added.set_content(content);
    added.set_sha256(sha256(content));
    return added;
  }
  static std::string sha256(const std::string& bytes) {
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned size = 0;
    EVP_Digest(bytes.data(), bytes.size(), digest, &size, EVP_sha256(), nullptr);
    std::string text;
    for (unsigned i = 0; i < size; ++i) {
      text += "0123456789abcdef"[digest[i] >> 4U];
      text += "0123456789abcdef"[digest[i] & 15U];
    }
    return text;
  }
  Result<void> write() { return write_launch_files(order_, run_, nullptr); }
  // Returns the refusal of the files, and checks that nothing was left.
  std::pair<v1::StartFailure, std::string> refusal() {
    const auto written = write();
    EXPECT_FALSE(written);
    if (written) return {};
    EXPECT_EQ(std::distance(fs::directory_iterator(dir_.path() / "out"), {}), left_)
        << "a part of it, or something beside it, was left";
    return {failure_of(written.error()), written.error().message};
  }
  [[nodiscard]] std::string out(const std::string& name) const {
    return (dir_.path() / "out" / name).string();
  }

  TempDir dir_;
  rundir::RunLayout run_;
  v1::NodeLaunch order_;
  std::ptrdiff_t left_ = 0;
};

TEST_F(LaunchFiles, AreWrittenWithTheirModeAndNothingNextToThem) {
  EXPECT_EQ(sha256("hello"), "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824");
  file("hccl.json", std::string("a\0b", 3));
  file("key", "secret").set_mode(0600);
  file("plain").set_mode(0);
  const mode_t before = ::umask(077);
  const auto written = write();
  ::umask(before);
  ASSERT_TRUE(written) << written.error().message;
  EXPECT_EQ(read_text(out("hccl.json")), std::string("a\0b", 3));
  EXPECT_EQ(fs::status(out("hccl.json")).permissions(), static_cast<fs::perms>(0644))
      << "whatever the umask is";
  EXPECT_EQ(fs::status(out("key")).permissions(), static_cast<fs::perms>(0600));
  EXPECT_EQ(fs::status(out("plain")).permissions(), static_cast<fs::perms>(0644));
  EXPECT_EQ(std::distance(fs::directory_iterator(dir_.path() / "out"), {}), 3);
}

TEST_F(LaunchFiles, ReplaceWhatIsThereAndFollowNoLink) {
  dir_.write("elsewhere", "kept");
  fs::create_symlink(dir_.path() / "elsewhere", out("linked"));
  std::ofstream(out("old")) << "old and longer than the new one";
  file("linked", "new");
  file("old", "new");
  ASSERT_TRUE(write());
  EXPECT_EQ(read_text(dir_.path() / "elsewhere"), "kept");
  EXPECT_FALSE(fs::is_symlink(out("linked")));
  EXPECT_EQ(read_text(out("linked")), "new");
  EXPECT_EQ(read_text(out("old")), "new");
}

TEST_F(LaunchFiles, OtherBytesThanTheirHashIsOfAreNotWritten) {
  for (const std::string& hash : {sha256("other"), std::string(), std::string("2CF2")}) {
    order_.clear_files();
    file("hccl.json").set_sha256(hash);
    const auto [why, text] = refusal();
    EXPECT_EQ(why, v1::START_FAILURE_NODE);
    EXPECT_EQ(text, "writing file '" + out("hccl.json") +
                        "': its 5 bytes are not those whose hash came with them ('" + hash +
                        "'); it was not written");
  }
}

TEST_F(LaunchFiles, PathsThatMayNotBeWrittenAreTheJobsFault) {
  const auto with_path = [&](const std::string& path) {
    order_.clear_files();
    file("x").set_path(path);
    return refusal();
  };
  for (const std::string& path :
       {std::string("out/x"), out("../x"), out("sub/x"), out(""), (dir_.path() / "x").string(),
        std::string("/etc/passwd"), std::string()}) {
    EXPECT_EQ(with_path(path).first, v1::START_FAILURE_LAUNCH) << path;
  }
  EXPECT_EQ(with_path((dir_.path() / "x").string()).second,
            "writing file '" + (dir_.path() / "x").string() +
                "': its directory is none that the order has made");
  fs::create_directories(out("taken"));
  left_ = 1;
  EXPECT_EQ(with_path(out("taken")).second,
            "writing file '" + out("taken") + "': a directory of that name is there; move it away");
  order_.clear_files();
  file("x").set_mode(04755);
  EXPECT_EQ(refusal().second,
            "writing file '" + out("x") + "': mode 4755 has more than the permissions of a file");
}

TEST_F(LaunchFiles, HaveABoundTogether) {
  file("one", std::string(kLaunchFilesMost, 'x'));
  file("two", "y");
  const auto [why, text] = refusal();
  EXPECT_EQ(why, v1::START_FAILURE_LAUNCH);
  EXPECT_NE(text.find("have more than 12 MiB together"), std::string::npos) << text;
}

// As on a full disk: the write ends in the middle.
TEST_F(LaunchFiles, AFullDiskLeavesNothing) {
  const std::string small = (dir_.path() / "out").string();
  if (::mount("none", small.c_str(), "tmpfs", 0, "size=64k") != 0)
    GTEST_SKIP() << "may not mount a small file system";
  file("big", std::string(1U << 20U, 'x'));
  const auto [why, text] = refusal();
  EXPECT_EQ(::umount(small.c_str()), 0);
  EXPECT_EQ(why, v1::START_FAILURE_DISK) << text;
}

TEST_F(LaunchFiles, OfAnotherUserAreHisAndReachNoFurtherThanHe) {
  if (::geteuid() != 0)
    GTEST_SKIP() << "only root starts processes as another user; this is user " << ::geteuid();
  const auto user = find_user("nobody");
  ASSERT_TRUE(user);
  fs::permissions(dir_.path(), static_cast<fs::perms>(0755));
  ASSERT_EQ(::chown(out("").c_str(), user->uid, user->gid), 0);
  file("hccl.json");
  const auto written = write_launch_files(order_, run_, &*user);
  ASSERT_TRUE(written) << written.error().message;
  struct stat info{};
  ASSERT_EQ(::stat(out("hccl.json").c_str(), &info), 0);
  EXPECT_EQ(info.st_uid, user->uid);
  EXPECT_EQ(info.st_gid, user->gid);
  // The user has replaced his own directory with a link to a directory of root.
  fs::create_directories(dir_.path() / "of root");
  fs::remove_all(dir_.path() / "out");
  fs::create_symlink(dir_.path() / "of root", dir_.path() / "out");
  EXPECT_FALSE(write_launch_files(order_, run_, &*user));
  EXPECT_TRUE(fs::is_empty(dir_.path() / "of root"));
  dir_.write("mine again", "");
  ASSERT_EQ(::stat((dir_.path() / "mine again").c_str(), &info), 0);
  EXPECT_EQ(info.st_uid, 0U) << "this thread has its own rights back";
}

TEST_F(LaunchFiles, TheSetupsScriptIsPrivateAndEndsWithTheEnvironment) {
  order_.mutable_setup()->add_commands("source set_env.sh");
  order_.mutable_setup()->add_commands("export A=1");
  ASSERT_TRUE(write());
  const std::string names(rundir::kSetupPrefix);
  EXPECT_EQ(read_text(run_.setup_script()),
            names + "source set_env.sh\nexport A=1\n/usr/bin/env -0 >| \"$MUSTER_SETUP_ENV\"\n");
  EXPECT_EQ(fs::status(run_.setup_script()).permissions(), static_cast<fs::perms>(0600));
  order_.mutable_setup()->add_commands("export B=2 \\");
  ASSERT_TRUE(write());
  EXPECT_TRUE(read_text(run_.setup_script())
                  .ends_with("export B=2 \\\n\n/usr/bin/env -0 >| \"$MUSTER_SETUP_ENV\"\n"))
      << "the line that follows stays one";
  order_.mutable_setup()->add_commands(std::string("a\0b", 3));
  EXPECT_FALSE(write());
}

TEST_F(LaunchFiles, AreThereBeforeTheRunStarts) {
  HostIncarnation agent(dir_.path() / "state");
  v1::NodeLaunch launch = shell_launch(dir_.path(), "cat out/hccl.json");
  *launch.mutable_make_dirs() = order_.make_dirs();
  file("hccl.json", "{}");
  *launch.mutable_files() = order_.files();
  agent.perform(StartRun{.run = kRun, .launch = launch});
  ASSERT_TRUE(agent.wait_for(
      [](const RunSeen& seen) { return seen.swept && seen.worker == WorkerState::Dead; }));
  EXPECT_EQ(read_text(rundir::RunLayout(agent.run_dir()).rank_log(0)), "{}");
}

}  // namespace
}  // namespace muster::agent
