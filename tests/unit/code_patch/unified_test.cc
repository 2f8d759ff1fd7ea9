// What diffs change, and which diffs are refused before git sees them.
#include "common/compat/code_patch/unified.h"

#include <gtest/gtest.h>

#include <random>

#include "common/base/utf8.h"

namespace muster::code_patch {
namespace {

std::string summary(std::string_view text) {
  const auto files = read_diff(text);
  if (!files) return files.error().message;
  std::string out;
  for (const DiffFile& file : *files) {
    out += file.name;
    if (!file.old_name.empty()) out += " from " + file.old_name;
    if (file.created) out += " new";
    if (file.deleted) out += " gone";
    out += " +" + std::to_string(file.added) + " -" + std::to_string(file.removed);
    for (const auto line : file.hunks) out += " @" + std::to_string(line);
    out += "\n";
  }
  return out;
}

TEST(Unified, GitAndDiffSayTheSame) {
  const std::string body = "@@ -1,3 +1,4 @@ def f():\n a\n-b\n+B\n+C\n c\n@@ -20 +21 @@\n-x\n+y\n";
  EXPECT_EQ(
      summary("From 12ab\nSubject: --- not a file\n\ndiff --git a/t/x.py b/t/x.py\nindex 1..2 "
              "100644\n--- a/t/x.py\n+++ b/t/x.py\n" +
              body + "-- \n2.39\n"),
      "t/x.py +3 -2 @1 @20\n");
  EXPECT_EQ(
      summary("diff -ru old/t/x.py new/t/x.py\n--- old/t/x.py\t2024-01-01 00:00:00 +0000\n+++ "
              "new/t/x.py\t2024-01-02 00:00:00 +0000\n" +
              body + "Only in new: y\n"),
      "t/x.py +3 -2 @1 @20\n");
  EXPECT_EQ(summary("--- a/x.py.orig\n+++ a/x.py\n@@ -1 +1 @@\n-a\n\\ No newline at end of "
                    "file\n+b\n\\ No newline at end of file\n"),
            "x.py +1 -1 @1\n");
  EXPECT_EQ(
      summary("--- a/x.py\n+++ b/x.py\n@@ -1,3 +1,2 @@\n a\n\n--- b\n--- a/y.py\n+++ b/y.py\n@@ "
              "-1 +1 @@\n-a\n+b\n"),
      "x.py +0 -1 @1\ny.py +1 -1 @1\n")
      << "a line '-- b' that goes away is no name of a file";
}

TEST(Unified, FilesComeGoAndMove) {
  EXPECT_EQ(
      summary(
          "diff --git a/new.py b/new.py\nnew file mode 100755\nindex 0..1\n--- /dev/null\n+++ "
          "b/new.py\n@@ -0,0 +1 @@\n+x\n"
          "diff --git a/old.py b/old.py\ndeleted file mode 100644\nindex 1..0\n--- a/old.py\n+++ "
          "/dev/null\n@@ -1 +0,0 @@\n-x\n"
          "diff --git a/a b.py b/a b.py\nnew file mode 100644\nindex 0..0\n"
          "diff --git a/m.py b/n.py\nsimilarity index 100%\nrename from m.py\nrename to n.py\n"
          "diff --git a/run.sh b/run.sh\nold mode 100644\nnew mode 100755\n"
          "diff --git a/o.py b/p.py\nsimilarity index 100%\nrename old o.py\nrename new p.py\n"),
      "new.py new +1 -0 @0\nold.py gone +0 -1 @1\na b.py new +0 -0\nn.py from m.py +0 -0\nrun.sh "
      "+0 -0\np.py from o.py +0 -0\n");
}

TEST(Unified, WhatIsNeverPutOnIsReportedWithItsLine) {
  const auto named = [](const std::string& name) {
    return "--- a/x\n+++ " + name + "\n@@ -1 +1 @@\n-a\n+b\n";
  };
  EXPECT_EQ(summary(named("b/../x")), "line 2: '../x' leaves the code by '..'");
  EXPECT_EQ(summary(named("b/t/../../x")), "line 2: 't/../../x' leaves the code by '..'");
  EXPECT_EQ(summary(named("/etc/passwd")),
            "line 2: '/etc/passwd' is absolute: names in a patch are below the code, behind a "
            "first part (a/, b/)");
  EXPECT_EQ(summary(named("b//etc/passwd")),
            "line 2: '/etc/passwd' is absolute: names in a patch are below the code");
  EXPECT_EQ(summary(named("b/.git/hooks/pre-commit")),
            "line 2: '.git/hooks/pre-commit' is git's own, which is not in the copy");
  EXPECT_EQ(summary(named("b/t/./x")), "line 2: 't/./x' is not written plainly ('//', '/./')");
  EXPECT_EQ(summary(named("b/a\x1b[2Jx")), "line 2: 'a?[2Jx' has control characters in it");
  EXPECT_EQ(summary(named("x.py")),
            "line 2: 'x.py' has no first part, which is taken off (a/x.py); make the diff with "
            "git, or with diff -u of two directories");
  EXPECT_EQ(summary("--- a/x\r\n+++ b/x\r\n@@ -1 +1 @@\r\n-a\r\n+b\r\n"),
            "line 1: its lines end in CR and LF, as an editor on Windows leaves them; save it with "
            "LF alone (dos2unix)");
  EXPECT_EQ(
      summary("diff --git a/s b/s\nnew file mode 120000\nindex 0..1\n--- /dev/null\n+++ b/s\n@@ "
              "-0,0 +1 @@\n+/etc\n"),
      "line 2: it makes or changes a symbolic link, which is not put on; have runtime.setup "
      "make it");
  EXPECT_EQ(
      summary("diff --git a/s b/s\nindex 1..2 120000\n--- a/s\n+++ b/s\n@@ -1 +1 @@\n-/a\n+/etc\n"),
      "line 2: it makes or changes a symbolic link, which is not put on; have runtime.setup make "
      "it");
  EXPECT_EQ(
      summary("diff --git a/s b/s\nnew file mode 100644\n--- /dev/null\n+++ b/s\nnew file mode "
              "120000\n@@ -0,0 +1 @@\n+/etc\n"),
      "line 5: it makes or changes a symbolic link, which is not put on; have runtime.setup "
      "make it")
      << "git takes the last one that it finds before the hunk";
  EXPECT_EQ(
      summary(
          "diff --git a/x b/y\n--- a/x\n+++ b/y\ncopy from x\ncopy to y\n@@ -1 +1 @@\n-a\n+b\n"),
      "line 4: it copies a file, which is not put on; make the diff without --find-copies");
  EXPECT_EQ(
      summary(
          "diff --git a/sub b/sub\nindex 1..2 160000\n--- a/sub\n+++ b/sub\n@@ -1 +1 @@\n-a\n+b\n"),
      "line 2: it changes a submodule: make the diff inside of that");
  EXPECT_EQ(summary("diff --git a/s b/s\nnew file mode 104755\n"),
            "line 2: mode '104755' is not that of a file (100644, 100755)");
  EXPECT_EQ(summary("diff --git a/x b/y\nsimilarity index 100%\ncopy from x\ncopy to y\n"),
            "line 3: it copies a file, which is not put on; make the diff without --find-copies");
  EXPECT_EQ(summary("diff --git a/x b/x\nindex 1..2 100644\nGIT binary patch\nliteral 1\n"),
            "line 3: it changes a binary file, which is not put on; copy that file separately");
  EXPECT_EQ(summary("diff --git a/x b/x\nindex 1..2 100644\nBinary files a/x and b/x differ\n"),
            "line 3: it changes a binary file, which is not put on; copy that file separately");
  EXPECT_EQ(summary("diff --git \"a/\\303\\244\" \"b/\\303\\244\"\n").substr(0, 50),
            "line 1: the name \"a/\\303\\244\" \"b/\\303\\244\" is quot");
}

TEST(Unified, WhatIsNoDiffIsRefused) {
  const std::string none =
      "there is no change to a file in it; a unified diff is wanted, as `git diff` and `diff -ru a "
      "b` make it";
  EXPECT_EQ(summary("hello\n"), none);
  EXPECT_EQ(summary(""), none);
  EXPECT_EQ(summary("1c1\n< a\n---\n> b\n"), none) << "diff without -u";
  EXPECT_EQ(summary("--- a/x\n+++ b/x\n"), "line 2: 'x' has no hunk");
  EXPECT_EQ(summary("--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@\n a\n-b\n"),
            "line 5: hunk 1 of 'x' (line 3) is cut off: 1 old and 2 new lines are missing");
  EXPECT_EQ(
      summary("--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n a\n*b\n"),
      "line 5: '*b' does not belong into hunk 1 of 'x' (line 3), whose head counts other lines");
  EXPECT_EQ(summary("@@ -1 +1 @@\n-a\n+b\n"),
            "line 1: a hunk without the names of its file (--- and +++) before it");
  EXPECT_EQ(
      summary("diff --git x.py y.py\nsimilarity index 90%\n"),
      "line 1: which file it changes cannot be determined; make the diff without --no-prefix");
  EXPECT_EQ(summary("--- /dev/null\n+++ /dev/null\n@@ -1 +1 @@\n"),
            "line 2: both names are /dev/null");
}

// They are sent in messages that contain only UTF-8. Regression: a name in Latin-1 was passed on
// unchanged, and a long name was cut within a letter.
TEST(Unified, MessagesAreUtf8) {
  EXPECT_EQ(summary("--- a/x\n+++ b/gr\xfc\xdf_/../x\n@@ -1 +1 @@\n-a\n+b\n"),
            "line 2: 'gr??_/../x' leaves the code by '..'");
  const std::string message =
      summary("--- a/x\n+++ b/" + std::string(119, 'x') + "\xc3\xa9/../x\n@@ -1 +1 @@\n-a\n+b\n");
  EXPECT_TRUE(is_utf8(message)) << message;
}

// Numbers larger than any file, and bytes that are not text: an answer at once, and never a crash.
TEST(Unified, HostileBytesAreAnswered) {
  EXPECT_NE(summary("--- a/x\n+++ b/x\n@@ -1,18446744073709551615 +1,18446744073709551615 @@\n a\n")
                .find("is cut off"),
            std::string::npos);
  EXPECT_EQ(summary("--- a/x\n+++ b/x\n@@ -1,99999999999999999999 +1 @@\n a\n"),
            "line 4: 'x' has no hunk");
  std::string many;
  for (std::size_t i = 0; i <= kFilesMax; ++i)
    many += "diff --git a/f" + std::to_string(i) + " b/f" + std::to_string(i) +
            "\nnew file mode 100644\n";
  EXPECT_NE(summary(many).find("it changes more than 10000 files"), std::string::npos);
  std::mt19937 random(7);
  const std::string whole =
      "diff --git a/x b/x\nindex 1..2 100644\n--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@\n a\n-b\n+c\n d\n";
  int sound = 0;
  for (int i = 0; i < 2000; ++i) {
    std::string bent = whole;
    for (int j = 0; j < 4; ++j) bent[random() % bent.size()] = static_cast<char>(random());
    if (read_diff(bent)) ++sound;
  }
  EXPECT_LT(sound, 2000);
}

}  // namespace
}  // namespace muster::code_patch
