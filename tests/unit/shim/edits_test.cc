// What muster changes in a training program's arguments.
#include "worker/shim/edits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::shim {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using Words = std::vector<std::string>;

ArgumentEdits parsed(const std::string& list) {
  auto edits = parse_edits(R"({"edits":[)" + list + "]}");
  EXPECT_TRUE(edits) << edits.error().message;
  return edits ? *edits : ArgumentEdits();
}

Words edited(const std::string& list, Words program) {
  edit_arguments(parsed(list), program);
  return program;
}

const char* const kLoad = R"({"put":{"option":"--load","value":"/r"}})";

TEST(Edits, SetChangesBothSpellingsAndNothingElse) {
  EXPECT_THAT(
      edited(R"({"set":{"option":"--save","value":"/a b"}})",
             {"t.py", "--save", "/old", "--save=/x", "--save-interval", "5", "--save"}),
      ElementsAre("t.py", "--save", "/a b", "--save=/a b", "--save-interval", "5", "--save"));
  EXPECT_THAT(edited(R"({"set":{"option":"--save","value":"/new"}})", {"--save", "/x"}),
              ElementsAre("--save", "/x"))
      << "the first word is the program";
}

TEST(Edits, PutAddsWhatIsNotThere) {
  EXPECT_THAT(edited(kLoad, {"t.py", "--load", "/old"}), ElementsAre("t.py", "--load", "/r"));
  EXPECT_THAT(edited(kLoad, {"t.py", "--lr", "1"}),
              ElementsAre("t.py", "--lr", "1", "--load", "/r"));
  EXPECT_THAT(edited(kLoad, {"t.py", "--load", "--lr", "1"}),
              ElementsAre("t.py", "--lr", "1", "--load", "/r"));
}

TEST(Edits, DropAndMatch) {
  EXPECT_THAT(edited(R"({"drop":"--finetune"},{"dropValue":"--ckpt-step"})",
                     {"t.py", "--finetune", "--ckpt-step", "40", "--ckpt-step=3", "x"}),
              ElementsAre("t.py", "x"));
  const char* const match = R"({"match":{"flag":"--no-load-rng","other":"--no-save-rng"}})";
  EXPECT_THAT(edited(match, {"t.py", "--no-load-rng"}), ElementsAre("t.py"));
  EXPECT_THAT(edited(match, {"t.py", "--no-save-rng"}),
              ElementsAre("t.py", "--no-save-rng", "--no-load-rng"));
}

TEST(Edits, OnlyWhereTheyAreMeant) {
  const Words other = {"probe.py", "--lr", "1"};
  const std::string with = R"({"onlyWith":{"options":["--save","--load"]}},)",
                    script = R"({"onlyScript":"run_mindformer.py"},)";
  EXPECT_EQ(edited(with + kLoad, other), other);
  EXPECT_THAT(edited(with + kLoad, {"t.py", "--load=/o"}), ElementsAre("t.py", "--load=/r"));
  EXPECT_EQ(edited(script + kLoad, other), other);
  EXPECT_THAT(edited(script + kLoad, {"../run_mindformer.py"}),
              ElementsAre("../run_mindformer.py", "--load", "/r"));
  EXPECT_THAT(edited(R"({"drop":"--lr"},)" + with + kLoad, other), ElementsAre("probe.py", "1"))
      << "what is above applies";
}

TEST(Edits, WhatTheScriptSaysOfDirectoriesIsReturned) {
  const char* const list = R"({"onlyWith":{"options":["--save","--load"]}},)"
                           R"({"saves":{"option":"--save","weightsAloneFlag":"--no-save-optim"}},)"
                           R"({"loads":"--load"},{"set":{"option":"--save","value":"/out"}})";
  const ArgumentEdits edits = parsed(list);
  const Words program = {"t.py", "--save", "/a", "--load=/b", "--save", "/c"};
  const ScriptOptions given = script_options(edits, program);
  EXPECT_EQ(given.save, "/c") << "the last one counts";
  EXPECT_EQ(given.load, "/b");
  EXPECT_FALSE(given.weights_alone);
  EXPECT_EQ(edited(list, {"t.py", "--save", "/a"}), (Words{"t.py", "--save", "/out"}))
      << "the two edits change nothing";
  EXPECT_TRUE(script_options(edits, {"t.py", "--save", "/a", "--no-save-optim"}).weights_alone);
  EXPECT_EQ(script_options(edits, {"t.py", "--lr", "1"}).save, "");
  const auto other = parsed(R"({"onlyScript":"x.py"},{"saves":{"option":"--save"}})");
  EXPECT_EQ(script_options(other, {"t.py", "--save", "/a"}).save, "");
  EXPECT_EQ(script_options(edits, {}).save, "");
}

// The text is one line, because the verdict uses the script's line with this error.
TEST(Edits, WhatIsNoneIsRefused) {
  for (const char* json :
       {"set --save /x", "\x01\x02", "{", "[]", R"({"edits":[{"erase":"--x"}]})",
        R"({"edits":[{"drop":"--x","by":"me"}]})", R"({"edits":[],"version":2})",
        R"({"edits":[{"drop":"--x","loads":"--y"}]})", R"({"edits":[{"drop":["--x"]}]})",
        R"({"edits":[{}]})", R"({"edits":[{"drop":""}]})", R"({"edits":[{"dropValue":"x"}]})",
        R"({"edits":[{"set":{"option":"save","value":"/x"}}]})",
        R"({"edits":[{"put":{"value":"/x"}}]})", R"({"edits":[{"match":{"other":"--x"}}]})",
        R"({"edits":[{"saves":{}}]})", R"({"edits":[{"loads":"load"}]})"}) {
    const auto edits = parse_edits(json);
    ASSERT_FALSE(edits) << json;
    EXPECT_EQ(edits.error().code, ErrorCode::InvalidArgument);
    EXPECT_THAT(edits.error().message,
                AllOf(HasSubstr("MUSTER_SHIM_EDITS is no list of changes: "),
                      HasSubstr("; leave the variable as muster sets it"), Not(HasSubstr("\n"))));
  }
  EXPECT_THAT(parse_edits(R"({"edits":[{"drop":"--x"},{"drop":"x"}]})").error().message,
              HasSubstr("change 2 is of no known form"));
  EXPECT_THAT(parse_edits(R"({"edits":[{"erase":"--x"}]})").error().message,
              HasSubstr("change 1 is of no known form; leave the variable"));
}

TEST(Edits, NothingToChange) {
  const auto edits = parse_edits("");
  ASSERT_TRUE(edits) << edits.error().message;
  EXPECT_EQ(edits->size(), 0U);
  EXPECT_EQ(edited(kLoad, {}), Words());
}

// With escapes, and with blanks between the parts.
TEST(Edits, AValueMayHaveAnyCharacters) {
  EXPECT_THAT(edited(R"( { "set" : { "option" : "--save" , "value" : "/a \"b\"\n\u003c数据" } } )",
                     {"t.py", "--save", "/old"}),
              ElementsAre("t.py", "--save", "/a \"b\"\n<数据"));
}

TEST(Edits, AnOptionIsSetWhereItHasAValue) {
  Words program = {"t.py", "--load", "/a", "--load=/b"};
  EXPECT_TRUE(set_option(program, "--load", "/new dir"));
  EXPECT_THAT(program, ElementsAre("t.py", "--load", "/new dir", "--load=/new dir"));
  Words flag = {"t.py", "--load"};
  EXPECT_FALSE(set_option(flag, "--load", "/new"));
  EXPECT_THAT(flag, ElementsAre("t.py", "--load"));
}

// A tutorial's line ends in `\ `, and the next line is a command of its own.
TEST(Edits, ABlankArgumentIsFound) {
  EXPECT_EQ(blank_argument({"t.py", "--lr", " "}), 2U);
  EXPECT_EQ(blank_argument({" ", "", "--lr"}), 0U);
}

}  // namespace
}  // namespace muster::shim
