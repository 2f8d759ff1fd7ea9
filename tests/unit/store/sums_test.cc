#include "common/store/sums.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::store {
namespace {

const std::string kA(64, 'a'), kB(64, 'b');

TEST(Sums, AreAsSha256sumWritesThem) {
  EXPECT_EQ(sums_text({{"x/y z", kA}, {"é%", kB}}), kA + "  x/y z\n" + kB + "  é%\n");
  EXPECT_EQ(sums_text({{"a\nb\\c\rd", kA}}), "\\" + kA + "  a\\nb\\\\c\\rd\n");
  EXPECT_EQ(sums_text({}), "");
}

TEST(Sums, AreReadAsTheyWereWritten) {
  const Sums sums = {{"x/y  z", kA}, {"a\nb\\c\rd", kB}, {" lead", kA}, {"\xFF", kB}, {"\\", kA}};
  const auto read = parse_sums(sums_text(sums));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, sums);
  EXPECT_TRUE(parse_sums("")->empty());
}

TEST(Sums, AreRefusedWhenTheyAreNoneOrNotWhole) {
  const std::string line = kA + "  a\n";
  for (const std::string& text :
       {kA + "  a", kA.substr(1) + "  a\n", kA + " a\n", kA + "  \n", kA + " *a\n", line + line,
        "\\" + kA + "  a\\x\n", "\\" + kA + "  a\\\n", std::string("<html>\n"), std::string("\n"),
        std::string(64, 'A') + "  a\n"})
    EXPECT_FALSE(parse_sums(text)) << text;
}

TEST(Sums, HaveTheirNames) {
  EXPECT_EQ(step_sums_name(240), ".muster/step-240.sha256");
  EXPECT_EQ(node_sums_name(240, "n1"), ".muster/step-240/n1.sha256");
  EXPECT_EQ(job_sums_name("j", "n1"), ".muster/j/n1.sha256");
}

}  // namespace
}  // namespace muster::store
