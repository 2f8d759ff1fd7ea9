#include "common/pki/key.h"

#include <gtest/gtest.h>
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/params.h>

#include "common/digest/sha256.h"
#include "tests/unit/pki/made.h"

namespace muster::pki {
namespace {

// One line of its base64: what an error must not have.
std::string secret_of(const std::string& pem) { return pem.substr(pem.find('\n') + 1, 40); }

TEST(Key, ComesBackFromBothPems) {
  const Key key = must(Key::generate());
  const std::string pem = must(key.private_pem());
  EXPECT_TRUE(pem.starts_with("-----BEGIN PRIVATE KEY-----\n")) << pem;
  const Key again = must(Key::from_pem(pem));
  EXPECT_EQ(must(again.private_pem()), pem);
  const Key other_half = must(Key::from_public_pem(must(key.public_pem())));
  EXPECT_EQ(must(other_half.public_pem()), must(key.public_pem()));
  EXPECT_EQ(key.public_digest().size(), 64U);
  EXPECT_EQ(again.public_digest(), key.public_digest());
  EXPECT_EQ(other_half.public_digest(), key.public_digest());
  EXPECT_NE(must(Key::generate()).public_digest(), key.public_digest());
  EXPECT_EQ(refusal(other_half.private_pem()),
            "writing the private key: this is a public key alone");
}

// By `openssl pkey -pubin -outform DER | sha256sum`.
TEST(Key, TheDigestIsThatOfTheSubjectPublicKeyInfo) {
  const Key key = must(Key::generate());
  unsigned char* der = nullptr;
  const int size = ::i2d_PUBKEY(key.get(), &der);
  ASSERT_GT(size, 0);
  EXPECT_EQ(key.public_digest(),
            sha256_hex({reinterpret_cast<const char*>(der), static_cast<std::size_t>(size)}));
  OPENSSL_free(der);
}

TEST(Key, OtherKindsAreRefusedByTheirName) {
  const KeyOwner rsa(::EVP_PKEY_Q_keygen(nullptr, nullptr, "RSA", std::size_t{2048}));
  const KeyOwner p384(::EVP_PKEY_Q_keygen(nullptr, nullptr, "EC", "P-384"));
  const KeyOwner ed25519(::EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519"));
  ASSERT_TRUE(rsa && p384 && ed25519);
  const std::pair<EVP_PKEY*, std::string> rows[] = {{rsa.get(), "RSA with 2048 bits"},
                                                    {p384.get(), "EC on secp384r1"},
                                                    {ed25519.get(), "ED25519 with 256 bits"}};
  for (const auto& [key, kind] : rows) {
    const std::string wanted =
        ": it is " + kind +
        "; muster takes ECDSA keys on P-256 (openssl genpkey -algorithm EC -pkeyopt "
        "ec_paramgen_curve:P-256)";
    const auto public_key = Key::from_public_pem(public_pem_of(key));
    EXPECT_EQ(refusal(public_key), "reading the public key" + wanted);
    EXPECT_EQ(public_key.error().code, ErrorCode::InvalidArgument);
    EXPECT_EQ(refusal(Key::from_pem(private_pem_of(key))), "reading the private key" + wanted);
  }
}

TEST(Key, ACurveOfNumbersIsRefused) {
  char group[] = "P-256", encoding[] = "explicit";
  const OSSL_PARAM parameters[] = {
      ::OSSL_PARAM_construct_utf8_string(OSSL_PKEY_PARAM_GROUP_NAME, group, 0),
      ::OSSL_PARAM_construct_utf8_string(OSSL_PKEY_PARAM_EC_ENCODING, encoding, 0),
      ::OSSL_PARAM_construct_end()};
  EVP_PKEY_CTX* context = ::EVP_PKEY_CTX_new_from_name(nullptr, "EC", nullptr);
  EVP_PKEY* made = nullptr;
  ASSERT_TRUE(::EVP_PKEY_keygen_init(context) == 1 &&
              ::EVP_PKEY_CTX_set_params(context, parameters) == 1 &&
              ::EVP_PKEY_generate(context, &made) == 1);
  const KeyOwner key(made);
  ::EVP_PKEY_CTX_free(context);
  EXPECT_NE(refusal(Key::from_public_pem(public_pem_of(key.get())))
                .find("it is EC on a curve given by numbers; muster takes"),
            std::string::npos);
  EXPECT_FALSE(Key::from_pem(private_pem_of(key.get())));
}

TEST(Key, ExactlyOneBlockOfTheRightLabelIsRead) {
  const Key key = must(Key::generate());
  const std::string pem = must(key.private_pem()), public_pem = must(key.public_pem());
  EXPECT_EQ(refusal(Key::from_pem("")),
            "reading the private key: it must be one PEM block, and there are 0");
  EXPECT_EQ(refusal(Key::from_pem(pem + pem)),
            "reading the private key: it must be one PEM block, and there are 2");
  EXPECT_EQ(refusal(Key::from_pem(public_pem)),
            "reading the private key: it is a PEM block 'PUBLIC KEY', not 'PRIVATE KEY'");
  EXPECT_EQ(refusal(Key::from_public_pem(pem)),
            "reading the public key: it is a PEM block 'PRIVATE KEY', not 'PUBLIC KEY'");
  EXPECT_EQ(refusal(Key::from_pem(pem.substr(0, 60))),
            "reading the private key: the PEM block 'PRIVATE KEY' has no end");
  EXPECT_EQ(refusal(Key::from_public_pem(std::string((16 << 10) + 1, ' '))),
            "reading the public key: more than 16384 bytes");
}

TEST(Key, DamagedBytesAreRefusedWithoutShowingThem) {
  const std::string pem = must(must(Key::generate()).private_pem());
  std::string damaged = pem;
  damaged.erase(damaged.find('\n') + 1, 4);
  const auto read = Key::from_pem(damaged);
  ASSERT_FALSE(read);
  EXPECT_TRUE(read.error().message.starts_with("reading the private key: it does not decode: "))
      << read.error().message;
  EXPECT_EQ(read.error().message.find(secret_of(damaged)), std::string::npos);
  EXPECT_TRUE(refusal(Key::from_public_pem("-----BEGIN PUBLIC KEY-----\n!\n"
                                           "-----END PUBLIC KEY-----\n"))
                  .starts_with("reading the public key: it does not decode: "));
  EXPECT_EQ(::ERR_peek_error(), 0U) << "TLS on this thread would take it as its own";
}

// The two halves of the pair are of two keys, and each half alone is sound.
TEST(Key, APrivateKeyWithAnotherOnesPublicHalfIsRefused) {
  const KeyOwner one(::EVP_PKEY_Q_keygen(nullptr, nullptr, "EC", "P-256"));
  const KeyOwner two(::EVP_PKEY_Q_keygen(nullptr, nullptr, "EC", "P-256"));
  unsigned char* point = nullptr;
  const std::size_t size = ::EVP_PKEY_get1_encoded_public_key(two.get(), &point);
  ASSERT_GT(size, 0U);
  ASSERT_EQ(::EVP_PKEY_set1_encoded_public_key(one.get(), point, size), 1);
  OPENSSL_free(point);
  EXPECT_TRUE(refusal(Key::from_pem(private_pem_of(one.get())))
                  .starts_with("reading the private key: its numbers are not those of a key"));
}

// No test may wait at a terminal.
TEST(Key, APassphraseIsNeverAskedFor) {
  const Key key = must(Key::generate());
  const std::string wanted =
      "reading the private key: it has a passphrase; muster reads keys without one, from files of "
      "mode 600";
  const std::string pkcs8 = private_pem_of(key.get(), ::EVP_aes_256_cbc());
  EXPECT_NE(pkcs8.find("ENCRYPTED PRIVATE KEY"), std::string::npos) << pkcs8;
  EXPECT_EQ(refusal(Key::from_pem(pkcs8)), wanted);
  EXPECT_EQ(refusal(Key::from_pem("-----BEGIN EC PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n"
                                  "DEK-Info: AES-256-CBC,00\n\nAAAA\n"
                                  "-----END EC PRIVATE KEY-----\n")),
            wanted);
}

}  // namespace
}  // namespace muster::pki
