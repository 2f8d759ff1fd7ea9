#include "common/compat/shell/shell_words.h"

#include <gtest/gtest.h>

#include <string>

namespace muster::launcher {
namespace {

std::string shown(std::string_view script) {
  std::string text;
  for (const ShellCommand& command : shell_commands(script)) {
    for (const ShellWord& word : command)
      text += "<" + std::to_string(word.line) + " " + std::string(word.text) + ">";
    text += ";";
  }
  return text;
}

TEST(ShellWords, AreSplitAsAShellSplitsThem) {
  EXPECT_EQ(shown("a b  c"), "<1 a><1 b><1 c>;");
  EXPECT_EQ(shown("a; b && c || d | e &\nf"), "<1 a>;<1 b>;<1 c>;<1 d>;<1 e>;<2 f>;");
  EXPECT_EQ(shown("a \\\n  b # c\nd#e"), "<1 a><2 b>;<3 d#e>;");
  EXPECT_EQ(shown("A='x y' B=\"$(echo \"z ; w\")\" c"),
            "<1 A='x y'><1 B=\"$(echo \"z ; w\")\"><1 c>;");
  EXPECT_EQ(shown("a > out 2>&1 < in b &> all"), "<1 a><1 b>;");
  EXPECT_EQ(shown("a 2 > out"), "<1 a><1 2>;");
  EXPECT_EQ(shown("A=(1\n2) b"), "<1 A=(1\n2)><2 b>;");
  EXPECT_EQ(shown("((i = 1; i < 2))\nb"), "<1 ((i = 1; i < 2))>;<2 b>;");
  EXPECT_EQ(shown("(a; b)"), "<1 a>;<1 b>;");
  EXPECT_EQ(shown("cat <<E\nx $y\nE\nd <<-'F' e\n\t;\n\tF\ng"), "<1 cat>;<4 d><4 e>;<7 g>;");
  EXPECT_EQ(shown("A=\"it's\" B=${x:-it}"), "<1 A=\"it's\"><1 B=${x:-it}>;");
  EXPECT_EQ(shown("f() { a; }"), "<1 f>;<1 {><1 a>;<1 }>;");
  EXPECT_EQ(shown("a <<< word b >(tee c) d"), "<1 a><1 b><1 d>;");
  EXPECT_EQ(shown(""), "");
}

TEST(ShellWords, WhatIsNeverClosedTakesTheRest) {
  EXPECT_EQ(shown("a 'b\nc"), "<1 a><1 'b\nc>;");
  EXPECT_EQ(shown("a \"b $(c"), "<1 a><1 \"b $(c>;");
  EXPECT_EQ(shown("a\\"), "<1 a\\>;");
}

TEST(ShellWords, ATestIsOneCommand) {
  EXPECT_EQ(shown("[[ $a < 2 && (-n $b) ]] && c\nd"),
            "<1 [[><1 $a><1 <><1 2><1 &&><1 (><1 -n><1 $b><1 )><1 ]]>;<1 c>;<2 d>;");
}

TEST(ShellWords, QuotesInsideOfAWordAreFollowed) {
  EXPECT_EQ(shown("A=$'it\\'s' b"), "<1 A=$'it\\'s'><1 b>;");
  EXPECT_EQ(shown("A=\"${x#'}'}\" b"), "<1 A=\"${x#'}'}\"><1 b>;");
  EXPECT_EQ(shown("A=$(cat <<E\nit's )\nE\n) b"), "<1 A=$(cat <<E\nit's )\nE\n)><4 b>;");
}

}  // namespace
}  // namespace muster::launcher
