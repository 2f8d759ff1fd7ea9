#include "common/pki/sealed.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace muster::pki {
namespace {

TEST(Sealed, OpensWithTheSameKeyAndName) {
  const auto key = SealingKey::generate();
  ASSERT_TRUE(key);
  for (const std::string& bytes : {std::string(), std::string("x"), std::string(70'000, '\0')}) {
    const auto sealed = key->seal(bytes, "name");
    ASSERT_TRUE(sealed);
    EXPECT_EQ(sealed->size(), bytes.size() + 28);
    EXPECT_EQ(*key->open(*sealed, "name"), bytes);
    EXPECT_EQ(key->open(*sealed, "other").error().code, ErrorCode::DataLoss);
    EXPECT_EQ(SealingKey::generate()->open(*sealed, "name").error().code, ErrorCode::DataLoss);
  }
}

TEST(Sealed, NoNonceIsUsedTwice) {
  const auto key = SealingKey::generate();
  std::set<std::string> nonces;
  for (int i = 0; i < 1'000; ++i) nonces.insert(key->seal("same", "name")->substr(0, 12));
  EXPECT_EQ(nonces.size(), 1'000U);
}

TEST(Sealed, AKeyIsReadBack) {
  const auto key = SealingKey::generate();
  const std::string hex = key->hex();
  EXPECT_EQ(hex.size(), 64U);
  const auto again = SealingKey::from_hex(hex);
  ASSERT_TRUE(again);
  EXPECT_EQ(*again->open(*key->seal("x", "n"), "n"), "x");
  for (const std::string& wrong :
       {std::string(), hex.substr(1), hex + "0", "g" + hex.substr(1), "A" + hex.substr(1)})
    EXPECT_EQ(SealingKey::from_hex(wrong).error().code, ErrorCode::InvalidArgument);
}

// NIST's CAVP, gcmDecrypt256.rsp, [Keylen = 256, IVlen = 96, PTlen = 128, AADlen = 128]: a text
// that another program has sealed opens here.
TEST(Sealed, IsAes256Gcm) {
  const auto bytes = [](std::string_view hex) {
    std::string out;
    for (std::size_t i = 0; i < hex.size(); i += 2)
      out.push_back(static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16)));
    return out;
  };
  const auto key =
      SealingKey::from_hex("92e11dcdaa866f5ce790fd24501f92509aacf4cb8b1339d50c9c1240935dd08b");
  ASSERT_TRUE(key);
  const std::string sealed = bytes("ac93a1a6145299bde902f21a") +
                             bytes("8995ae2e6df3dbf96fac7b7137bae67f") +
                             bytes("eca5aa77d51d4a0a14d9c51e1da474ab");
  EXPECT_EQ(*key->open(sealed, bytes("1e0889016f67601c8ebea4943bc23ad6")),
            bytes("2d71bcfa914e4ac045b2aa60955fad24"));
}

}  // namespace
}  // namespace muster::pki
