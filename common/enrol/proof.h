// Proof that whoever asks at the enrolment port has the private keys that it names. Pure; any
// thread.
//
// A proof is a signature (common/pki/signature.h) of these bytes, without separators but the line
// ends that are shown:
//
//   "muster-enrol-1\n"
//   "join\n", "renew\n" or "login\n"
//   32 bytes that this TLS connection alone has: RFC 8446 7.5 (RFC 5705), label
//     "EXPORTER-muster-enrol", no context
//   SHA-256 of the new public key (DER SubjectPublicKeyInfo), 64 hex digits
//   the node's name; of a login: the id of the token
//
// So a recorded proof has no value on another connection, nor for another key, name or purpose.
#pragma once

#include <openssl/types.h>

#include <cstddef>
#include <string>
#include <string_view>

#include "common/base/error.h"

namespace muster::enrol {

enum class Purpose { Join, Renew, Login };

inline constexpr std::size_t kBindingBytes = 32;

// The bytes that the TLS connection alone has, the same at both ends. Call it after the handshake.
Result<std::string> binding_of(SSL* connection);

[[nodiscard]] std::string proof_text(Purpose purpose, std::string_view binding,
                                     std::string_view public_key, std::string_view name);

}  // namespace muster::enrol
