#include "common/pki/signature.h"

#include <gtest/gtest.h>

namespace muster::pki {
namespace {

TEST(PkiSignature, OfOneTextByOneKey) {
  const Key key = *Key::generate(), other = *Key::generate();
  const auto signature = sign(key, "text");
  ASSERT_TRUE(signature);
  EXPECT_LE(signature->size(), kSignatureBytesMost);
  const auto half = Key::from_public_der(*key.public_der());
  ASSERT_TRUE(half);
  EXPECT_TRUE(is_signature(*half, "text", *signature));
  EXPECT_FALSE(is_signature(*half, "text ", *signature));
  EXPECT_FALSE(is_signature(other, "text", *signature));
  EXPECT_FALSE(is_signature(key, "text", *signature + "x"));
  EXPECT_FALSE(is_signature(key, "text", signature->substr(1)));
  EXPECT_FALSE(is_signature(key, "text", ""));
  EXPECT_FALSE(is_signature(key, "text", std::string(10'000, '0')));
  EXPECT_FALSE(sign(*half, "text")) << "a public key alone signs nothing";
}

TEST(PkiKey, PublicDerBackAndForth) {
  const Key key = *Key::generate();
  const std::string der = *key.public_der();
  const auto half = Key::from_public_der(der);
  ASSERT_TRUE(half) << half.error().message;
  EXPECT_EQ(half->public_digest(), key.public_digest());
  EXPECT_EQ(*half->public_der(), der);
  EXPECT_FALSE(half->private_pem());
  for (const std::string& wrong :
       {std::string(), der + "x", der.substr(1), der.substr(0, der.size() - 1),
        der.substr(0, der.size() - 1) + static_cast<char>(der.back() ^ 1),
        std::string(100'000, '0')}) {
    EXPECT_FALSE(Key::from_public_der(wrong));
  }
}

}  // namespace
}  // namespace muster::pki
