// Regression: `muster frob --help` printed muster's own help and ended with 0, so a script with a
// mistyped command continued. `muster list` printed the list of twenty commands, not the command
// that was meant.
#include "client/commands/call/usage.h"

#include <gmock/gmock.h>

#include <vector>

namespace muster::client {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

class Usage : public testing::Test {
 protected:
  Usage() {
    app_.add_option("--controller", controller_);
    app_.add_subcommand("run");
    app_.add_subcommand("ps")->add_option("--state", controller_);
    CLI::App* node = app_.add_subcommand("node");
    node->add_subcommand("ls");
    node->add_subcommand("show");
  }
  std::string problem_text(std::vector<const char*> words) {
    words.insert(words.begin(), "muster");
    return unknown_verb(app_, static_cast<int>(words.size()), words.data());
  }
  CLI::App app_;
  std::string controller_;
};

TEST_F(Usage, AWordThatIsNoVerbIsNamedWithTheNearestOne) {
  EXPECT_THAT(problem_text({"rum"}),
              HasSubstr("'rum' is no verb of 'muster'; did you mean 'muster run'?; "
                        "there are: run, ps, node; see 'muster --help'"));
  EXPECT_THAT(problem_text({"frobnicate", "--help"}),
              HasSubstr("'frobnicate' is no verb of 'muster'; there are"));
  EXPECT_THAT(problem_text({"node", "shwo", "x"}),
              HasSubstr("'shwo' is no verb of 'muster node'; did you mean 'muster node show'?"));
}

TEST_F(Usage, WordsOfOtherToolsAreKnownByMeaning) {
  EXPECT_THAT(problem_text({"squeue"}), HasSubstr("did you mean 'muster ps'?"));
  EXPECT_THAT(problem_text({"node", "list"}), HasSubstr("did you mean 'muster node ls'?"));
  EXPECT_THAT(problem_text({"help"}), HasSubstr("did you mean 'muster --help'?"));
}

TEST_F(Usage, OptionsAndTheirValuesAreNoVerbs) {
  EXPECT_THAT(problem_text({"--controller", "frob", "ps", "--state", "x"}), IsEmpty());
  EXPECT_THAT(problem_text({"--controller=frob", "rum"}), HasSubstr("'rum'"));
  EXPECT_THAT(problem_text({"--help"}), IsEmpty());
  EXPECT_THAT(problem_text({"node", "--help"}), IsEmpty());
  EXPECT_THAT(problem_text({"run", "anything", "--help"}), IsEmpty());
  EXPECT_THAT(problem_text({"--", "frob"}), IsEmpty());
}

// Pages had lines of up to 240 columns.
TEST(HelpPage, HasNoLineOfMoreThan80Columns) {
  CLI::App app("What it does", "muster");
  app.formatter(help_formatter());
  std::string value;
  const std::string words =
      "twelve words that are long enough for two lines of the column on the right";
  app.add_option("--file", value, words)->type_name("FILE");
  app.add_subcommand("run", words);
  app.footer("A paragraph begins here. " + words + ".\n" +
             "first steps:  muster run    twelve words that are long enough for two lines of it\n"
             "exit codes: 0 done  1 not done, and the sentence on the screen says why it is not\n");
  const std::string page = app.help();
  EXPECT_THAT(page,
              HasSubstr("\n  --file FILE                 twelve words that are long enough for "
                        "two lines of\n                              the column on"));
  EXPECT_THAT(page,
              HasSubstr("\n  run                         twelve words that are long enough for "
                        "two lines of\n                              the column on"));
  EXPECT_THAT(page,
              HasSubstr("\nA paragraph begins here. twelve words that are long enough for two "
                        "lines of the\ncolumn on"));
  EXPECT_THAT(page, HasSubstr("\nfirst steps:  muster run    twelve words that are long enough for "
                              "two lines of\n                            it\nexit codes: 0 done"));
  EXPECT_THAT(page, HasSubstr("says why it is\n            not\n"));
}

}  // namespace
}  // namespace muster::client
