// The TLS settings of both ends of the enrolment port: 1.3 only, no resumption, no early data, no
// compression. Makers of libssl's contexts; any thread. A context may be used by many connections
// of one thread.
//
// The controller shows its own certificate and that of its CA, and asks for none. While the CA is
// changed it has two certificates, and the client names the CA that it wants in the extension
// server_name (RFC 6066): "ca-" and the first 40 hex digits of the digest. The client
// accepts a controller by the digest of the CA alone: that is all that a token has of it. It does
// not check times, because a new machine's clock may be wrong: the controller's time is in its
// answer, and whoever asks checks the certificate that it gets. It offers gRPC's protocol, so that
// a port of gRPC shows what it is; the enrolment port chooses none.
#pragma once

#include <openssl/types.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
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

// The controller's end, with one certificate or several. The first is for clients that want none of
// the others, or do not say. It outlives the connections that are made of it.
class ServerTls {
 public:
  // At least one. Errors: those of server_context().
  static Result<std::unique_ptr<ServerTls>> make(const std::vector<pki::Credentials>& own);
  [[nodiscard]] SSL_CTX* get() const { return contexts_.front().second.get(); }
  // Nullptr: none of this name.
  [[nodiscard]] SSL_CTX* of(std::string_view server_name) const;

 private:
  ServerTls() = default;
  std::vector<std::pair<std::string, TlsContext>> contexts_;  // by the name of the CA
};
[[nodiscard]] std::string server_name_of(std::string_view ca_digest);
// False: libssl has no memory.
bool ask_for(SSL* connection, std::string_view ca_digest);

// Which controllers a client accepts: those with a certificate of a CA of one of these digests
// (Certificate::digest). The first is the one that the client asks for. The check writes why a
// handshake failed to `refused`.
struct TrustedCas {
  std::vector<std::string> digests;
  std::string refused;
};
// `trusted` must outlive the connections.
Result<TlsContext> client_context(TrustedCas& trusted);

}  // namespace muster::enrol
