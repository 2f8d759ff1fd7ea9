#include "common/digest/sha256.h"

#include <openssl/evp.h>

#include <array>

namespace muster {

std::string sha256_hex(std::string_view bytes) {
  static constexpr std::string_view kDigits = "0123456789abcdef";
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  if (::EVP_Digest(bytes.data(), bytes.size(), digest.data(), &size, ::EVP_sha256(), nullptr) != 1)
    return {};
  std::string hex;
  for (unsigned i = 0; i < size; ++i) {
    hex += kDigits[digest.at(i) >> 4U];
    hex += kDigits[digest.at(i) & 15U];
  }
  return hex;
}

}  // namespace muster
