#include "common/text/options.h"

#include <gmock/gmock.h>

#include <string>

namespace muster {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

using Words = std::vector<std::string_view>;

// "1-3 a": the words 1 and 2 are the option, and its value begins with "a". "=": attached.
std::vector<std::string> shown(const Words& words, std::string_view name,
                               ValueRule rule = ValueRule::OneWord) {
  std::vector<std::string> out;
  for (const OptionSpan& option : find_options(words, name, rule)) {
    std::string text = std::to_string(option.begin) + "-" + std::to_string(option.end);
    if (option.has_value())
      text += (option.attached ? " =" : " ") + std::string(option.value);
    else
      EXPECT_EQ(option.value, "");
    out.push_back(std::move(text));
  }
  return out;
}

TEST(Options, AreFoundInBothSpellings) {
  EXPECT_THAT(shown({"x.py", "--save", "a", "--save=b", "--saved", "c", "--save="}, "--save"),
              ElementsAre("1-3 a", "3-4 =b", "6-7 ="));
  EXPECT_THAT(shown({"-t", "3", "-tee", "-t=4"}, "-t"), ElementsAre("0-2 3", "3-4 =4"));
  EXPECT_THAT(shown({"--sav", "a", "save", "b"}, "--save"), IsEmpty());
  EXPECT_THAT(shown({}, "--save"), IsEmpty());
}

TEST(Options, OneWordIsAValueUnlessItIsALongOption) {
  EXPECT_THAT(shown({"--lr", "-1", "--lr", "--bf16", "--lr", "-v", "--lr"}, "--lr"),
              ElementsAre("0-2 -1", "2-3", "4-6 -v", "6-7"));
}

TEST(Options, AnyWordIsAValue) {
  EXPECT_THAT(shown({"--config", "--config", "x", "--config"}, "--config", ValueRule::AnyWord),
              ElementsAre("0-2 --config", "3-4"));
}

TEST(Options, SeveralWordsAreAValueUpToTheNextFlag) {
  EXPECT_THAT(shown({"--data", "a", "-1", "-.5", "-", "-v", "--data=b", "c", "--data", "--x"},
                    "--data", ValueRule::SeveralWords),
              ElementsAre("0-5 a", "6-8 =b", "8-9"));
}

TEST(Options, AreErasedWithTheirValues) {
  std::vector<std::string> words = {"a", "--x", "1", "b", "--x=2", "--x", "--y"};
  const Words views(words.begin(), words.end());
  const auto spans = find_options(views, "--x");
  erase_options(words, spans);
  EXPECT_THAT(words, ElementsAre("a", "b", "--y"));
  erase_options(words, {});
  EXPECT_THAT(words, ElementsAre("a", "b", "--y"));
}

TEST(Options, FlagsAreNoNumbers) {
  for (const char* flag : {"-v", "--save", "--save=x", "--"}) EXPECT_TRUE(is_flag(flag)) << flag;
  for (const char* word : {"", "-", "-1", "-.5", "x", "x-y"}) EXPECT_FALSE(is_flag(word)) << word;
  EXPECT_EQ(option_name("--save=a=b"), "--save");
  EXPECT_EQ(option_name("--save"), "--save");
}

}  // namespace
}  // namespace muster
