#include "common/base/controls.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(Controls, WhatATerminalObeysIsFoundAndNothingElse) {
  struct Case {
    std::string_view text;
    std::size_t length;
  };
  for (const auto& [text, length] : {Case{"\x1b]0;", 1},
                                     {"\n", 1},
                                     {"\t", 1},
                                     {std::string_view("\0", 1), 1},
                                     {"\x7f", 1},
                                     {"\xc2\x80", 2},
                                     {"\u009b2J", 2},
                                     {"\xc2\x9f", 2},
                                     {"\xe2\x80\x8e", 3},
                                     {"\xe2\x80\xae", 3},
                                     {"\xe2\x81\xa9", 3},
                                     {"", 0},
                                     {"a", 0},
                                     {" ", 0},
                                     {"\xc2\xa0", 0},
                                     {"\xc2", 0},
                                     {"\xe2\x80", 0},
                                     {"\xe2\x80\x93", 0},
                                     {"\xe2\x81\xaa", 0},
                                     {"\xe6\xad\xa5", 0},
                                     {"\xf0\x9f\x9a\x80", 0}}) {
    EXPECT_EQ(control_length(text), length) << testing::PrintToString(std::string(text));
    EXPECT_EQ(has_controls("x" + std::string(text)), length > 0);
  }
  EXPECT_EQ(without_controls("a\x1b[2J\tb\nc\u009bd", "\t"), "a?[2J\tb?c?d");
}

}  // namespace
}  // namespace muster
