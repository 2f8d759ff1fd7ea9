// A node's copy of the code: what is copied, what patches may change and what they may not, and
// that an incomplete copy is never used.
#include "agent/code/code_copy.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/code/code_patches.h"
#include "agent/code/code_tree.h"
#include "agent/container/container_command.h"
#include "agent/start/start_runner.h"
#include "common/rundir/records.h"
#include "tests/support/checkout.h"
#include "tests/unit/agent_run/support.h"

namespace muster::agent {
namespace {

namespace fs = std::filesystem;

const std::string kTrain =
    "import os\nSTEPS = 3\nprint('a')\nprint('b')\nprint('c')\nprint('d')\nprint('e')\nLAST = 1\n";
const std::string kFix =
    "--- a/train.py\n+++ b/train.py\n@@ -1,3 +1,3 @@\n import os\n-STEPS = 3\n+STEPS = 5\n "
    "print('a')\n";

class CodeCopy : public ::testing::Test {
 protected:
  CodeCopy() {
    dir_.write("code/train.py", kTrain);
    dir_.write("code/lib/util.py", "X = 1\n");
    order_.set_job_id("0123456789abc");
    order_.set_job_name("tiny");
    order_.add_make_dirs(at("out"));
    order_.add_make_dirs(at("out/code"));
    fs::create_directories(at("out/code"));
    order_.mutable_code()->set_source(at("code"));
    order_.mutable_code()->set_path(copy());
    order_.mutable_code()->set_sha256("s1");
  }
  [[nodiscard]] std::string at(const std::string& name) const {
    return (dir_.path() / name).string();
  }
  [[nodiscard]] std::string copy(const std::string& name = "") const {
    return at("out/code/node-0/code") + (name.empty() ? "" : "/" + name);
  }
  void patch(const std::string& name, const std::string& content) {
    v1::CodeCopyPatch& one = *order_.mutable_code()->add_patches();
    one.set_name(name);
    one.set_content(content);
  }
  // Empty: the copy was made.
  std::string make() {
    const auto made = make_code_copy(order_, path_, nullptr);
    if (made) return {};
    failure_ = failure_of(made.error());
    return made.error().message;
  }
  // The names in the directory of the copies: nothing else may be there, however a start ended.
  [[nodiscard]] std::vector<std::string> copies() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(at("out/code")))
      names.push_back(entry.path().filename().string());
    std::ranges::sort(names);
    return names;
  }
  [[nodiscard]] std::string putting(const std::string& name) const {
    return "code.patches: putting '" + name + "' on a copy of '" + at("code") + "'";
  }

  TempDir dir_;
  v1::NodeLaunch order_;
  v1::StartFailure failure_ = v1::START_FAILURE_UNSPECIFIED;
  std::string path_ = ::getenv("PATH");  // NOLINT: no other thread
};

TEST_F(CodeCopy, ThePatchedCopyIsNextToTheSourceWhichStays) {
  patch("fix.diff", kFix);
  patch("more.diff",
        "diff --git a/lib/new.py b/lib/new.py\nnew file mode 100644\nindex 0..1\n--- "
        "/dev/null\n+++ b/lib/new.py\n@@ -0,0 +1 @@\n+Y = 2\n"
        "--- a/train.py\n+++ b/train.py\n@@ -8 +8,2 @@ print('e')\n LAST = 1\n+MORE = 2\n");
  fs::permissions(at("code/train.py"), static_cast<fs::perms>(0640));
  ASSERT_EQ(make(), "");
  EXPECT_NE(read_text(copy("train.py")).find("STEPS = 5\n"), std::string::npos);
  EXPECT_TRUE(read_text(copy("train.py")).ends_with("LAST = 1\nMORE = 2\n"))
      << "the second one is put on what the first has made";
  EXPECT_EQ(read_text(copy("lib/new.py")), "Y = 2\n");
  EXPECT_EQ(fs::status(copy("train.py")).permissions(), static_cast<fs::perms>(0640))
      << "git alone would make it 0644";
  EXPECT_EQ(read_text(at("code/train.py")), kTrain);
  EXPECT_FALSE(fs::exists(at("code/lib/new.py")));
  EXPECT_EQ(copies(), std::vector<std::string>{"node-0"});
}

// A user's repository around the output directory: git would treat the copy as a part of it, and
// silently leave out what it does not know.
TEST_F(CodeCopy, ARepositoryAroundItChangesNothing) {
  fs::create_directories(at(".git/objects"));
  fs::create_directories(at(".git/refs"));
  dir_.write(".git/HEAD", "ref: refs/heads/main\n");
  dir_.write(".git/config",
             "[core]\n\trepositoryformatversion = 0\n[apply]\n\twhitespace = error\n");
  patch("fix.diff",
        "--- a/train.py\n+++ b/train.py\n@@ -1,3 +1,3 @@\n import os\n-STEPS = 3\n+STEPS = 5 \t \n "
        "print('a')\n");
  ASSERT_EQ(make(), "");
  EXPECT_NE(read_text(copy("train.py")).find("STEPS = 5"), std::string::npos);
}

TEST_F(CodeCopy, ModesTimesAndLinksComeAlong) {
  dir_.write("code/run.sh", "#!/bin/sh\n");
  fs::permissions(at("code/run.sh"), static_cast<fs::perms>(04755));
  dir_.write("code/closed/a.txt", "a");
  fs::permissions(at("code/closed"), static_cast<fs::perms>(0555));
  dir_.write("elsewhere/data.txt", "d");
  fs::create_symlink("../elsewhere/data.txt", at("code/relative_out"));
  fs::create_symlink(at("elsewhere"), at("code/absolute_out"));
  fs::create_symlink("../train.py", at("code/lib/inside"));
  fs::create_symlink(at("code/lib/util.py"), at("code/absolute_in"));
  fs::create_symlink("nowhere", at("code/broken"));
  ASSERT_EQ(::mkfifo(at("code/pipe").c_str(), 0600), 0);
  dir_.write("code/.git/config", "x");
  dir_.write("code/lib/__pycache__/util.pyc", "x");
  ASSERT_EQ(make(), "");
  EXPECT_EQ(fs::status(copy("run.sh")).permissions(), static_cast<fs::perms>(0755))
      << "no set-uid bit";
  EXPECT_EQ(fs::status(copy("closed")).permissions(), static_cast<fs::perms>(0755))
      << "a copy can be written to, and removed";
  EXPECT_EQ(fs::last_write_time(copy("run.sh")), fs::last_write_time(at("code/run.sh")));
  EXPECT_EQ(fs::read_symlink(copy("relative_out")), at("elsewhere/data.txt"))
      << "it leads to where it led";
  EXPECT_EQ(fs::read_symlink(copy("absolute_out")), at("elsewhere"));
  EXPECT_EQ(fs::read_symlink(copy("lib/inside")), "../train.py");
  EXPECT_EQ(fs::read_symlink(copy("absolute_in")), copy("lib/util.py"))
      << "and not to the file without the patches";
  EXPECT_EQ(fs::read_symlink(copy("broken")), "nowhere");
  for (const char* left_out : {"pipe", ".git", "lib/__pycache__"})
    EXPECT_FALSE(fs::exists(fs::symlink_status(copy(left_out)))) << left_out;
  fs::permissions(at("code/closed"), static_cast<fs::perms>(0755));
}

TEST_F(CodeCopy, AnOutputDirectoryInsideTheCodeIsNotCopied) {
  order_.clear_make_dirs();
  order_.add_make_dirs(at("code/out"));
  order_.add_make_dirs(at("code/out/code"));
  fs::create_directories(at("code/out/code"));
  dir_.write("code/out/checkpoints/big", "x");
  order_.mutable_code()->set_path(at("code/out/code/node-0/code"));
  ASSERT_EQ(make(), "");
  EXPECT_EQ(read_text(at("code/out/code/node-0/code/train.py")), kTrain);
  EXPECT_FALSE(fs::exists(at("code/out/code/node-0/code/out")));
}

TEST_F(CodeCopy, AWholeOneIsUsedAgainAndAnotherMadeAnew) {
  patch("fix.diff", kFix);
  ASSERT_EQ(make(), "");
  dir_.write("out/code/node-0/code/written_by_the_job", "x");
  dir_.write("code/train.py", "changed since\n");
  ASSERT_EQ(make(), "");
  EXPECT_TRUE(fs::exists(copy("written_by_the_job"))) << "the same over attempts";
  EXPECT_NE(read_text(copy("train.py")).find("STEPS = 5"), std::string::npos);

  dir_.write("code/train.py", kTrain);
  order_.mutable_code()->set_sha256("s2");
  ASSERT_EQ(make(), "");
  EXPECT_FALSE(fs::exists(copy("written_by_the_job"))) << "other patches";
  dir_.write("out/code/node-0/code/written_by_the_job", "x");
  order_.set_job_id("another");
  ASSERT_EQ(make(), "");
  EXPECT_FALSE(fs::exists(copy("written_by_the_job")))
      << "another job with the same output directory";
  EXPECT_EQ(copies(), std::vector<std::string>{"node-0"});
}

// A kill -9 may leave any of these; a kill between the two renames leaves them, too.
TEST_F(CodeCopy, WhatACrashLeavesIsTakenAway) {
  patch("fix.diff", kFix);
  dir_.write("out/code/.node-0.new-0badcafe/code/train.py", "half");
  dir_.write("out/code/.node-0.old-0badcafe/code/train.py", "half removed");
  dir_.write("out/code/.node-1.new-0badcafe/code/train.py", "another node's, at work");
  dir_.write("out/code/node-0/code/train.py", "without a word of whose it is");
  ASSERT_EQ(make(), "");
  EXPECT_NE(read_text(copy("train.py")).find("STEPS = 5"), std::string::npos);
  EXPECT_EQ(copies(), (std::vector<std::string>{".node-1.new-0badcafe", "node-0"}));

  fs::remove_all(copy());
  ASSERT_EQ(make(), "") << "somebody has removed the tree beneath its mark";
  EXPECT_TRUE(fs::exists(copy("train.py")));
}

TEST_F(CodeCopy, AttemptsThatAreAtItTogetherEndWithOneWholeCopy) {
  for (int i = 0; i < 200; ++i) dir_.write(fmt::format("code/pkg{}/mod.py", i), "X = 1\n");
  patch("fix.diff", kFix);
  std::vector<std::thread> threads;
  std::atomic<int> good = 0;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      const auto made = make_code_copy(order_, path_, nullptr);
      if (made) ++good;
      if (!made) {
        EXPECT_EQ(failure_of(made.error()), v1::START_FAILURE_NODE) << made.error().message;
      }
    });
  for (std::thread& thread : threads) thread.join();
  if (good == 0) {
    ASSERT_EQ(make(), "") << "each took the others' work away; the next start is alone";
  }
  EXPECT_NE(read_text(copy("train.py")).find("STEPS = 5"), std::string::npos);
  for (int i = 0; i < 200; ++i) EXPECT_TRUE(fs::exists(copy(fmt::format("pkg{}/mod.py", i)))) << i;
  ASSERT_EQ(make(), "");
  EXPECT_EQ(copies(), std::vector<std::string>{"node-0"});
}

TEST_F(CodeCopy, ATreeThatIsTooBigNamesItsLargestFiles) {
  for (int i = 1; i <= 12; ++i) {
    dir_.write(fmt::format("code/ckpt/part-{:02}.bin", i), "");
    ASSERT_EQ(::truncate(at(fmt::format("code/ckpt/part-{:02}.bin", i)).c_str(), i * (50 << 20)),
              0);
  }
  dir_.write("code/.git/huge.pack", "");
  ASSERT_EQ(::truncate(at("code/.git/huge.pack").c_str(), 4LL << 30), 0);
  std::string text = make();
  EXPECT_EQ(failure_, v1::START_FAILURE_LAUNCH) << "on every node it is too big";
  const std::string begin = "copying the code '" + at("code") +
                            "': it has 3900 MiB, at most 500 MiB can be copied for code.patches; "
                            "move data and checkpoints out of it. The largest: 'ckpt/part-12.bin' "
                            "(600 MiB), 'ckpt/part-11.bin' (550 MiB), ";
  EXPECT_EQ(text.substr(0, begin.size()), begin);
  EXPECT_TRUE(text.ends_with("'ckpt/part-03.bin' (150 MiB)")) << text;
  EXPECT_TRUE(copies().empty()) << "nothing of it was copied";
}

TEST_F(CodeCopy, BoundsOnEntriesAndTime) {
  const TreeCopy tree{
      .source = at("code"), .target = at("out/x"), .place = at("out/x"), .left_out = {}};
  auto done = copy_tree(tree, {.entries = 2});
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().message,
            "copying the code '" + at("code") +
                "': it has more than 2 files and directories; move data out of it");
  done = copy_tree(tree, {.until = std::chrono::steady_clock::now() - std::chrono::seconds(1)});
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ErrorCode::TimedOut);
  std::string deep = at("code");
  for (int i = 0; i < 200; ++i) deep += "/d";
  fs::create_directories(deep);
  done = copy_tree(tree, {});
  ASSERT_FALSE(done);
  EXPECT_NE(done.error().message.find("is more than 128 directories deep"), std::string::npos);
}

TEST_F(CodeCopy, CodeThatIsNotThere) {
  order_.mutable_code()->set_source(at("cod"));
  EXPECT_EQ(make(), "code.at: '" + at("cod") + "' is not there on this node; nearest: '" +
                        at("code") + "'; what only an image has cannot be patched");
  EXPECT_EQ(failure_, v1::START_FAILURE_LAUNCH);
  order_.mutable_code()->set_source(at("code/train.py"));
  EXPECT_EQ(make(), "code.at: '" + at("code/train.py") + "' is not a directory");
  EXPECT_EQ(failure_, v1::START_FAILURE_LAUNCH);
  EXPECT_TRUE(copies().empty());
}

TEST_F(CodeCopy, APatchThatDoesNotApplyIsTheJobsFaultAndSaysWhere) {
  patch("fix.diff",
        kFix + "@@ -6,3 +6,3 @@ print('c')\n print('d')\n print('x')\n-LAST = 1\n+LAST = 2\n");
  EXPECT_EQ(make(), putting("fix.diff") +
                        ": it does not apply: 'train.py', hunk 2 of 2 (line 6): git: patch failed: "
                        "train.py:6; train.py: patch does not apply; the code is another one than "
                        "it was made for: make the patch anew");
  EXPECT_EQ(failure_, v1::START_FAILURE_LAUNCH);
  EXPECT_TRUE(copies().empty());

  order_.mutable_code()->clear_patches();
  patch("gone.diff", "--- a/lib/gone.py\n+++ b/lib/gone.py\n@@ -1 +1 @@\n-a\n+b\n");
  EXPECT_EQ(make(), putting("gone.diff") +
                        ": it does not apply: git: lib/gone.py: No such file or directory; the "
                        "code is another one than it was made for: make the patch anew");

  order_.mutable_code()->clear_patches();
  dir_.write("code/train.py", "import os\nSTEPS = 5\n" + kTrain.substr(kTrain.find("print")));
  patch("fix.diff", kFix);
  EXPECT_EQ(make(),
            putting("fix.diff") + ": the code has it already; leave it out of code.patches");
  EXPECT_EQ(failure_, v1::START_FAILURE_LAUNCH);
}

// Context must match exactly: a change next to the intended place would silently train something
// wrong. Lines that have only moved are found.
TEST_F(CodeCopy, LinesMayMoveButMustBeThere) {
  patch("fix.diff",
        "--- a/train.py\n+++ b/train.py\n@@ -4,3 +4,3 @@\n print('b')\n-print('c')\n+print('C')\n "
        "print('d')\n");
  dir_.write("code/train.py", "# one\n# two\n" + kTrain);
  ASSERT_EQ(make(), "");
  EXPECT_NE(read_text(copy("train.py")).find("print('C')"), std::string::npos);
  order_.mutable_code()->set_sha256("s2");
  dir_.write("code/train.py", "import os\nprint('b', 1)\nprint('c')\nprint('d')\n");
  EXPECT_NE(make().find("hunk 1 of 1 (line 4)"), std::string::npos);
}

// The content of an order was checked at the submission; this code does not rely on that.
TEST_F(CodeCopy, HostilePatchesChangeNothingOutside) {
  dir_.write("victim/file", "untouched\n");
  fs::create_symlink(at("victim"), at("code/link"));
  fs::create_symlink(at("victim/file"), at("code/file"));
  const auto refused = [&](const std::string& diff) {
    order_.mutable_code()->clear_patches();
    patch("evil.diff", diff);
    const std::string text = make();
    EXPECT_FALSE(text.empty()) << diff;
    EXPECT_EQ(failure_, v1::START_FAILURE_LAUNCH) << text;
    EXPECT_EQ(read_text(at("victim/file")), "untouched\n") << diff;
    EXPECT_EQ(std::distance(fs::directory_iterator(at("victim")), {}), 1) << diff;
    EXPECT_TRUE(copies().empty()) << diff;
    return text;
  };
  const std::string change = "@@ -1 +1 @@\n-untouched\n+touched\n", fresh = "@@ -0,0 +1 @@\n+x\n";
  EXPECT_NE(refused("--- /dev/null\n+++ b/link/new\n" + fresh).find("is beyond a symbolic link"),
            std::string::npos);
  EXPECT_NE(
      refused("--- a/link/file\n+++ b/link/file\n" + change).find("is beyond a symbolic link"),
      std::string::npos);
  EXPECT_NE(refused("--- a/file\n+++ b/file\n" + change).find("does not apply"), std::string::npos);
  refused("--- /dev/null\n+++ b/../../../../victim/new\n" + fresh);
  refused("--- /dev/null\n+++ " + at("victim/new") + "\n" + fresh);
  refused("--- /dev/null\n+++ b/" + at("victim/new") + "\n" + fresh);
  refused("--- /dev/null\n+++ b/.git/hooks/x\n" + fresh);
  refused(
      "diff --git a/s b/s\nnew file mode 120000\nindex 0..1\n--- /dev/null\n+++ b/s\n@@ -0,0 +1 "
      "@@\n+" +
      at("victim") +
      "\n\\ No newline at end of file\n"
      "diff --git a/s/new b/s/new\nnew file mode 100644\nindex 0..1\n--- /dev/null\n+++ b/s/new\n" +
      fresh);
  refused(
      "diff --git a/s b/s\nnew file mode 100644\n--- /dev/null\n+++ b/s\nnew file mode 120000\n" +
      fresh);
  refused(
      "diff --git a/train.py b/link/train.py\nsimilarity index 100%\nrename from train.py\nrename "
      "to link/train.py\n");
  refused(
      "diff --git a/file b/moved\nsimilarity index 100%\nrename from "
      "../../../../victim/file\nrename to moved\n");
  refused("0a\n!touch " + at("victim/new") + "\n.\n");
}

TEST_F(CodeCopy, OrdersThatLeadElsewhereAreRefused) {
  for (const std::string& path : {at("out/code/../../victim/x"), std::string("relative/x"),
                                  at("elsewhere/node-0/code"), at("out/code/node-0/code/")}) {
    order_.mutable_code()->set_path(path);
    EXPECT_FALSE(make().empty()) << path;
    EXPECT_EQ(failure_, v1::START_FAILURE_LAUNCH) << path;
  }
  order_.mutable_code()->set_path(copy());
  const UserEntry other;
  const auto made = make_code_copy(order_, path_, &other);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, ErrorCode::Unsupported);
  order_.clear_code();
  EXPECT_EQ(make(), "");
}

TEST_F(CodeCopy, WithoutGitItSaysWhatToInstall) {
  patch("fix.diff", kFix);
  path_ = at("bin");
  EXPECT_EQ(make(), putting("fix.diff") + ": there is no git on the agent's PATH '" + at("bin") +
                        "', which puts patches on; install it on this node (package git)");
  EXPECT_EQ(failure_, v1::START_FAILURE_NODE) << "another node may have it";
}

TEST_F(CodeCopy, AGitThatHangsIsGivenUp) {
  patch("fix.diff", kFix);
  fs::permissions(dir_.write("bin/git", "#!/bin/sh\nexec /bin/sleep 600\n"),
                  static_cast<fs::perms>(0755));
  path_ = at("bin");
  const auto made = make_code_copy(order_, path_, nullptr, std::chrono::milliseconds(500));
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, ErrorCode::TimedOut);
  EXPECT_NE(made.error().message.find(putting("fix.diff") + ": git: it did not end within"),
            std::string::npos)
      << made.error().message;
}

TEST_F(CodeCopy, AFullDiskUnderGitIsTheNodesFault) {
  patch("fix.diff", kFix);
  fs::permissions(dir_.write("bin/git",
                             "#!/bin/sh\necho \"error: failed to write to 'train.py': No space "
                             "left on device\" >&2\nexit 128\n"),
                  static_cast<fs::perms>(0755));
  path_ = at("bin");
  EXPECT_NE(make().find(putting("fix.diff") +
                        ": git: failed to write to 'train.py': No space left on device"),
            std::string::npos);
  EXPECT_EQ(failure_, v1::START_FAILURE_DISK);
  EXPECT_TRUE(copies().empty());
}

TEST_F(CodeCopy, MustersOwnAreMadeOnTheTree) {
  patch("builtin:node-local-index", "");
  EXPECT_NE(make().find(putting("builtin:node-local-index") +
                        ": 'megatron/core/datasets/gpt_dataset.py' is not there: code.from has to "
                        "be the Megatron-LM tree"),
            std::string::npos);
  EXPECT_EQ(failure_, v1::START_FAILURE_LAUNCH);
  fs::remove_all(at("code"));
  fs::copy(test::checkout("tests/fixtures/megatron-lm/core_v0.12.0"), at("code"),
           fs::copy_options::recursive);
  fs::permissions(at("code/megatron/core/datasets/gpt_dataset.py"), static_cast<fs::perms>(0444));
  ASSERT_EQ(make(), "");
  EXPECT_NE(read_text(copy("megatron/core/datasets/gpt_dataset.py"))
                .find("one_builder_a_node(GPTDataset."),
            std::string::npos);
  EXPECT_NE(read_text(copy("megatron/training/initialize.py")).find("LOCAL_RANK"),
            std::string::npos);
  EXPECT_TRUE(fs::exists(copy("megatron/core/datasets/muster_node_local_index.py")));
  EXPECT_EQ(read_text(at("code/megatron/core/datasets/gpt_dataset.py")).find("one_builder"),
            std::string::npos);

  // Through a link, the original would be changed.
  order_.mutable_code()->set_sha256("s2");
  fs::rename(at("code/megatron/core"), at("core"));
  fs::create_symlink(at("core"), at("code/megatron/core"));
  EXPECT_NE(
      make().find("'megatron/core/datasets/gpt_dataset.py' is, or is behind, a symbolic link"),
      std::string::npos);
  EXPECT_EQ(read_text(at("core/datasets/gpt_dataset.py")).find("one_builder"), std::string::npos);
  order_.mutable_code()->mutable_patches(0)->set_name("builtin:of-tomorrow");
  EXPECT_EQ(make(),
            putting("builtin:of-tomorrow") + ": this node's agent does not have it; upgrade it");
  EXPECT_EQ(failure_, v1::START_FAILURE_NODE);
}

// The checks of scripts and directories run after the copy, because these are in the copy.
TEST_F(CodeCopy, AStartMakesItBeforeItChecksForScripts) {
  patch("fix.diff", kFix);
  v1::RankProcess& rank = *order_.add_ranks();
  rank.set_cwd(copy());
  for (const std::string& word : {std::string("/bin/sh"), copy("train.py")}) rank.add_argv(word);
  EXPECT_TRUE(is_nodes_own(order_, copy("train.py")));
  rundir::RunLayout run(dir_.path() / "run");
  ASSERT_TRUE(rundir::make_run(run));
  StartWork work{.order = order_, .node = {.state_dir = dir_.path()}, .layout = run, .context = {}};
  work.context.path = path_;
  const auto prepared = run_steps(work, StepPlace::Thread);
  ASSERT_TRUE(prepared) << prepared.error().text;
  EXPECT_NE(read_text(copy("train.py")).find("STEPS = 5"), std::string::npos);
  work.order.mutable_ranks(0)->set_argv(1, copy("train_it.py"));
  const auto missing = run_steps(work, StepPlace::Thread);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().why, v1::START_FAILURE_LAUNCH);
  EXPECT_EQ(missing.error().step, "code");
  EXPECT_EQ(missing.error().text, "launch.run: 'train_it.py' is not in the code '" + at("code") +
                                      "' with its patches; nearest: 'train.py'");
}

}  // namespace
}  // namespace muster::agent
