#include "common/pki/openssl.h"

#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/x509.h>

namespace muster::pki {

void OpenSslFree::operator()(BIO* bio) const { ::BIO_free(bio); }
void OpenSslFree::operator()(EVP_PKEY* key) const { ::EVP_PKEY_free(key); }
void OpenSslFree::operator()(X509* certificate) const { ::X509_free(certificate); }
void OpenSslFree::operator()(BIGNUM* number) const { ::BN_free(number); }

OpenSslErrors::~OpenSslErrors() { ::ERR_clear_error(); }

std::unexpected<Error> openssl_failed(ErrorCode code, std::string_view doing) {
  const char* reason = ::ERR_reason_error_string(::ERR_peek_last_error());
  return fail(code,
              std::string(doing) + ": " + (reason != nullptr ? reason : "libcrypto cannot do it"));
}

BioOwner bio_of(std::string_view bytes) {
  return BioOwner(::BIO_new_mem_buf(bytes.data(), static_cast<int>(bytes.size())));
}

BioOwner empty_bio() { return BioOwner(::BIO_new(::BIO_s_mem())); }

std::string text_in(BIO* bio) {
  char* data = nullptr;
  const long size = ::BIO_ctrl(bio, BIO_CTRL_INFO, 0, static_cast<void*>(&data));
  return data != nullptr && size > 0 ? std::string(data, static_cast<std::size_t>(size))
                                     : std::string();
}

}  // namespace muster::pki
