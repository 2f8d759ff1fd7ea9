#include "common/digest/sha256.h"

#include <openssl/evp.h>

#include <array>

#include "common/digest/hex.h"

namespace muster {

std::string sha256_hex(std::string_view bytes) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  if (::EVP_Digest(bytes.data(), bytes.size(), digest.data(), &size, ::EVP_sha256(), nullptr) != 1)
    return {};
  return hex_of({digest.data(), size});
}

}  // namespace muster
