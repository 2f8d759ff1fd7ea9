#include "common/engine/model/arguments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::engine {
namespace {

using testing::ElementsAre;

CommandLine command(const std::vector<std::string>& words, const std::string& key = "launch.args") {
  CommandLine result;
  for (const std::string& word : words) result.push_back({word, key});
  return result;
}

std::vector<std::string> texts(const CommandLine& command) {
  std::vector<std::string> result;
  for (const Word& word : command) result.push_back(word.text);
  return result;
}

TEST(Arguments, AreFoundInBothSpellingsAndTheLastOneCounts) {
  const CommandLine words =
      command({"x.py", "--save", "a", "--save=b", "--saved", "c", "--flag", "--empty=", "--last"});
  const auto save = find_option(words, "--save");
  ASSERT_TRUE(save);
  EXPECT_EQ(save->value, "b");
  EXPECT_EQ(save->word, 3u);
  EXPECT_TRUE(find_option(words, "--empty")->has_value);
  EXPECT_EQ(find_option(words, "--empty")->value, "");
  EXPECT_FALSE(find_option(words, "--flag")->has_value) << "what follows is another option";
  EXPECT_FALSE(find_option(words, "--last")->has_value);
  EXPECT_FALSE(find_option(words, "--sav")) << "names are whole";
  EXPECT_FALSE(find_option({}, "--save"));
}

TEST(Arguments, AreSetInTheSpellingThatStandsThere) {
  CommandLine words = command({"--load", "a", "--load=b", "--load"});
  EXPECT_TRUE(set_option(words, "--load", "new", "engine x"));
  EXPECT_THAT(texts(words), ElementsAre("--load", "new", "--load=new", "--load"));
  EXPECT_EQ(words[1].key, "engine x");
  EXPECT_EQ(words[0].key, "launch.args");
  EXPECT_FALSE(set_option(words, "--save", "new", "engine x"));
  put_option(words, "--save", "s", "engine x");
  EXPECT_THAT(texts(words), ElementsAre("--load", "new", "--load=new", "--load", "--save", "s"));
}

TEST(Arguments, OfResumeArgsAreNeverChanged) {
  CommandLine words = command({"--load", "mine", "--fine", "--step", "3"}, "resume.args[0]");
  EXPECT_FALSE(set_option(words, "--load", "new", "engine x"));
  put_option(words, "--load", "new", "engine x");
  drop_flag(words, "--fine");
  drop_option(words, "--step");
  EXPECT_THAT(texts(words), ElementsAre("--load", "mine", "--fine", "--step", "3"));
}

TEST(Arguments, AreDroppedWithTheirValues) {
  CommandLine words = command({"--step", "3", "--step=4", "--fine", "x", "--step", "--fine"});
  drop_option(words, "--step");
  EXPECT_THAT(texts(words), ElementsAre("--fine", "x", "--fine"));
  drop_flag(words, "--fine");
  EXPECT_THAT(texts(words), ElementsAre("x"));
}

TEST(Arguments, WholeValues) {
  const CommandLine words = command({"--a", "12", "--b=7", "--c", "${rank}", "--d", "1x",
                                     "--e=", "--f", "-3", "--g", "99999999999999999999"});
  EXPECT_EQ(whole_value(*find_option(words, "--a")), 12u);
  EXPECT_EQ(whole_value(*find_option(words, "--b")), 7u);
  for (const char* name : {"--c", "--d", "--e", "--f", "--g"})
    EXPECT_FALSE(whole_value(*find_option(words, name))) << name;
}

}  // namespace
}  // namespace muster::engine
