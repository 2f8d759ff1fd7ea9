// Encrypts bytes with a key, so that nobody without the key reads or changes them: AES-256-GCM
// (NIST SP 800-38D) with a random nonce of 96 bits. Pure but for the kernel's random bytes; any
// thread. Private to those who keep secrets on a disk.
//
//   sealed   nonce (12 bytes), ciphertext (as long as the bytes), tag (16 bytes)
//
// With one key at most 2^32 texts may be sealed; with the secrets of a cluster that is never near.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/error.h"

namespace muster::pki {

class SealingKey {
 public:
  static constexpr std::size_t kBytes = 32;

  static Result<SealingKey> generate();
  // 64 hex digits in lower case. InvalidArgument; the text is not part of the error.
  static Result<SealingKey> from_hex(std::string_view hex);
  SealingKey(SealingKey&&) = default;
  SealingKey& operator=(SealingKey&&) = default;
  SealingKey(const SealingKey&) = delete;
  SealingKey& operator=(const SealingKey&) = delete;
  ~SealingKey();  // wipes it

  [[nodiscard]] std::string hex() const;

  // `bound_to` is not in the result, and open() needs the same: bytes that were sealed under one
  // name do not open under another one.
  [[nodiscard]] Result<std::string> seal(std::string_view bytes, std::string_view bound_to) const;
  // DataLoss: it was sealed with another key or under another name, or it was changed.
  [[nodiscard]] Result<std::string> open(std::string_view sealed, std::string_view bound_to) const;

 private:
  SealingKey() = default;
  std::array<unsigned char, kBytes> key_{};
};

}  // namespace muster::pki
