#include "common/pki/pem.h"

#include <gtest/gtest.h>

#include "tests/unit/pki/made.h"

namespace muster::pki {
namespace {

constexpr std::string_view kA = "-----BEGIN A-----\nAAAA\n-----END A-----\n";
constexpr std::string_view kB = "-----BEGIN B C-----\r\nBBBB\r\n-----END B C-----\r\n";

TEST(Pem, BlocksAreFoundBetweenOtherText) {
  const std::string text =
      "hello\n" + std::string(kA) + "in between -----BEGIN X-----\n" + std::string(kB) + "end";
  const auto blocks = must(pem_blocks(text));
  ASSERT_EQ(blocks.size(), 2U);
  EXPECT_EQ(blocks[0].label, "A");
  EXPECT_EQ(blocks[0].text, kA);
  EXPECT_EQ(blocks[1].label, "B C");
  EXPECT_EQ(blocks[1].text, kB);
  EXPECT_EQ(must(pem_blocks("")).size(), 0U);
  EXPECT_EQ(must(pem_blocks("-----BEGIN ----\n-----END A-----")).size(), 0U);
}

TEST(Pem, TheLastLineNeedsNoLineEnd) {
  const std::string_view text = kA.substr(0, kA.size() - 1);
  const auto blocks = must(pem_blocks(text));
  ASSERT_EQ(blocks.size(), 1U);
  EXPECT_EQ(blocks[0].text, text);
}

TEST(Pem, ABlockWithoutItsEndIsRefused) {
  const std::string wanted = "the PEM block 'A' has no end";
  EXPECT_EQ(refusal(pem_blocks("-----BEGIN A-----\nAAAA\n")), wanted);
  EXPECT_EQ(refusal(pem_blocks("-----BEGIN A-----\nAAAA\n-----END B-----\n")), wanted);
  EXPECT_EQ(refusal(pem_blocks("-----BEGIN A-----\n" + std::string(kB))), wanted);
}

TEST(Pem, EveryFormOfAPrivateKeyIsOne) {
  for (const char* label :
       {"PRIVATE KEY", "EC PRIVATE KEY", "RSA PRIVATE KEY", "ENCRYPTED PRIVATE KEY"})
    EXPECT_TRUE(is_private_key({.label = label, .text = {}})) << label;
  for (const char* label : {"PUBLIC KEY", "CERTIFICATE", "EC PARAMETERS"})
    EXPECT_FALSE(is_private_key({.label = label, .text = {}})) << label;
}

}  // namespace
}  // namespace muster::pki
