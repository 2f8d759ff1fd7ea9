// Key owns an ECDSA key on P-256: a pair, or a public key alone. It is the only kind of key that
// muster makes and accepts. A const Key may be read on any thread.
//
// Keys are read and written as PEM, public ones also as DER. No error has bytes of a key.
#pragma once

#include <string>
#include <string_view>

#include "common/base/error.h"
#include "common/pki/openssl.h"

namespace muster::pki {

class Key {
 public:
  static Result<Key> generate();
  // One private key, without a passphrase. Errors: InvalidArgument.
  static Result<Key> from_pem(std::string_view private_pem);
  // One public key. Errors: InvalidArgument; for another kind of key, the text names the kind.
  static Result<Key> from_public_pem(std::string_view public_pem);

  // One public key, as DER (SubjectPublicKeyInfo, RFC 5280 4.1.2.7), and nothing behind it. Errors
  // as above.
  static Result<Key> from_public_der(std::string_view public_der);

  // InvalidArgument if this is a public key alone.
  [[nodiscard]] Result<std::string> private_pem() const;
  [[nodiscard]] Result<std::string> public_pem() const;
  [[nodiscard]] Result<std::string> public_der() const;
  // SHA-256 of the SubjectPublicKeyInfo, in hex.
  [[nodiscard]] std::string public_digest() const;

  // Stays owned by the key. libcrypto's functions have no const: callers only read.
  [[nodiscard]] EVP_PKEY* get() const { return key_.get(); }

 private:
  Key(KeyOwner key, bool is_pair) : key_(std::move(key)), is_pair_(is_pair) {}

  KeyOwner key_;
  bool is_pair_;
};

}  // namespace muster::pki
