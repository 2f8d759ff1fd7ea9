#include "common/pki/signature.h"

#include <openssl/evp.h>

#include <memory>

namespace muster::pki {
namespace {

struct DigestContextFree {
  void operator()(EVP_MD_CTX* context) const { ::EVP_MD_CTX_free(context); }
};
using DigestContext = std::unique_ptr<EVP_MD_CTX, DigestContextFree>;

const unsigned char* octets(std::string_view bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}

}  // namespace

Result<std::string> sign(const Key& key, std::string_view text) {
  const OpenSslErrors errors;
  const DigestContext context(::EVP_MD_CTX_new());
  std::string signature(kSignatureBytesMost, '\0');
  std::size_t size = signature.size();
  if (!context ||
      ::EVP_DigestSignInit(context.get(), nullptr, ::EVP_sha256(), nullptr, key.get()) != 1 ||
      ::EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(signature.data()), &size,
                       octets(text), text.size()) != 1)
    return openssl_failed(ErrorCode::Internal, "signing");
  signature.resize(size);
  return signature;
}

bool is_signature(const Key& key, std::string_view text, std::string_view signature) {
  if (signature.size() > kSignatureBytesMost) return false;
  const OpenSslErrors errors;
  const DigestContext context(::EVP_MD_CTX_new());
  return context &&
         ::EVP_DigestVerifyInit(context.get(), nullptr, ::EVP_sha256(), nullptr, key.get()) == 1 &&
         ::EVP_DigestVerify(context.get(), octets(signature), signature.size(), octets(text),
                            text.size()) == 1;
}

}  // namespace muster::pki
