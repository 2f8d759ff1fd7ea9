// What a launcher's command line becomes. drafts.txt has one command in each paragraph, and the
// spec that it gives.
#include "common/compat/launcher/draft.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "common/compat/launcher/launch_draft.h"
#include "tests/support/checkout.h"

namespace muster::launcher {
namespace {

std::string drafted(const std::string& line) {
  std::istringstream in(line);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  if (!is_launch(words)) return "  no launcher\n";
  const auto launch = read_launch(words, "/data/code");
  if (!launch) return "  refused: " + launch.error().message + "\n";
  Draft draft = draft_of(*launch, Texts::Templates);
  draft.name = job_name(launch->wanted.program.front());
  std::istringstream yaml(to_yaml(draft));
  std::string text;
  for (std::string each; std::getline(yaml, each);) text += "  " + each + "\n";
  if (const std::string given = options_given(launch->wanted); !given.empty())
    text += "  told: " + given + "\n";
  return text;
}

TEST(Drafts, AreWhatALauncherWasAskedFor) {
  const std::string path = test::checkout("tests/unit/launcher/drafts.txt");
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

TEST(Drafts, ANameIsMadeOfAFilesName) {
  EXPECT_EQ(job_name("examples/run_GPT 7b.sh"), "run_gpt-7b");
  EXPECT_EQ(job_name("/x/train.py"), "train");
  EXPECT_EQ(job_name("package.train"), "package.train");
  EXPECT_EQ(job_name(".py"), "py");
  EXPECT_EQ(job_name("--"), "job");
  EXPECT_EQ(job_name(""), "job");
  EXPECT_EQ(job_name("\xff\xfe.py"), "job");
  EXPECT_EQ(job_name(std::string(80, 'a') + ".py").size(), 63U);
}

TEST(Drafts, ADollarOfTheProgramsOwnBeginsNoTemplate) {
  EXPECT_EQ(literal("a${b}$c$$"), "a$${b}$$c$$$$");
  const auto launch =
      read_launch({"torchrun", "--nproc_per_node=2", "train.py", "${save.dir}", "a b"}, "/x");
  ASSERT_TRUE(launch);
  EXPECT_EQ(draft_of(*launch, Texts::Templates).args,
            (std::vector<std::string>{"${save.dir}", "a b"}));
  EXPECT_EQ(draft_of(*launch, Texts::Literal).args,
            (std::vector<std::string>{"$${save.dir}", "a b"}));
}

// Whatever a value contains, it stays one value, and a remark stays one remark.
TEST(Drafts, HostileTextsStayTexts) {
  Draft draft;
  draft.name = "x";
  draft.engine = "torch";
  draft.code = "/a: b\n#c";
  draft.script = "t.py";
  draft.args = {"it's", "", "a\nb: c", "\xc2\x85"};
  draft.env = {{"A", "1"}, {"B", "true"}, {"C", "\"\\\t"}};
  draft.remarks[""] = {"one\nname: evil"};
  const std::string yaml = to_yaml(draft);
  EXPECT_TRUE(yaml.starts_with("# one?name: evil\nname: x\n")) << yaml;
  EXPECT_NE(yaml.find("  at: \"/a: b\\u000a#c\"\n"), std::string::npos) << yaml;
  EXPECT_NE(yaml.find("  args: [\"it's\", \"\", \"a\\u000ab: c\", \"\\u0085\"]\n"),
            std::string::npos)
      << yaml;
  EXPECT_NE(yaml.find("    A: \"1\"\n    B: \"true\"\n    C: \"\\\"\\\\\\u0009\"\n"),
            std::string::npos)
      << yaml;
  draft.args = {"it's", "--x", "", "--y=1", "${out}/z"};
  EXPECT_NE(to_yaml(draft).find("  args: |\n    'it'\\''s'\n    --x ''\n    --y=1 ${out}/z\n"),
            std::string::npos)
      << to_yaml(draft);
}

// A script in GBK, and a command line that was cut within a character: the spec is UTF-8 all the
// same.
TEST(Drafts, ARemarkIsUtf8) {
  const Draft draft{.name = "x",
                    .engine = "torch",
                    .code = "/",
                    .remarks = {{"", {"A=\xd6\xd0 \xe8\xaf\xad \xe8\xaf"}}}};
  EXPECT_TRUE(to_yaml(draft).starts_with("# A=?? \xe8\xaf\xad ??\nname: x\n")) << to_yaml(draft);
}

TEST(Drafts, DevicesAreANumberARangeOrAList) {
  Draft draft{.name = "x", .engine = "torch", .code = "/", .devices = 2};
  EXPECT_NE(to_yaml(draft).find("  devices: 2\n"), std::string::npos);
  draft.device_ids = {4, 5, 6};
  EXPECT_NE(to_yaml(draft).find("  devices: \"[4,7)\"\n"), std::string::npos);
  draft.device_ids = {0, 2};
  EXPECT_NE(to_yaml(draft).find("  devices: [0, 2]\n"), std::string::npos);
}

}  // namespace
}  // namespace muster::launcher
