// What the tests of common/pki make: authorities and keys that are sound, and certificates and keys
// that no authority of muster would make. Functions without state; they throw where OpenSSL
// refuses.
#pragma once

#include <openssl/asn1.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "common/pki/authority.h"
#include "common/pki/credentials.h"

namespace muster::pki {

inline constexpr WallTime kNow =
    std::chrono::sys_days(std::chrono::year(2026) / 11 / 26) + std::chrono::hours(10);
inline constexpr Duration kDay = std::chrono::hours(24);
inline const Identity kController{.cluster = "c0ffee", .role = Role::Controller, .name = {}};
inline const Identity kNode{.cluster = "c0ffee", .role = Role::Node, .name = "n1"};
inline const Identity kUser{.cluster = "c0ffee", .role = Role::User, .name = "ann"};

template <class T>
T must(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message);
  return std::move(*result);
}
inline void must(bool done) {
  if (!done) throw std::runtime_error("OpenSSL refuses");
}

template <class T>
std::string refusal(const Result<T>& result) {
  return result ? "(not refused)" : result.error().message;
}

inline Certificate issued(const Authority& authority, const Identity& identity) {
  return must(authority.issue(must(Key::generate()), identity, kNow, 30 * kDay));
}

inline std::string credentials_of(const Authority& authority, const Identity& identity) {
  const Key key = must(Key::generate());
  return must(key.private_pem()) + must(authority.issue(key, identity, kNow, 30 * kDay)).pem() +
         authority.certificate().pem();
}

inline std::string public_pem_of(EVP_PKEY* key) {
  const BioOwner bio = empty_bio();
  must(::PEM_write_bio_PUBKEY(bio.get(), key) == 1);
  return text_in(bio.get());
}

// With a cipher, the key has a passphrase.
inline std::string private_pem_of(EVP_PKEY* key, const EVP_CIPHER* cipher = nullptr) {
  unsigned char passphrase[] = "secret";
  const BioOwner bio = empty_bio();
  must(::PEM_write_bio_PrivateKey(bio.get(), key, cipher, cipher == nullptr ? nullptr : passphrase,
                                  cipher == nullptr ? 0 : 6, nullptr, nullptr) == 1);
  return text_in(bio.get());
}

struct Forged {
  std::string common_name = "forged";  // empty: none
  std::vector<std::string> uris;       // may have any bytes
  std::string raw_names;               // bytes in place of the alternative names
  std::string basic_constraints = "critical,CA:FALSE";
  std::string not_after = "20270101000000Z";
  const Certificate* issuer = nullptr;  // whose name it has as its issuer; none: its own
};

inline void add(X509* certificate, X509_EXTENSION* extension) {
  must(extension != nullptr && ::X509_add_ext(certificate, extension, -1) == 1);
  ::X509_EXTENSION_free(extension);
}

inline void add_uris(X509* certificate, const std::vector<std::string>& uris) {
  GENERAL_NAMES* names = sk_GENERAL_NAME_new_null();
  for (const std::string& uri : uris) {
    ASN1_IA5STRING* text = ::ASN1_IA5STRING_new();
    must(::ASN1_STRING_set(text, uri.data(), static_cast<int>(uri.size())) == 1);
    GENERAL_NAME* name = ::GENERAL_NAME_new();
    ::GENERAL_NAME_set0_value(name, GEN_URI, text);
    must(sk_GENERAL_NAME_push(names, name) > 0);
  }
  add(certificate, ::X509V3_EXT_i2d(NID_subject_alt_name, 0, names));
  ::GENERAL_NAMES_free(names);
}

// Signed with the key that is in it.
inline std::string forged_pem(const Forged& forged, const Key& key) {
  const CertificateOwner owner(::X509_new());
  X509* certificate = owner.get();
  must(::X509_set_version(certificate, X509_VERSION_3) == 1);
  must(::ASN1_INTEGER_set(::X509_get_serialNumber(certificate), 7) == 1);
  must(::ASN1_TIME_set_string(::X509_getm_notBefore(certificate), "20260101000000Z") == 1);
  must(::ASN1_TIME_set_string(::X509_getm_notAfter(certificate), forged.not_after.c_str()) == 1);
  X509_NAME* subject = ::X509_get_subject_name(certificate);
  if (!forged.common_name.empty())
    must(::X509_NAME_add_entry_by_NID(
             subject, NID_commonName, MBSTRING_UTF8,
             reinterpret_cast<const unsigned char*>(forged.common_name.data()),
             static_cast<int>(forged.common_name.size()), -1, 0) == 1);
  must(::X509_set_issuer_name(certificate, forged.issuer == nullptr
                                               ? subject
                                               : ::X509_get_subject_name(forged.issuer->get())) ==
       1);
  must(::X509_set_pubkey(certificate, key.get()) == 1);
  X509V3_CTX context{};
  ::X509V3_set_ctx(&context, certificate, certificate, nullptr, nullptr, 0);
  add(certificate, ::X509V3_EXT_conf_nid(nullptr, &context, NID_basic_constraints,
                                         forged.basic_constraints.c_str()));
  if (!forged.uris.empty()) add_uris(certificate, forged.uris);
  if (!forged.raw_names.empty()) {
    ASN1_OCTET_STRING* bytes = ::ASN1_OCTET_STRING_new();
    must(::ASN1_STRING_set(bytes, forged.raw_names.data(),
                           static_cast<int>(forged.raw_names.size())) == 1);
    add(certificate, ::X509_EXTENSION_create_by_NID(nullptr, NID_subject_alt_name, 0, bytes));
    ::ASN1_OCTET_STRING_free(bytes);
  }
  must(::X509_sign(certificate, key.get(), ::EVP_sha256()) > 0);
  const BioOwner bio = empty_bio();
  must(::PEM_write_bio_X509(bio.get(), certificate) == 1);
  return text_in(bio.get());
}

inline std::string forged_pem(const Forged& forged) {
  return forged_pem(forged, must(Key::generate()));
}

}  // namespace muster::pki
