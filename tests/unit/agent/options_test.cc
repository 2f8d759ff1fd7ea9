#include "agent/options.h"

#include <gtest/gtest.h>

namespace muster::agent {
namespace {

Result<std::optional<CommandLine>> parse(std::vector<std::string> more) {
  std::vector<std::string> words{"muster-agent", "--controller", "unix:/s", "--name", "n1"};
  words.insert(words.end(), more.begin(), more.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  return parse_command_line(static_cast<int>(argv.size()), argv.data());
}

// It went into the Hello, which the controller could not read: the agent knocked for ever.
TEST(CommandLine, BytesThatAreNoTextAreAUsageError) {
  EXPECT_TRUE(parse({"--label", "rack=m\xc3\xbcnchen", "--address", "127.0.0.1"}));
  for (const std::vector<std::string>& bad : {std::vector<std::string>{"--label", "rack=\xff"}, {"--address", "10.0.0.\xff"}, {"--name", "n\xff"}}) {
    const auto line = parse(bad);
    ASSERT_FALSE(line) << bad[0];
    EXPECT_EQ(line.error().code, ErrorCode::InvalidArgument);
  }
  EXPECT_NE(parse({"--address", "10.0.0.\xff"}).error().message.find("'10.0.0.?' is not UTF-8 text"), std::string::npos);
}

}  // namespace
}  // namespace muster::agent
