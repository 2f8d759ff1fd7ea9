#include "common/pki/sealed.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>

#include <climits>
#include <memory>

#include "common/pki/openssl.h"

namespace muster::pki {
namespace {

constexpr std::size_t kNonceBytes = 12, kTagBytes = 16;
constexpr std::string_view kDigits = "0123456789abcdef";

struct CipherFree {
  void operator()(EVP_CIPHER_CTX* context) const { ::EVP_CIPHER_CTX_free(context); }
};
using CipherOwner = std::unique_ptr<EVP_CIPHER_CTX, CipherFree>;

const unsigned char* bytes_of(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}
unsigned char* bytes_of(std::string& text) { return reinterpret_cast<unsigned char*>(text.data()); }

std::unexpected<Error> no_key() {
  return fail(ErrorCode::InvalidArgument, "reading the key: it is not 64 hex digits");
}

}  // namespace

SealingKey::~SealingKey() { ::OPENSSL_cleanse(key_.data(), key_.size()); }

Result<SealingKey> SealingKey::generate() {
  const OpenSslErrors errors;
  SealingKey key;
  if (::RAND_priv_bytes(key.key_.data(), static_cast<int>(key.key_.size())) != 1)
    return openssl_failed(ErrorCode::Io, "making a key");
  return key;
}

Result<SealingKey> SealingKey::from_hex(std::string_view hex) {
  if (hex.size() != 2 * kBytes) return no_key();
  SealingKey key;
  for (std::size_t i = 0; i < hex.size(); ++i) {
    const std::size_t digit = kDigits.find(hex[i]);
    if (digit == std::string_view::npos) return no_key();
    key.key_[i / 2] = static_cast<unsigned char>(key.key_[i / 2] << 4U | digit);
  }
  return key;
}

std::string SealingKey::hex() const {
  std::string text;
  for (const unsigned char byte : key_) {
    text.push_back(kDigits[byte >> 4U]);
    text.push_back(kDigits[byte & 0xfU]);
  }
  return text;
}

Result<std::string> SealingKey::seal(std::string_view bytes, std::string_view bound_to) const {
  const OpenSslErrors errors;
  if (bytes.size() > INT_MAX || bound_to.size() > INT_MAX)
    return fail(ErrorCode::InvalidArgument, "encrypting: too many bytes");
  std::string sealed(kNonceBytes + bytes.size() + kTagBytes, '\0');
  unsigned char* const nonce = bytes_of(sealed);
  unsigned char* const text = nonce + kNonceBytes;
  const CipherOwner cipher(::EVP_CIPHER_CTX_new());
  int size = 0;
  const bool done =
      ::RAND_bytes(nonce, kNonceBytes) == 1 && cipher &&
      ::EVP_EncryptInit_ex(cipher.get(), ::EVP_aes_256_gcm(), nullptr, key_.data(), nonce) == 1 &&
      ::EVP_EncryptUpdate(cipher.get(), nullptr, &size, bytes_of(bound_to),
                          static_cast<int>(bound_to.size())) == 1 &&
      ::EVP_EncryptUpdate(cipher.get(), text, &size, bytes_of(bytes),
                          static_cast<int>(bytes.size())) == 1 &&
      ::EVP_EncryptFinal_ex(cipher.get(), text + bytes.size(), &size) == 1 &&
      ::EVP_CIPHER_CTX_ctrl(cipher.get(), EVP_CTRL_AEAD_GET_TAG, kTagBytes, text + bytes.size()) ==
          1;
  if (!done) return openssl_failed(ErrorCode::Internal, "encrypting");
  return sealed;
}

Result<std::string> SealingKey::open(std::string_view sealed, std::string_view bound_to) const {
  const OpenSslErrors errors;
  const auto refused = [] {
    return fail(ErrorCode::DataLoss,
                "decrypting: it was encrypted with another key, or was changed since");
  };
  if (sealed.size() < kNonceBytes + kTagBytes || sealed.size() > INT_MAX) return refused();
  const std::string_view text = sealed.substr(kNonceBytes, sealed.size() - kNonceBytes - kTagBytes);
  std::string tag(sealed.substr(sealed.size() - kTagBytes));
  std::string bytes(text.size(), '\0');
  const CipherOwner cipher(::EVP_CIPHER_CTX_new());
  int size = 0;
  const bool done =
      cipher &&
      ::EVP_DecryptInit_ex(cipher.get(), ::EVP_aes_256_gcm(), nullptr, key_.data(),
                           bytes_of(sealed)) == 1 &&
      ::EVP_DecryptUpdate(cipher.get(), nullptr, &size, bytes_of(bound_to),
                          static_cast<int>(bound_to.size())) == 1 &&
      ::EVP_DecryptUpdate(cipher.get(), bytes_of(bytes), &size, bytes_of(text),
                          static_cast<int>(text.size())) == 1 &&
      ::EVP_CIPHER_CTX_ctrl(cipher.get(), EVP_CTRL_AEAD_SET_TAG, kTagBytes, bytes_of(tag)) == 1 &&
      ::EVP_DecryptFinal_ex(cipher.get(), bytes_of(tag), &size) == 1;
  if (done) return bytes;
  ::OPENSSL_cleanse(bytes.data(), bytes.size());
  return refused();
}

}  // namespace muster::pki
