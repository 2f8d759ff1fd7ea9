#include "common/text/shell_word.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(ShellWord, IsReadBackByAShell) {
  EXPECT_EQ(shell_word("a/b-c.d:e=f,g@h%i+j_1"), "a/b-c.d:e=f,g@h%i+j_1");
  EXPECT_EQ(shell_word(""), "''");
  EXPECT_EQ(shell_word("~"), "'~'");
  EXPECT_EQ(shell_word("a\nb"), "'a\nb'");
  EXPECT_EQ(shell_word("it's $HOME"), R"('it'\''s $HOME')");
}

}  // namespace
}  // namespace muster
