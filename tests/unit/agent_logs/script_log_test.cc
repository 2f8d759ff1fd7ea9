// Files into which a node's script writes the output of its ranks: they are copied, read as logs,
// and never changed.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <semaphore>

#include "common/io/file.h"
#include "common/process/spawn.h"
#include "common/rundir/layout.h"
#include "tests/unit/agent_logs/watch_ground.h"

namespace muster::agent {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::StartsWith;
namespace fs = std::filesystem;

class ScriptLogTest : public WatchTest {
 protected:
  ScriptLogTest() { options_.blind_scan = 20ms; }

  fs::path file(int rank) { return dir_.path() / ("train_" + std::to_string(rank) + ".log"); }
  static void write(const fs::path& path, const std::string& text) {
    std::ofstream(path, std::ios::app | std::ios::binary) << text;
  }
  static std::string text_of(const fs::path& path) {
    return io::read_file(path, 64 << 20).value_or("");
  }
  ScriptLog of(int rank, fs::path path = {}) {
    return {.name = "rank-" + std::to_string(rank),
            .rank = static_cast<std::uint32_t>(rank),
            .process = {},
            .path = path.empty() ? file(rank).string() : path.string()};
  }
  void follow(int rank, const fs::path& path = {}) {
    const auto followed = watch_->follow(run_, of(rank, path));
    ASSERT_TRUE(followed) << followed.error().message;
  }
  // What the log link gets of it.
  std::string shipped(int rank) {
    const LogName name{run_, RankNo(0), "rank-" + std::to_string(rank)};
    watch_->controller_has(name, 0, 0, false);
    std::string all;
    for (;;) {
      const auto piece = watch_->read(name, all.size(), 1 << 20);
      if (!piece || piece->data.empty()) return all;
      all += piece->data;
    }
  }
  fs::path copy(int rank) {
    return rundir::RunLayout(run_dir_).node_log("rank-" + std::to_string(rank));
  }
  // Returns true when all of it was read, including the mark of the end.
  bool ended(int rank) {
    for (const LogStatus& log : watch_->logs())
      if (log.name.auxiliary == "rank-" + std::to_string(rank)) return log.ended;
    return false;
  }
  std::int64_t step() {
    return reading(run_).ranks_size() > 0 ? reading(run_).ranks(0).step() : -2;
  }
  void live_again() {
    watch_->stop();
    watch_.reset();
    start();
    add({0});
  }
};

TEST_F(ScriptLogTest, AreShippedAndTellTheScriptsSteps) {
  add({0});
  write(file(5), line(1) + line(2));
  follow(5);
  ASSERT_TRUE(eventually([&] { return step() == 2; }));
  ASSERT_TRUE(comes(
      run_, [](const Reports& to) { return to.first_steps == std::vector<std::int64_t>{1}; }));
  write(file(5), line(3) + "unfinished");
  ASSERT_TRUE(eventually([&] { return step() == 3 && shipped(5) == text_of(file(5)); }));
  EXPECT_TRUE(reading(run_).ranks(0).has_loss());
  EXPECT_GE(watch_->bytes_read(run_), text_of(file(5)).size());
  watch_->run_swept(run_);
  ASSERT_TRUE(eventually([&] { return ended(5); }));
  EXPECT_FALSE(watch_->logs_complete(run_));
}

TEST_F(ScriptLogTest, TheLowestRankThatTellsStepsSpeaks) {
  add({0});
  follow(6);
  write(file(6), line(7));
  ASSERT_TRUE(eventually([&] { return step() == 7; }));
  follow(4);
  follow(5);
  write(file(4), "it prints none\n");
  write(file(5), line(3));
  ASSERT_TRUE(eventually([&] { return step() == 3; }));
  write(file(6), line(8));
  ASSERT_TRUE(eventually([&] { return shipped(6) == text_of(file(6)); }));
  EXPECT_EQ(step(), 3);
  write(log(0), line(2));
  ASSERT_TRUE(eventually([&] { return step() == 2; }))
      << "the script's own log is the first of them";
}

// The agent may be killed anywhere: only the length of the copy is known, and that is enough.
TEST_F(ScriptLogTest, NothingIsLostOrDoubledOverIncarnationsOfTheAgent) {
  add({0});
  follow(5);
  std::string all;
  for (int i = 1; i <= 6; ++i) {
    write(file(5), line(i));
    all += line(i);
    if (i % 2 == 0) {
      ASSERT_TRUE(eventually([&] { return shipped(5) == all; })) << i;
    }
    live_again();
    follow(5);
  }
  ASSERT_TRUE(eventually([&] { return shipped(5) == all && step() == 6; }));
  watch_->run_swept(run_);
  ASSERT_TRUE(eventually([&] { return ended(5); }));
  // The next attempt's script writes to the same name.
  std::ofstream(file(5), std::ios::trunc) << "another's\n";
  live_again();
  follow(5);
  watch_->run_swept(run_);
  ASSERT_TRUE(eventually([&] { return ended(5); }));
  EXPECT_EQ(text_of(copy(5)), all);
}

TEST_F(ScriptLogTest, ATruncatedOrReplacedFileIsAGap) {
  add({0});
  follow(5);
  const LogName name{run_, RankNo(0), "rank-5"};
  write(file(5), "the first content\n");
  ASSERT_TRUE(eventually([&] { return shipped(5) == "the first content\n"; }));
  watch_->controller_has(name, 18, 18, false);
  std::ofstream(file(5), std::ios::trunc) << "the second content, which is longer\n";
  const auto piece_has = [&](const std::string& data) {
    return eventually([&] {
      const auto piece = watch_->read(name, 18, 1 << 20);
      return piece && piece->data == data && piece->loss &&
             piece->loss->reason == "truncated by the program";
    });
  };
  ASSERT_TRUE(piece_has("the second content, which is longer\n"));
  std::ofstream(dir_.path() / "new") << "the third, of another inode\n";
  fs::rename(dir_.path() / "new", file(5));
  ASSERT_TRUE(piece_has("the third, of another inode\n"));
}

// A program that did not open the file for appending continues at its old position; everything
// before that is a hole.
TEST_F(ScriptLogTest, TheHoleBehindATruncationIsLeftOut) {
  add({0});
  follow(5);
  const int fd = ::open(file(5).c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  const std::string before(1 << 20, 'x');
  ASSERT_EQ(::pwrite(fd, before.data(), before.size(), 0), static_cast<ssize_t>(before.size()));
  ASSERT_TRUE(
      eventually([&] { return fs::exists(copy(5)) && fs::file_size(copy(5)) == before.size(); }));
  ASSERT_EQ(::ftruncate(fd, 0), 0);
  ASSERT_EQ(::pwrite(fd, "goes on\n", 8, static_cast<off_t>(before.size())), 8);
  ::close(fd);
  ASSERT_TRUE(eventually([&] {
    return text_of(copy(5)).ends_with("goes on\n") && text_of(copy(5)).size() < 64 << 10;
  }));
  EXPECT_EQ(fs::file_size(file(5)), before.size() + 8) << "it is the user's own";
  std::ofstream(dir_.path() / "hollow").close();
  fs::resize_file(dir_.path() / "hollow", std::uintmax_t(1) << 40);
  fs::rename(dir_.path() / "hollow", file(5));
  ASSERT_TRUE(eventually([&] { return fs::file_size(copy(5)) == 0; })) << "a terabyte of nothing";
  const int again = ::open(file(5).c_str(), O_WRONLY | O_CLOEXEC);
  ASSERT_EQ(::pwrite(again, "late\n", 5, off_t(1) << 40), 5);
  ::close(again);
  ASSERT_TRUE(eventually([&] { return text_of(copy(5)) == "late\n"; }));
}

TEST_F(ScriptLogTest, WhatIsNoFileOfTheJobsIsNotRead) {
  add({0});
  std::ofstream(dir_.path() / "secret") << "not for everybody\n";
  fs::create_symlink(dir_.path() / "secret", dir_.path() / "link");
  ASSERT_EQ(::mkfifo((dir_.path() / "pipe").c_str(), 0600), 0);
  std::ofstream(run_dir_ / "launch") << "the node's own\n";
  follow(1, dir_.path() / "link");
  follow(2, dir_.path() / "pipe");
  follow(3, run_dir_ / "launch");
  follow(4, dir_.path() / "nowhere/log");
  fs::create_directory_symlink(run_dir_, dir_.path() / "way");
  follow(6, dir_.path() / "way/launch");
  // For a path in a container, the mount itself may be reached through a link, but nothing below
  // it.
  fs::create_directory_symlink(dir_.path(), dir_.path() / "mount");
  fs::create_directory_symlink(dir_.path(), dir_.path() / "out-of-it");
  for (const int rank : {7, 8}) {
    ScriptLog log =
        of(rank, dir_.path() / (rank == 7 ? "mount/out-of-it/secret" : "mount/train_5.log"));
    log.mount = dir_.path() / "mount";
    ASSERT_TRUE(watch_->follow(run_, log));
  }
  follow(5);
  write(file(5), "sound\n");
  ASSERT_TRUE(eventually([&] { return shipped(5) == "sound\n" && shipped(8) == "sound\n"; }));
  watch_->run_swept(run_);
  ASSERT_TRUE(eventually([&] {
    return ended(1) && ended(2) && ended(3) && ended(4) && ended(5) && ended(6) && ended(7) &&
           ended(8);
  }));
  for (const int rank : {1, 2, 3, 4, 6, 7}) EXPECT_EQ(shipped(rank), "") << rank;
  EXPECT_TRUE(troubles().empty()) << troubles().front();
}

// `>>`: what an earlier attempt wrote belongs to that attempt.
TEST_F(ScriptLogTest, OfAFileThatWasThereAndIsAppendedToOnlyWhatIsNewCounts) {
  add({0});
  for (const bool old : {true, false}) {
    const fs::path path = file(old ? 5 : 6);
    write(path, line(90));
    const auto spawned =
        process::spawn({.path = "/bin/sh",
                        .argv = {"sh", "-c", "exec sleep 1000 >> '" + path.string() + "'"},
                        .env = {},
                        .cwd = {}});
    ASSERT_TRUE(spawned);
    const pid_t pid = *spawned;
    const auto comes = [&](const char* what) {
      return eventually([&] {
        return fs::read_symlink("/proc/" + std::to_string(pid) + "/" + what).filename() ==
               (std::string(what) == "exe" ? "sleep" : path.filename().string());
      });
    };
    EXPECT_TRUE(comes("fd/1"));
    std::ofstream(run_dir_ / "launch") << "of this attempt";
    const timespec later{.tv_sec = ::time(nullptr) + (old ? 1000 : -1000), .tv_nsec = 0};
    const timespec times[2] = {later, later};
    ASSERT_EQ(::utimensat(AT_FDCWD, (run_dir_ / "launch").c_str(), times, 0), 0);
    ScriptLog log = of(old ? 5 : 6);
    log.process = process::identify(pid).value_or(process::ProcessId());
    ASSERT_TRUE(watch_->follow(run_, log));
    ASSERT_TRUE(eventually(
        [&] { return fs::exists(rundir::RunLayout(run_dir_).node_log_source(log.name)); }));
    write(path, line(1));
    EXPECT_TRUE(eventually([&] {
      return shipped(old ? 5 : 6) == (old ? line(1) : line(90) + line(1));
    })) << old;
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
  }
}

// The file disappears with its container: the last bytes are read through the open descriptor.
TEST_F(ScriptLogTest, OfAContainersOwnAreReadThroughItsWorkerToTheEnd) {
  add({0});
  const auto spawned = process::spawn(
      {.path = "/bin/sh", .argv = {"sh", "-c", "exec sleep 1000"}, .env = {}, .cwd = {}});
  ASSERT_TRUE(spawned);
  const pid_t worker = *spawned;
  fs::create_directory_symlink(dir_.path(), dir_.path() / "way");
  for (const int rank : {5, 6}) {
    ScriptLog log = of(rank, rank == 5 ? fs::canonical(dir_.path()) / "train_5.log"
                                       : fs::canonical(dir_.path()) / "way/train_5.log");
    log.root = process::identify(worker).value_or(process::ProcessId());
    ASSERT_TRUE(watch_->follow(run_, log));
  }
  write(file(5), line(1));
  EXPECT_TRUE(eventually([&] { return shipped(5) == line(1) && step() == 1; }));
  EXPECT_EQ(shipped(6), "") << "a link on its way may lead to a file of the node's";
  const int fd = ::open(file(5).c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  ::kill(worker, SIGKILL);
  ::waitpid(worker, nullptr, 0);
  fs::remove(file(5));
  EXPECT_EQ(::write(fd, line(2).data(), line(2).size()), static_cast<ssize_t>(line(2).size()));
  ::close(fd);
  watch_->run_swept(run_);
  EXPECT_TRUE(eventually([&] { return ended(5) && ended(6); }));
  EXPECT_EQ(shipped(5), line(1) + line(2));
  EXPECT_TRUE(troubles().empty()) << troubles().front();
}

TEST_F(ScriptLogTest, TheRankWhoseEndItWasTellsWhy) {
  add({0});
  follow(4);
  follow(5);
  follow(6);
  write(file(4),
        "torch.distributed.DistBackendError: remote process exited or there was a network error\n");
  write(file(5), line(3) + "RuntimeError: CUDA out of memory. Tried to allocate 2 GiB\n");
  write(file(6), "Traceback (most recent call last):\nValueError: something else\n");
  write(log(0),
        "the script's own\nmuster: the script ended with status 0, and rank 5, which the script "
        "had left running, ended with status 1\n");
  watch_->rank_ended(run_, RankNo(0), true);
  ASSERT_TRUE(comes(run_, [](const Reports& to) { return to.ends.contains(0); }));
  EXPECT_THAT(ends_[0].evidence, StartsWith("rank 5: RuntimeError: CUDA out of memory"));
  EXPECT_EQ(ends_[0].evidence_kind, v1::EVIDENCE_KIND_CAUSE);
  EXPECT_EQ(ends_[0].step, 3);
}

// A rank that is killed from outside logs nothing, and what the other ranks log about it is no
// cause.
TEST_F(ScriptLogTest, OfARankThatSaysNothingTheWorkersWordIsReported) {
  add({0});
  follow(4);
  follow(5);
  write(file(4), "Traceback (most recent call last):\nConnectionError: peer is gone\n");
  write(file(5), line(3));
  const std::string word =
      "the script ended with status 0, and rank 5, which the script had left running, was ended by "
      "signal 9";
  write(log(0), "muster: " + word + "\n");
  watch_->rank_ended(run_, RankNo(0), true);
  ASSERT_TRUE(comes(run_, [](const Reports& to) { return to.ends.contains(0); }));
  EXPECT_EQ(ends_[0].evidence, word);
}

TEST_F(ScriptLogTest, WithoutAWordOfItTheBestLineOfAllCounts) {
  add({0});
  follow(10);
  follow(9);
  write(file(9), "RuntimeError: CUDA out of memory. Tried to allocate 2 GiB\n");
  write(file(10), "RuntimeError: CUDA out of memory. Tried to allocate 3 GiB\n");
  write(log(0), "one of them has failed\n");
  watch_->rank_ended(run_, RankNo(0), true);
  ASSERT_TRUE(comes(run_, [](const Reports& to) { return to.ends.contains(0); }));
  EXPECT_THAT(ends_[0].evidence,
              StartsWith("rank 9: RuntimeError: CUDA out of memory. Tried to allocate 2"));
}

TEST_F(ScriptLogTest, SuccessIsSeenInThem) {
  watching_.set_success_regex("all is done");
  add({0});
  follow(5);
  // What exists when the script ends, including the unfinished line.
  write(file(5), "all is done");
  watch_->rank_ended(run_, RankNo(0), false);
  watch_->run_swept(run_);
  ASSERT_TRUE(comes(run_, [](const Reports& to) { return to.ends.contains(0); }));
  EXPECT_TRUE(ends_[0].success_seen);
  ASSERT_TRUE(eventually([&] { return ended(5); }));
}

class HangingScriptLogTest : public ScriptLogTest {
 protected:
  HangingScriptLogTest() {
    options_.hang_after = 50ms;
    options_.last_scan = 200ms;
    options_.device_of = [](const std::string&) { return 1; };
    options_.open_script_log = [this](const char* path, int flags) {
      if (std::string(path).ends_with("_7.log") && hangs_) {
        waiting_.release();
        server_.acquire();
      }
      return ::open(path, flags);
    };
  }
  void SetUp() override {}  // the test sets the options first
  std::atomic<bool> hangs_ = true;
  std::counting_semaphore<> waiting_{0}, server_{0};
};

TEST_F(HangingScriptLogTest, HoldUpNothingElse) {
  WatchTest::SetUp();
  add({0});
  follow(7);
  waiting_.acquire();
  follow(5);
  write(file(5), line(4));
  ASSERT_TRUE(eventually([&] { return step() == 4; }));
  write(log(0), "RuntimeError: CUDA out of memory\n");
  watch_->rank_ended(run_, RankNo(0), true);
  ASSERT_TRUE(comes(run_, [](const Reports& to) { return to.ends.contains(0); }));
  EXPECT_THAT(ends_[0].evidence, HasSubstr("CUDA out of memory"));
  watch_->run_swept(run_);
  ASSERT_TRUE(eventually([&] { return ended(5) && ended(7); }));
  EXPECT_THAT(troubles(), Contains(HasSubstr("not to its end within 200 ms of the sweep")));
  EXPECT_THAT(troubles(), Contains(HasSubstr("copying log '" + file(7).string() + "'")));
  hangs_ = false;
  server_.release(1000);
}

}  // namespace
}  // namespace muster::agent
