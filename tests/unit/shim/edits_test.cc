// What muster changes in a training program's arguments.
#include "worker/shim/edits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::shim {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Words = std::vector<std::string>;

Words edited(const std::string& edits, Words program) {
  const auto done = edit_arguments(edits, program);
  EXPECT_TRUE(done) << done.error().message;
  return program;
}

TEST(Edits, SetChangesBothSpellingsAndNothingElse) {
  EXPECT_THAT(
      edited("set --save /a b",
             {"t.py", "--save", "/old", "--save=/x", "--save-interval", "5", "--save"}),
      ElementsAre("t.py", "--save", "/a b", "--save=/a b", "--save-interval", "5", "--save"));
  EXPECT_THAT(edited("set --save /new", {"--save", "/x"}), ElementsAre("--save", "/x"))
      << "the first word is the program";
}

TEST(Edits, PutAddsWhatIsNotThere) {
  EXPECT_THAT(edited("put --load /r", {"t.py", "--load", "/old"}),
              ElementsAre("t.py", "--load", "/r"));
  EXPECT_THAT(edited("put --load /r", {"t.py", "--lr", "1"}),
              ElementsAre("t.py", "--lr", "1", "--load", "/r"));
  EXPECT_THAT(edited("put --load /r", {"t.py", "--load", "--lr", "1"}),
              ElementsAre("t.py", "--lr", "1", "--load", "/r"));
}

TEST(Edits, DropAndMatch) {
  EXPECT_THAT(edited("drop --finetune\ndrop-value --ckpt-step",
                     {"t.py", "--finetune", "--ckpt-step", "40", "--ckpt-step=3", "x"}),
              ElementsAre("t.py", "x"));
  const char* const match = "match --no-load-rng --no-save-rng";
  EXPECT_THAT(edited(match, {"t.py", "--no-load-rng"}), ElementsAre("t.py"));
  EXPECT_THAT(edited(match, {"t.py", "--no-save-rng"}),
              ElementsAre("t.py", "--no-save-rng", "--no-load-rng"));
}

TEST(Edits, OnlyWhereTheyAreMeant) {
  const Words other = {"probe.py", "--lr", "1"};
  EXPECT_EQ(edited("only-with --save --load\nput --load /r", other), other);
  EXPECT_THAT(edited("only-with --save --load\nput --load /r", {"t.py", "--load=/o"}),
              ElementsAre("t.py", "--load=/r"));
  EXPECT_EQ(edited("only-script run_mindformer.py\nput --output_dir /o", other), other);
  EXPECT_THAT(
      edited("only-script run_mindformer.py\nput --output_dir /o", {"../run_mindformer.py"}),
      ElementsAre("../run_mindformer.py", "--output_dir", "/o"));
}

TEST(Edits, WhatTheScriptSaysOfDirectoriesIsReturned) {
  const char* const edits =
      "only-with --save --load\nsaves --save --no-save-optim\nloads --load\nset --save /out";
  const Words program = {"t.py", "--save", "/a", "--load=/b", "--save", "/c"};
  const ScriptOptions given = script_options(edits, program);
  EXPECT_EQ(given.save, "/c") << "the last one counts";
  EXPECT_EQ(given.load, "/b");
  EXPECT_FALSE(given.weights_alone);
  EXPECT_EQ(edited(edits, {"t.py", "--save", "/a"}), (Words{"t.py", "--save", "/out"}))
      << "the two lines change nothing";
  EXPECT_TRUE(script_options(edits, {"t.py", "--save", "/a", "--no-save-optim"}).weights_alone);
  EXPECT_EQ(script_options(edits, {"t.py", "--lr", "1"}).save, "");
  EXPECT_EQ(script_options("only-script x.py\nsaves --save --f", {"t.py", "--save", "/a"}).save,
            "");
  EXPECT_EQ(script_options("", {}).save, "");
}

TEST(Edits, WhatIsNoneIsRefused) {
  for (const char* line : {"erase --x", "set save /x", "drop", "\x01\x02"}) {
    Words program = {"t.py"};
    const auto done = edit_arguments(line, program);
    ASSERT_FALSE(done) << line;
    EXPECT_THAT(done.error().message, HasSubstr("MUSTER_SHIM_EDITS"));
  }
  Words none;
  EXPECT_TRUE(edit_arguments("put --load /r", none)) << "nothing to change";
}

// A tutorial's line ends in `\ `, and the next line is a command of its own.
TEST(Edits, ABlankArgumentIsFound) {
  EXPECT_EQ(blank_argument({"t.py", "--lr", " "}), 2U);
  EXPECT_EQ(blank_argument({" ", "", "--lr"}), 0U);
}

}  // namespace
}  // namespace muster::shim
