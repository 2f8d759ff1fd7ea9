// The YAML of a draft, and the names and texts in it.
#include "common/compat/launcher/draft.h"

#include <gtest/gtest.h>

namespace muster::launcher {
namespace {

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

TEST(Drafts, ALiteralTextBeginsNoTemplate) { EXPECT_EQ(literal("a${b}$c$$"), "a$${b}$$c$$$$"); }

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
