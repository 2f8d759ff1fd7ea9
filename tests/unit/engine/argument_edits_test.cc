// The edits of a training program's arguments as the value of MUSTER_SHIM_EDITS.
#include <gtest/gtest.h>

#include "common/compat/arguments/edits.h"

namespace muster {
namespace {

using enum ArgumentEdit::Kind;

TEST(ArgumentEdits, EachKindHasItsFieldsAndComesBack) {
  EXPECT_EQ(json_of(ArgumentEdits()), "{}");
  const ArgumentEdits edits = {
      {.kind = OnlyWith, .options = {"--save", "--load"}},
      {.kind = OnlyScript, .value = "run.py"},
      {.kind = Set, .option = "--save", .value = "/a b"},
      {.kind = Put, .option = "--load"},
      {.kind = Drop, .option = "--finetune"},
      {.kind = DropValue, .option = "--ckpt-step"},
      {.kind = Match, .option = "--no-load-rng", .value = "--no-save-rng"},
      {.kind = Saves, .option = "--save", .value = "--no-save-optim"},
      {.kind = Loads, .option = "--load"},
  };
  const std::string json = json_of(edits);
  EXPECT_EQ(json, R"({"edits":[{"onlyWith":{"options":["--save","--load"]}},)"
                  R"({"onlyScript":"run.py"},)"
                  R"({"set":{"option":"--save","value":"/a b"}},)"
                  R"({"put":{"option":"--load"}},)"
                  R"({"drop":"--finetune"},{"dropValue":"--ckpt-step"},)"
                  R"({"match":{"flag":"--no-load-rng","other":"--no-save-rng"}},)"
                  R"({"saves":{"option":"--save","weightsAloneFlag":"--no-save-optim"}},)"
                  R"({"loads":"--load"}]})");
  const auto back = parse_edits(json);
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(*back, edits);
}

// A variable of several lines would not be readable in `muster env`.
TEST(ArgumentEdits, AnyPathIsOneLineAndComesBack) {
  const ArgumentEdits edits = {
      {.kind = Set, .option = "--save", .value = "/a \"b\"\\\n\t<\u6570\u636e>"}};
  const std::string json = json_of(edits);
  EXPECT_EQ(json.find('\n'), std::string::npos) << json;
  const auto back = parse_edits(json);
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(*back, edits);
}

TEST(ArgumentEdits, APathThatIsNoUtf8IsNoException) {
  EXPECT_EQ(json_of({{.kind = Drop, .option = "--x\xff"}}),
            "{\"edits\":[{\"drop\":\"--x\ufffd\"}]}");
}

}  // namespace
}  // namespace muster
