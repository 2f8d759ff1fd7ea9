#include "client/commands/call/completion_script.h"

#include <gtest/gtest.h>

namespace muster::client {
namespace {

std::string bash_of(const std::string& text, const std::string& place) {
  const std::size_t begin = text.find("    " + place + ")", text.find("case ${after:-$at}"));
  return begin == std::string::npos ? "" : text.substr(begin, text.find('\n', begin) - begin);
}

class Completion : public testing::Test {
 protected:
  Completion() {
    app_.add_option("--controller", text_, "where; more")->type_name("ADDRESS");
    CLI::App* run = app_.add_subcommand("run", "Submit the user's job; and follow");
    run->add_option("file", text_, "job.yaml");
    run->add_flag("-d,--detach", flag_, "return at once");
    run->add_option("--for", text_, "how long")->check(CLI::IsMember({"running", "done"}));
    CLI::App* node = app_.add_subcommand("node", "Nodes");
    CLI::App* show = node->add_subcommand("show", "One node");
    show->add_option("node", text_, "its name");
    show->add_option("-o,--output", text_, "table, json or yaml")->type_name("FORMAT");
    app_.add_subcommand("secret", "not for people")->group("");
  }
  CLI::App app_{"", "muster"};
  std::string text_;
  bool flag_ = false;
};

TEST_F(Completion, OfBashFollowsTheCommands) {
  const std::string text = bash_completion(app_);
  EXPECT_EQ(bash_of(text, "''"), "    '') list='run node' flags='--help -h --controller' ;;");
  EXPECT_EQ(bash_of(text, "' run'"),
            "    ' run') flags='--help -h --detach -d --for' kind=file ;;");
  EXPECT_EQ(bash_of(text, "' run --for'"), "    ' run --for') list='running done' ;;");
  EXPECT_EQ(bash_of(text, "' node show'"),
            "    ' node show') flags='--help -h --output -o' kind=node ;;");
  EXPECT_EQ(bash_of(text, "' node show --output'|' node show -o'"),
            "    ' node show --output'|' node show -o') list='table json yaml' ;;");
  // A flag has no value: what follows it is not taken for one.
  EXPECT_NE(text.find("' --controller'|' run --for'|' node show --output'|' node show -o') after="),
            std::string::npos)
      << text;
}

TEST_F(Completion, OfZshSaysWhatEachWordIs) {
  const std::string text = zsh_completion(app_);
  EXPECT_NE(text.find("list=('run:Submit the user'\\''s job' 'node:Nodes')"), std::string::npos)
      << text;
  EXPECT_NE(text.find("'--detach:return at once' '-d:return at once'"), std::string::npos) << text;
}

}  // namespace
}  // namespace muster::client
