// The TLS settings of both ends of the enrolment port: 1.3 only, no resumption, no early data, no
// compression. Makers of libssl's contexts; any thread. A context may be used by many connections
// of one thread.
//
// The controller shows its own certificate and that of its CA, and asks for none. The client
// accepts a controller by the digest of the CA alone: that is all that a token has of it. It does
// not check times, because a new machine's clock may be wrong: the controller's time is in its
// answer, and whoever asks checks the certificate that it gets. It offers gRPC's protocol, so that
// a port of gRPC shows what it is; the enrolment port chooses none.
#pragma once

#include <openssl/types.h>

#include <memory>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "common/pki/credentials.h"

namespace muster::enrol {

struct TlsFree {
  void operator()(SSL_CTX* context) const;
  void operator()(SSL* connection) const;
};
using TlsContext = std::unique_ptr<SSL_CTX, TlsFree>;
using TlsConnection = std::unique_ptr<SSL, TlsFree>;

// Errors: InvalidArgument, Internal.
Result<TlsContext> server_context(const pki::Credentials& own);

// Which controllers a client accepts: those with a certificate of a CA of one of these digests
// (Certificate::digest). The check writes why a handshake failed to `refused`.
struct TrustedCas {
  std::vector<std::string> digests;
  std::string refused;
};
// `trusted` must outlive the connections.
Result<TlsContext> client_context(TrustedCas& trusted);

}  // namespace muster::enrol
