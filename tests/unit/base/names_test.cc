#include "common/base/names.h"

#include <gtest/gtest.h>

#include <clocale>
#include <string>

namespace muster {
namespace {

TEST(NodeName, LettersDigitsAndThreeSigns) {
  for (const std::string& name :
       {std::string("n"), std::string("0"), std::string("N1"), std::string("a.b"),
        std::string("a-"), std::string("a_"), std::string(63, 'x')})
    EXPECT_TRUE(is_node_name(name)) << name;
  for (const std::string& name :
       {std::string(), std::string("."), std::string(".."), std::string("-a"), std::string("_a"),
        std::string("a/b"), std::string("a b"), std::string("a:b"), std::string("\xe4"),
        std::string("a\0", 2), std::string(64, 'x')})
    EXPECT_FALSE(is_node_name(name)) << name;
}

// Regression: the agent asked std::isalnum, which takes 0xE4 for a letter in such a locale.
TEST(NodeName, TheLocaleDoesNotCount) {
  if (std::setlocale(LC_CTYPE, "de_DE.ISO-8859-1") == nullptr)
    GTEST_SKIP() << "this machine has no locale with 8 bits";
  EXPECT_FALSE(is_node_name("\xe4"));
  std::setlocale(LC_CTYPE, "C");
}

}  // namespace
}  // namespace muster
