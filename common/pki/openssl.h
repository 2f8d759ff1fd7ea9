// Owners of libcrypto's objects, texts in and out of its BIOs, and its errors as ours. For
// common/pki and common/enrol. Any thread: libcrypto keeps one queue of errors for each thread.
#pragma once

#include <openssl/types.h>

#include <memory>
#include <string>
#include <string_view>

#include "common/base/error.h"

namespace muster::pki {

struct OpenSslFree {
  void operator()(BIO* bio) const;
  void operator()(EVP_PKEY* key) const;
  void operator()(X509* certificate) const;
  void operator()(BIGNUM* number) const;
};
using BioOwner = std::unique_ptr<BIO, OpenSslFree>;
using KeyOwner = std::unique_ptr<EVP_PKEY, OpenSslFree>;
using CertificateOwner = std::unique_ptr<X509, OpenSslFree>;
using NumberOwner = std::unique_ptr<BIGNUM, OpenSslFree>;

// Empties the thread's queue of errors at its end. Whoever calls libcrypto has one: TLS on the same
// thread would take what is left in the queue as its own error.
struct OpenSslErrors {
  OpenSslErrors() = default;
  OpenSslErrors(const OpenSslErrors&) = delete;
  OpenSslErrors& operator=(const OpenSslErrors&) = delete;
  ~OpenSslErrors();
};

// "doing: reason". The reason is a fixed text of libcrypto and never has input in it.
std::unexpected<Error> openssl_failed(ErrorCode code, std::string_view doing);

// The bytes must outlive the owner. Null if there is no memory.
BioOwner bio_of(std::string_view bytes);
BioOwner empty_bio();
std::string text_in(BIO* bio);

}  // namespace muster::pki
