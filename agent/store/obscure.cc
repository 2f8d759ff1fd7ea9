#include "agent/store/obscure.h"

#include <openssl/evp.h>
#include <openssl/rand.h>

#include <algorithm>
#include <array>
#include <memory>

namespace muster::agent {
namespace {

constexpr std::size_t kBlock = 16;
constexpr std::array<unsigned char, 32> kKnownKey = {
    0x9c, 0x93, 0x5b, 0x48, 0x73, 0x0a, 0x55, 0x4d, 0x6b, 0xfd, 0x7c, 0x63, 0xc8, 0x86, 0xa9, 0x2b,
    0xd3, 0x90, 0x19, 0x8e, 0xb8, 0x12, 0x8a, 0xfb, 0xf4, 0xde, 0x16, 0x2b, 0x8b, 0x95, 0xf6, 0x38};

struct CipherFree {
  void operator()(EVP_CIPHER_CTX* context) const { ::EVP_CIPHER_CTX_free(context); }
};

unsigned char* bytes_of(std::string& text, std::size_t at = 0) {
  return reinterpret_cast<unsigned char*>(text.data() + at);
}

std::string for_url(const std::string& bytes) {
  std::string text(4 * ((bytes.size() + 2) / 3) + 1, '\0');
  const int size =
      ::EVP_EncodeBlock(bytes_of(text), reinterpret_cast<const unsigned char*>(bytes.data()),
                        static_cast<int>(bytes.size()));
  text.resize(static_cast<std::size_t>(size));
  while (text.ends_with('=')) text.pop_back();
  std::ranges::replace(text, '+', '-');
  std::ranges::replace(text, '/', '_');
  return text;
}

}  // namespace

Result<std::string> obscured(std::string_view password) {
  std::string bytes(kBlock + password.size(), '\0');
  if (::RAND_bytes(bytes_of(bytes), kBlock) != 1)
    return fail(ErrorCode::Io, "writing a password for rclone: no random bytes");
  const std::unique_ptr<EVP_CIPHER_CTX, CipherFree> cipher(::EVP_CIPHER_CTX_new());
  int size = 0;
  const bool done = cipher != nullptr &&
                    ::EVP_EncryptInit_ex(cipher.get(), ::EVP_aes_256_ctr(), nullptr,
                                         kKnownKey.data(), bytes_of(bytes)) == 1 &&
                    ::EVP_EncryptUpdate(cipher.get(), bytes_of(bytes, kBlock), &size,
                                        reinterpret_cast<const unsigned char*>(password.data()),
                                        static_cast<int>(password.size())) == 1 &&
                    static_cast<std::size_t>(size) == password.size();
  if (!done) return fail(ErrorCode::Internal, "writing a password for rclone: OpenSSL fails");
  return for_url(bytes);
}

}  // namespace muster::agent
