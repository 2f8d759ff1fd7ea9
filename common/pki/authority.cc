#include "common/pki/authority.h"

#include <openssl/asn1.h>
#include <openssl/bn.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <memory>
#include <vector>

#include "common/pki/pem.h"
#include "common/pki/printable.h"

namespace muster::pki {
namespace {

constexpr std::string_view kCaNameBegin = "muster ";
constexpr std::size_t kCommonNameMost = 64;  // X.520 ub-common-name
constexpr Duration kCaLifetime = std::chrono::years(20);
constexpr int kSerialBits = 128;

struct ExtensionFree {
  void operator()(X509_EXTENSION* extension) const { ::X509_EXTENSION_free(extension); }
};

struct Extension {
  int nid;
  std::string
      value;  // in the words of x509v3_config(5); nothing in it comes from outside unchecked
};

struct Contents {
  std::string common_name;
  WallTime not_before;
  WallTime not_after;
  std::vector<Extension> extensions;
};

bool set_serial(X509* certificate) {
  const NumberOwner number(::BN_new());
  return number && ::BN_rand(number.get(), kSerialBits, BN_RAND_TOP_ONE, BN_RAND_BOTTOM_ANY) == 1 &&
         ::BN_to_ASN1_INTEGER(number.get(), ::X509_get_serialNumber(certificate)) != nullptr;
}

bool set_time(ASN1_TIME* field, WallTime time) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(time);
  return ::ASN1_TIME_set(field, seconds.time_since_epoch().count()) != nullptr;
}

bool set_common_name(X509* certificate, const std::string& name) {
  return ::X509_NAME_add_entry_by_NID(::X509_get_subject_name(certificate), NID_commonName,
                                      MBSTRING_UTF8,
                                      reinterpret_cast<const unsigned char*>(name.data()),
                                      static_cast<int>(name.size()), -1, 0) == 1;
}

bool add_extension(X509* certificate, X509* issuer, const Extension& extension) {
  X509V3_CTX context{};
  ::X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const std::unique_ptr<X509_EXTENSION, ExtensionFree> made(
      ::X509V3_EXT_conf_nid(nullptr, &context, extension.nid, extension.value.c_str()));
  return made && ::X509_add_ext(certificate, made.get(), -1) == 1;
}

// Without an issuer, the certificate is its own. The result is read anew from its bytes.
Result<Certificate> sign(const Contents& contents, const Key& subject, const Key& signer,
                         const Certificate* issuer) {
  const OpenSslErrors errors;
  const CertificateOwner made(::X509_new());
  X509* x509 = made.get();
  bool done = made && ::X509_set_version(x509, X509_VERSION_3) == 1 && set_serial(x509) &&
              set_time(::X509_getm_notBefore(x509), contents.not_before) &&
              set_time(::X509_getm_notAfter(x509), contents.not_after) &&
              set_common_name(x509, contents.common_name) &&
              ::X509_set_pubkey(x509, subject.get()) == 1;
  X509* by = issuer == nullptr ? x509 : issuer->get();
  done = done && ::X509_set_issuer_name(x509, ::X509_get_subject_name(by)) == 1;
  for (const Extension& extension : contents.extensions)
    done = done && add_extension(x509, by, extension);
  const BioOwner bio = empty_bio();
  if (!done || !bio || ::X509_sign(x509, signer.get(), ::EVP_sha256()) <= 0 ||
      ::PEM_write_bio_X509(bio.get(), x509) != 1)
    return openssl_failed(ErrorCode::Internal, "signing the certificate");
  return Certificate::from_pem(text_in(bio.get()));
}

// A long name is cut: the URI has all of it.
std::string common_name_of(const Identity& identity) {
  switch (identity.role) {
    case Role::Controller: return "controller";
    case Role::Node: return ("node " + identity.name).substr(0, kCommonNameMost);
    case Role::User: return ("user " + identity.name).substr(0, kCommonNameMost);
  }
  return {};
}

std::vector<Extension> extensions_for(const Identity& identity) {
  const bool server = identity.role == Role::Controller;
  std::string names = "URI:" + uri_of(identity);
  if (server) names += ",DNS:" + controller_host(identity.cluster);
  return {{NID_basic_constraints, "critical,CA:FALSE"},
          {NID_key_usage, "critical,digitalSignature"},
          {NID_ext_key_usage, server ? "serverAuth" : "clientAuth"},
          {NID_subject_key_identifier, "hash"},
          {NID_authority_key_identifier, "keyid:always"},
          {NID_subject_alt_name, names}};
}

}  // namespace

Result<Authority> Authority::make(std::string_view cluster, WallTime now) {
  auto key = Key::generate();
  if (!key) return fail(std::move(key.error()));
  return make(std::move(*key), cluster, now);
}

Result<Authority> Authority::make(Key key, std::string_view cluster, WallTime now) {
  const std::string name = std::string(kCaNameBegin) + std::string(cluster);
  if (!is_cluster_id(cluster) || name.size() > kCommonNameMost)
    return fail(ErrorCode::InvalidArgument,
                "making a CA for cluster '" + printable(cluster) +
                    "': a cluster id of a CA has 1 to " +
                    std::to_string(kCommonNameMost - kCaNameBegin.size()) + " of a-z and 0-9");
  auto certificate = sign({.common_name = name,
                           .not_before = now - kClockDifference,
                           .not_after = now + kCaLifetime,
                           .extensions = {{NID_basic_constraints, "critical,CA:TRUE,pathlen:0"},
                                          {NID_key_usage, "critical,keyCertSign,cRLSign"},
                                          {NID_subject_key_identifier, "hash"}}},
                          key, key, nullptr);
  if (!certificate)
    return fail(std::move(certificate.error())
                    .in("making a CA for cluster '" + std::string(cluster) + "'"));
  return Authority(std::string(cluster), std::move(key), std::move(*certificate));
}

Result<Authority> Authority::load(std::string_view ca_pem, std::string_view key_pem) {
  const OpenSslErrors errors;
  auto certificate = Certificate::from_pem(ca_pem);
  if (!certificate) return fail(std::move(certificate.error()));
  auto key = Key::from_pem(key_pem);
  if (!key) return fail(std::move(key.error()));
  const std::string& name = certificate->common_name();
  const std::string doing = "reading the CA's certificate '" + printable(name) + "'";
  if (!certificate->is_ca())
    return fail(ErrorCode::InvalidArgument, doing + ": it is not the certificate of a CA");
  const std::string cluster =
      name.starts_with(kCaNameBegin) ? name.substr(kCaNameBegin.size()) : std::string();
  if (!is_cluster_id(cluster))
    return fail(ErrorCode::InvalidArgument, doing + ": the CA of a cluster has the name '" +
                                                std::string(kCaNameBegin) + "CLUSTER'");
  if (::X509_check_private_key(certificate->get(), key->get()) != 1)
    return fail(ErrorCode::InvalidArgument, doing + ": the private key is that of another one");
  return Authority(cluster, std::move(*key), std::move(*certificate));
}

Result<Authority> Authority::adopt(std::string_view ca_pem, std::string_view key_pem,
                                   std::string_view cluster) {
  const OpenSslErrors errors;
  auto certificate = Certificate::from_pem(ca_pem);
  if (!certificate) return fail(std::move(certificate.error()));
  const std::string doing =
      "reading the CA's certificate '" + printable(certificate->common_name()) + "'";
  const auto unfit = [&](std::string_view why) {
    return fail(ErrorCode::InvalidArgument, doing + ": " + std::string(why));
  };
  if (!certificate->is_ca()) return unfit("it is not the certificate of a CA (basicConstraints)");
  X509* x509 = certificate->get();
  const bool has_usage = (::X509_get_extension_flags(x509) & EXFLAG_KUSAGE) != 0;
  if (!has_usage || (::X509_get_key_usage(x509) & KU_KEY_CERT_SIGN) == 0)
    return unfit("it may not sign certificates (keyUsage must have keyCertSign)");
  if (::X509_get0_subject_key_id(x509) == nullptr)
    return unfit("it has no subjectKeyIdentifier, by which its certificates name it");
  const auto blocks = pem_blocks(key_pem);
  if (!blocks) return fail(Error(blocks.error()).in("reading the private key"));
  const bool with_parameters = blocks->size() == 2 && blocks->front().label == "EC PARAMETERS";
  auto key = Key::from_pem(with_parameters ? blocks->back().text : key_pem);
  if (!key) return fail(std::move(key.error()));
  if (::X509_check_private_key(x509, key->get()) != 1)
    return unfit("the private key is that of another one");
  return Authority(std::string(cluster), std::move(*key), std::move(*certificate));
}

Result<Certificate> Authority::issue(const Key& key, const Identity& identity, WallTime now,
                                     Duration lifetime) const {
  const auto sound = parse_identity(uri_of(identity));
  if (!sound) return fail(Error(sound.error()));
  if (*sound != identity)
    return fail(ErrorCode::InvalidArgument, "the controller has no name of its own");
  if (identity.cluster != cluster_)
    return fail(ErrorCode::NotAllowed, "it is of cluster '" + identity.cluster +
                                           "', and this is the CA of cluster '" + cluster_ + "'");
  if (lifetime <= Duration::zero())
    return fail(ErrorCode::InvalidArgument, "its lifetime must be more than 0");
  const WallTime ca_end = certificate_.not_after();
  if (now < certificate_.not_before() || now >= ca_end)
    return fail(ErrorCode::NotAllowed, "the CA's certificate is valid from " +
                                           utc_text(certificate_.not_before()) + " to " +
                                           utc_text(ca_end) + ", and this machine's clock says " +
                                           utc_text(now) + ": set the clock, if it is wrong");
  return sign({.common_name = common_name_of(identity),
               .not_before = now - kClockDifference,
               .not_after = lifetime < ca_end - now ? now + lifetime : ca_end,
               .extensions = extensions_for(identity)},
              key, key_, &certificate_);
}

}  // namespace muster::pki
