// Signatures by keys of P-256: ECDSA with SHA-256, as DER (RFC 3279 2.2.3). Stateless functions;
// any thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "common/base/error.h"
#include "common/pki/key.h"

namespace muster::pki {

inline constexpr std::size_t kSignatureBytesMost = 72;  // of a P-256 signature in DER

// Internal if `key` is a public key alone.
Result<std::string> sign(const Key& key, std::string_view text);
// Whether the private half of `key` made this signature of exactly this text.
bool is_signature(const Key& key, std::string_view text, std::string_view signature);

}  // namespace muster::pki
