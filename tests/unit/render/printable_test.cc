// What programs print reaches a terminal as text and nothing else: a log line could otherwise move the cursor, or show what it does not say.
#include <gtest/gtest.h>

#include "client/render/style.h"

namespace muster::render {
namespace {

TEST(Printable, WhatATerminalObeysIsAQuestionMark) {
  EXPECT_EQ(printable("step 3\tloss 2.5"), "step 3\tloss 2.5");
  EXPECT_EQ(printable("\x1b[2Jgone\a\x7f\r"), "?[2Jgone???");
  EXPECT_EQ(printable("\xc2\x9b"
                      "2J"),
            "?2J")
      << "CSI as one character (ECMA-48, 8-bit)";
  EXPECT_EQ(printable("a\xe2\x80\xae"
                      "b\xe2\x81\xa6"
                      "c\xe2\x80\x8f"),
            "a?b?c?")
      << "right-to-left override, isolate, mark";
}

TEST(Printable, OtherScriptsAndBarsStay) {
  for (const char* text :
       {"\xe6\xad\xa5\xe9\xaa\xa4 3", "\xe2\x96\x88\xe2\x96\x91", "\xc2\xa0\xc3\xa9", "\xf0\x9f\x9a\x80", "\xe2\x80\x93", "\xe2\x80", "\xc2"})
    EXPECT_EQ(printable(text), text);
}

}  // namespace
}  // namespace muster::render
