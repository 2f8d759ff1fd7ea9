// What a script computes from values that muster replaces. computed.txt has scripts, and what is
// reported about each.
#include "common/compat/launcher/computed.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "common/base/utf8.h"
#include "common/compat/launcher/bare_launch.h"
#include "tests/support/checkout.h"

namespace muster::launcher {
namespace {

std::string script_summary(const std::string& script) {
  std::string text;
  for (const Computed& one : computed_from_placement(script))
    text += "  " + std::to_string(one.line) + ": " + one.variable + (one.own ? " (its own)" : "") +
            ": " + one.text + "\n";
  const auto more = more_than_launch(script);
  return text +
         (more ? "  more: " + std::to_string(more->line) + ": " + more->command
               : "  launches alone") +
         "\n";
}

TEST(Computed, IsFoundInEachScript) {
  const std::string path = test::checkout("tests/unit/launcher/computed.txt");
  std::ifstream file(path);
  std::string whole, again, script;
  int scripts = 0;
  const auto end = [&] {
    if (script.empty()) return;
    again += script_summary(script);
    script.clear();
    ++scripts;
  };
  for (std::string line; std::getline(file, line); whole += line + "\n") {
    if (line.starts_with("  ")) continue;
    if (line.starts_with("| ") || line == "|")
      script += line.substr(std::min<std::size_t>(2, line.size())) + "\n";
    if (line.empty()) end();
    again += line + "\n";
  }
  end();
  EXPECT_GE(scripts, 8);
  if (std::getenv("MUSTER_REWRITE") != nullptr) std::ofstream(path) << again;
  EXPECT_EQ(whole, again);
}

TEST(Computed, WhatIsShownEndsBehindACharacter) {
  for (const char* front : {"", "x", "xx"}) {  // one of them has the limit within a character
    std::string text = front;
    while (text.size() < 300) text += "\xe8\xaf\xad";
    const auto computed = computed_from_placement("NNODES=1\nA=$((NNODES*2))" + text + "\n");
    ASSERT_EQ(computed.size(), 1U);
    EXPECT_TRUE(is_utf8(computed.front().text)) << computed.front().text;
    const auto more = more_than_launch("mkdir " + text + "\n");
    ASSERT_TRUE(more);
    EXPECT_TRUE(is_utf8(more->command)) << more->command;
  }
}

TEST(Computed, AScriptThatIsNoneEndsQuickly) {
  for (const std::string& text :
       {std::string("\""), std::string("$(("), std::string("A=$((NNODES"), std::string("${"),
        std::string("$"), std::string("A='"), std::string("cat <<"), std::string("cat <<X\n"),
        std::string("((("), std::string("\\"), std::string("\0x", 2), std::string(":$NNODES")}) {
    (void)computed_from_placement(text);
    (void)more_than_launch(text);
  }
  for (const char* part :
       {"$NNODES:", "${", "$((", "(", "\"", "A=$((NNODES*2))\n", "a=(", "$NNODES"}) {
    std::string text;
    while (text.size() < (1U << 16U)) text += part;
    EXPECT_LE(computed_from_placement("x=" + text).size(), 100U) << part;
    (void)more_than_launch(text);
  }
}

}  // namespace
}  // namespace muster::launcher
