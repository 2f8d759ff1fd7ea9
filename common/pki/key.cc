#include "common/pki/key.h"

#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <array>

#include "common/digest/sha256.h"
#include "common/pki/pem.h"
#include "common/pki/printable.h"

namespace muster::pki {
namespace {

constexpr std::size_t kKeyPemBytesMax = 16 << 10;
constexpr std::string_view kReadingPrivate = "reading the private key",
                           kReadingPublic = "reading the public key";

struct ContextFree {
  void operator()(EVP_PKEY_CTX* context) const { ::EVP_PKEY_CTX_free(context); }
};

// Without this, libcrypto asks for a passphrase on the terminal.
int no_passphrase(char*, int, int, void*) { return -1; }

std::string group_of(const EVP_PKEY* key) {
  std::array<char, 80> name{};
  std::size_t size = 0;
  if (::EVP_PKEY_get_group_name(key, name.data(), name.size(), &size) != 1) return {};
  return {name.data(), size};
}

// A curve that is written as numbers is refused, too: it could be nearly P-256.
bool is_named_p256(const EVP_PKEY* key) {
  if (::EVP_PKEY_is_a(key, "EC") != 1 || group_of(key) != "prime256v1") return false;
  int explicit_numbers = 0;
  return ::EVP_PKEY_get_int_param(key, OSSL_PKEY_PARAM_EC_DECODED_FROM_EXPLICIT_PARAMS,
                                  &explicit_numbers) != 1 ||
         explicit_numbers == 0;
}

std::string kind_of(const EVP_PKEY* key) {
  const char* type = ::EVP_PKEY_get0_type_name(key);
  std::string kind = type == nullptr ? "of an unknown kind" : printable(type);
  if (::EVP_PKEY_is_a(key, "EC") != 1)
    return kind + " with " + std::to_string(::EVP_PKEY_get_bits(key)) + " bits";
  const std::string group = group_of(key);
  return kind + " on " +
         (group == "prime256v1" ? "a curve given by numbers"
          : group.empty()       ? "an unknown curve"
                                : printable(group));
}

// The one block of `pem`, if it is what `fits` accepts.
Result<std::string_view> only_block(std::string_view pem, std::string_view doing,
                                    std::string_view wanted, bool (*fits)(const PemBlock&)) {
  if (pem.size() > kKeyPemBytesMax)
    return fail(ErrorCode::InvalidArgument,
                std::string(doing) + ": more than " + std::to_string(kKeyPemBytesMax) + " bytes");
  const auto blocks = pem_blocks(pem);
  if (!blocks) return fail(Error(blocks.error()).in(doing));
  if (blocks->size() != 1)
    return fail(ErrorCode::InvalidArgument, std::string(doing) +
                                                ": it must be one PEM block, and there are " +
                                                std::to_string(blocks->size()));
  const PemBlock& block = blocks->front();
  if (!fits(block))
    return fail(ErrorCode::InvalidArgument, std::string(doing) + ": it is a PEM block '" +
                                                printable(block.label) + "', not '" +
                                                std::string(wanted) + "'");
  return block.text;
}

// `check` is libcrypto's test of the numbers: of a point that is on the curve, and of a private key
// that belongs to it.
Result<void> check_p256(EVP_PKEY* key, std::string_view doing, int (*check)(EVP_PKEY_CTX*)) {
  if (!is_named_p256(key))
    return fail(ErrorCode::InvalidArgument,
                std::string(doing) + ": it is " + kind_of(key) +
                    "; muster takes ECDSA keys on P-256 (openssl genpkey -algorithm EC -pkeyopt "
                    "ec_paramgen_curve:P-256)");
  const std::unique_ptr<EVP_PKEY_CTX, ContextFree> context(
      ::EVP_PKEY_CTX_new_from_pkey(nullptr, key, nullptr));
  if (!context || check(context.get()) != 1)
    return openssl_failed(ErrorCode::InvalidArgument,
                          std::string(doing) + ": its numbers are not those of a key");
  return {};
}

}  // namespace

Result<Key> Key::generate() {
  const OpenSslErrors errors;
  KeyOwner key(::EVP_PKEY_Q_keygen(nullptr, nullptr, "EC", "P-256"));
  if (!key) return openssl_failed(ErrorCode::Internal, "making a key");
  return Key(std::move(key), true);
}

Result<Key> Key::from_pem(std::string_view private_pem) {
  const OpenSslErrors errors;
  const auto block = only_block(private_pem, kReadingPrivate, "PRIVATE KEY", is_private_key);
  if (!block) return fail(Error(block.error()));
  if (block->contains("ENCRYPTED PRIVATE KEY") || block->contains(",ENCRYPTED"))
    return fail(ErrorCode::InvalidArgument,
                std::string(kReadingPrivate) +
                    ": it has a passphrase; muster reads keys without one, from files of mode 600");
  const BioOwner bio = bio_of(*block);
  KeyOwner key(bio ? ::PEM_read_bio_PrivateKey(bio.get(), nullptr, no_passphrase, nullptr)
                   : nullptr);
  if (!key)
    return openssl_failed(ErrorCode::InvalidArgument,
                          std::string(kReadingPrivate) + ": it does not decode");
  if (auto sound = check_p256(key.get(), kReadingPrivate, ::EVP_PKEY_check); !sound)
    return fail(std::move(sound.error()));
  return Key(std::move(key), true);
}

Result<Key> Key::from_public_pem(std::string_view public_pem) {
  const OpenSslErrors errors;
  const auto block = only_block(public_pem, kReadingPublic, "PUBLIC KEY",
                                [](const PemBlock& found) { return found.label == "PUBLIC KEY"; });
  if (!block) return fail(Error(block.error()));
  const BioOwner bio = bio_of(*block);
  KeyOwner key(bio ? ::PEM_read_bio_PUBKEY(bio.get(), nullptr, no_passphrase, nullptr) : nullptr);
  if (!key)
    return openssl_failed(ErrorCode::InvalidArgument,
                          std::string(kReadingPublic) + ": it does not decode");
  if (auto sound = check_p256(key.get(), kReadingPublic, ::EVP_PKEY_public_check); !sound)
    return fail(std::move(sound.error()));
  return Key(std::move(key), false);
}

Result<Key> Key::from_public_der(std::string_view public_der) {
  const OpenSslErrors errors;
  if (public_der.size() > kKeyPemBytesMax)
    return fail(ErrorCode::InvalidArgument, std::string(kReadingPublic) + ": more than " +
                                                std::to_string(kKeyPemBytesMax) + " bytes");
  const auto* next = reinterpret_cast<const unsigned char*>(public_der.data());
  const unsigned char* const end = next + public_der.size();
  KeyOwner key(::d2i_PUBKEY(nullptr, &next, static_cast<long>(public_der.size())));
  if (!key)
    return openssl_failed(ErrorCode::InvalidArgument,
                          std::string(kReadingPublic) + ": it does not decode");
  if (next != end)
    return fail(ErrorCode::InvalidArgument,
                std::string(kReadingPublic) + ": there are bytes behind it");
  if (auto sound = check_p256(key.get(), kReadingPublic, ::EVP_PKEY_public_check); !sound)
    return fail(std::move(sound.error()));
  return Key(std::move(key), false);
}

Result<std::string> Key::private_pem() const {
  if (!is_pair_)
    return fail(ErrorCode::InvalidArgument, "writing the private key: this is a public key alone");
  const OpenSslErrors errors;
  const BioOwner bio = empty_bio();
  if (!bio ||
      ::PEM_write_bio_PrivateKey(bio.get(), key_.get(), nullptr, nullptr, 0, nullptr, nullptr) != 1)
    return openssl_failed(ErrorCode::Internal, "writing the private key");
  return text_in(bio.get());
}

Result<std::string> Key::public_pem() const {
  const OpenSslErrors errors;
  const BioOwner bio = empty_bio();
  if (!bio || ::PEM_write_bio_PUBKEY(bio.get(), key_.get()) != 1)
    return openssl_failed(ErrorCode::Internal, "writing the public key");
  return text_in(bio.get());
}

Result<std::string> Key::public_der() const {
  const OpenSslErrors errors;
  const BioOwner bio = empty_bio();
  if (!bio || ::i2d_PUBKEY_bio(bio.get(), key_.get()) != 1)
    return openssl_failed(ErrorCode::Internal, "writing the public key");
  return text_in(bio.get());
}

std::string Key::public_digest() const {
  const auto der = public_der();
  return der ? sha256_hex(*der) : std::string();
}

}  // namespace muster::pki
