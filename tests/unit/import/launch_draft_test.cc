// What a launcher's command line becomes. drafts.txt has one command in each paragraph, and the
// spec that it gives.
#include "client/import/launch_draft.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/checkout.h"

namespace muster::import {
namespace {

std::string drafted(const std::string& line) {
  std::istringstream in(line);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  if (!launcher::is_launch(words)) return "  no launcher\n";
  const auto launch = launcher::read_launch(words, "/data/code");
  if (!launch) return "  refused: " + launch.error().message + "\n";
  launcher::Draft draft = draft_of(*launch, Texts::Templates);
  draft.name = launcher::job_name(launch->wanted.program.front());
  std::istringstream yaml(launcher::to_yaml(draft));
  std::string text;
  for (std::string each; std::getline(yaml, each);) text += "  " + each + "\n";
  if (const std::string given = launcher::options_given(launch->wanted); !given.empty())
    text += "  told: " + given + "\n";
  return text;
}

TEST(LaunchDrafts, AreWhatALauncherWasAskedFor) {
  const std::string path = test::checkout("tests/unit/import/drafts.txt");
  std::ifstream file(path);
  std::string whole, again;
  int commands = 0;
  for (std::string line; std::getline(file, line); whole += line + "\n") {
    if (line.starts_with("  ")) continue;
    again += line + "\n";
    if (line.empty() || line.starts_with('#')) continue;
    again += drafted(line);
    ++commands;
  }
  EXPECT_GE(commands, 20);
  if (std::getenv("MUSTER_REWRITE") != nullptr) std::ofstream(path) << again;
  EXPECT_EQ(whole, again);
}

TEST(LaunchDrafts, ADollarOfTheProgramsOwnBeginsNoTemplate) {
  const auto launch = launcher::read_launch(
      {"torchrun", "--nproc_per_node=2", "train.py", "${save.dir}", "a b"}, "/x");
  ASSERT_TRUE(launch);
  EXPECT_EQ(draft_of(*launch, Texts::Templates).args,
            (std::vector<std::string>{"${save.dir}", "a b"}));
  EXPECT_EQ(draft_of(*launch, Texts::Literal).args,
            (std::vector<std::string>{"$${save.dir}", "a b"}));
}

// Every launcher has an engine that takes any arguments, and the arguments of one engine are not
// asked for with another engine's launcher.
TEST(LaunchDrafts, TheEngineIsThatOfTheLauncherAndOfTheArguments) {
  using enum launcher::Launcher;
  const std::vector<std::string> megatron = {"x.py", "--micro-batch-size=1", "--train-samples",
                                             "9"};
  std::vector<std::string> both = megatron;
  both.emplace_back("--mm-data=a.json");
  for (const launcher::Launcher torch : {Torchrun, TorchLaunch}) {
    EXPECT_EQ(engine_of(torch, {}).name, "torch");
    EXPECT_EQ(engine_of(torch, megatron).name, "megatron");
    EXPECT_EQ(engine_of(torch, both).name, "mindspeed-mm");
  }
  EXPECT_EQ(engine_of(Msrun, {}).name, "mindformers");
  EXPECT_EQ(engine_of(Msrun, both).name, "mindformers");
}

}  // namespace
}  // namespace muster::import
