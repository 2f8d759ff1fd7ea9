// What programs print reaches a terminal only as text. Otherwise a log line could move the cursor,
// or show what it does not contain.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "client/render/json_text.h"
#include "client/render/launch_text.h"
#include "client/render/style.h"
#include "client/render/table.h"
#include "muster/v1/job.pb.h"

namespace muster::render {
namespace {

TEST(Printable, WhatATerminalObeysIsAQuestionMark) {
  EXPECT_EQ(printable("step 3\tloss 2.5"), "step 3\tloss 2.5");
  EXPECT_EQ(printable("\x1b[2Jgone\a\x7f\r"), "?[2Jgone???");
  EXPECT_EQ(printable("\u009b2J"), "?2J") << "CSI as one character (ECMA-48, 8-bit)";
  EXPECT_EQ(printable("a\xe2\x80\xae"
                      "b\xe2\x81\xa6"
                      "c\xe2\x80\x8f"),
            "a?b?c?")
      << "right-to-left override, isolate, mark";
}

// Regression: on a terminal, a program's colors were printed as "?[31m".
TEST(Printable, ALogLineKeepsItsColoursWhereThereIsColour) {
  const Style colours{.colour = true};
  EXPECT_EQ(coloured("a\x1b[1;38;5;9mred\x1b[0m b", colours), "a\x1b[1;38;5;9mred\x1b[0m b\x1b[0m");
  EXPECT_EQ(coloured("\x1b[31mred", colours), "\x1b[31mred\x1b[0m") << "the next line is not red";
  EXPECT_EQ(coloured("\x1b[31mred\x1b[0m", colours), "\x1b[31mred\x1b[0m");
  EXPECT_EQ(coloured("a\x1b[1;31mred\x1b[m\x1b[K b", {}), "ared b");
  for (const char* obeyed : {"\x1b[2J", "\x1b[2;3K", "\x1b[3A", "\x1b[?25l", "\x1b]0;t\a",
                             "\x1b[31", "\x1b", "\x1b[", "\u009b31m", "a\r"})
    EXPECT_EQ(coloured(obeyed, colours), printable(obeyed)) << obeyed;
  EXPECT_EQ(coloured("\x1b[" + std::string(1000, '1') + "m", colours),
            "?[" + std::string(1000, '1') + "m");
}

// Regression: `muster show` printed the output directory, and `muster node show` the host's name,
// exactly as a submitter or a node had written them.
TEST(Printable, AFieldAndACellShowWhatTheyHold) {
  const std::string hostile = "/out\x1b]0;title\a\u009b2J\n\x1b[5m";
  EXPECT_EQ(field_line({}, "output", hostile), "output       /out?]0;title??2J??[5m\n");
  const Style colours{.colour = true};
  EXPECT_EQ(field_line(colours, "output", hostile),
            "\x1b[2moutput      \x1b[0m /out?]0;title??2J??[5m\n");
  EXPECT_EQ(field_line(colours, "name", colours.paint(Tint::Bold, "one")),
            "\x1b[2mname        \x1b[0m \x1b[1mone\x1b[0m\n")
      << "our own colours stay";
  EXPECT_EQ(to_text({.columns = {{"PATH"}}, .rows = {{hostile}}}, {}, 0),
            "PATH\n/out?]0;title??2J??[5m\n");
  EXPECT_EQ(
      to_text({.columns = {{"PATH"}}, .rows = {{colours.paint(Tint::Warn, "away")}}}, colours, 0),
      "\x1b[1mPATH\n\x1b[0m\x1b[33maway\x1b[0m\n");
  EXPECT_EQ(printable_lines("a\nb\x1b[2J\tc\r\n"), "a\nb?[2J\tc?\n");
}

// By itself, JSON escapes only C0.
TEST(Printable, DocumentsHoldItEscaped) {
  v1::Checkpoint checkpoint;
  checkpoint.set_path("a\x1b]0;\x7f\u009b2J\xe2\x80\xae");
  for (const Format format : {Format::Json, Format::Jsonl}) {
    const std::string text = document(checkpoint, "Checkpoint", format);
    EXPECT_NE(text.find(R"("a\u001b]0;\u007f\u009b2J\u202e")"), std::string::npos) << text;
    EXPECT_EQ(nlohmann::json::parse(text)["path"], checkpoint.path());
  }
  const std::string yaml = document(checkpoint, "Checkpoint", Format::Yaml);
  EXPECT_EQ(printable_lines(yaml.substr(0, yaml.find("2J"))), yaml.substr(0, yaml.find("2J")))
      << yaml;
}

TEST(Printable, AQuotedWordIsReadBackByAShell) {
  EXPECT_EQ(shell_quote("a b\n"), "'a b\n'");
  EXPECT_EQ(shell_quote("it's\x1b[2J\\\xc2\x9b"), R"($'it\'s\033[2J\\\302\233')");
}

TEST(Printable, OtherScriptsAndBarsStay) {
  for (const char* text :
       {"\xe6\xad\xa5\xe9\xaa\xa4 3", "\xe2\x96\x88\xe2\x96\x91", "\xc2\xa0\xc3\xa9",
        "\xf0\x9f\x9a\x80", "\xe2\x80\x93", "\xe2\x80", "\xc2"})
    EXPECT_EQ(printable(text), text);
}

}  // namespace
}  // namespace muster::render
