#include "common/enrol/proof.h"

#include <openssl/ssl.h>

#include "common/digest/sha256.h"
#include "common/pki/openssl.h"

namespace muster::enrol {
namespace {

constexpr std::string_view kLabel = "EXPORTER-muster-enrol";
constexpr std::string_view kProofBegin = "muster-enrol-1\n";

}  // namespace

Result<std::string> binding_of(SSL* connection) {
  const pki::OpenSslErrors errors;
  std::string binding(kBindingBytes, '\0');
  if (::SSL_export_keying_material(connection, reinterpret_cast<unsigned char*>(binding.data()),
                                   binding.size(), kLabel.data(), kLabel.size(), nullptr, 0,
                                   0) != 1)
    return pki::openssl_failed(ErrorCode::Internal, "exporting from the TLS connection");
  return binding;
}

std::string proof_text(Purpose purpose, std::string_view binding, std::string_view public_key,
                       std::string_view name) {
  std::string text(kProofBegin);
  switch (purpose) {
    case Purpose::Join: text += "join\n"; break;
    case Purpose::Renew: text += "renew\n"; break;
    case Purpose::Login: text += "login\n"; break;
  }
  text += binding;
  text += sha256_hex(public_key);
  text += name;
  return text;
}

}  // namespace muster::enrol
