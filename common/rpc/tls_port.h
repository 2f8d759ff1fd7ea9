// The server's side of TLS: credentials of a TCP port, and who calls. The controller's server owns
// the credentials. The check of a call runs on gRPC's threads.
//
// Each connection must show a certificate of the cluster's own CA (common/pki). The check of a call
// sees its method and the caller's identity before anything else of it is read: an unfinished
// request of somebody who may not make it stays in nobody's memory.
//
// A certificate is checked again for its time at every call: gRPC checks it at a handshake only,
// and not at all where TLS goes on with an earlier session. A call that is open lives on when the
// certificate of its connection ends.
#pragma once

#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/error.h"
#include "common/base/ids.h"
#include "common/base/time.h"
#include "common/pki/certificate.h"
#include "common/pki/credentials.h"
#include "common/pki/identity.h"
#include "common/rpc/live_tls.h"

namespace muster::rpc {

struct CallChecks {
  // May this caller call this method ("/muster.v1.JobService/GetJob")? The error is the answer:
  // Unsupported for a method that does not exist.
  std::function<Result<void>(const pki::Identity&, std::string_view method)> may_call;
  // The caller may, and the call begins. The error is the answer, ResourceExhausted for one who may
  // try again. Empty: it does. It is asked last.
  std::function<Result<void>(ConnectionId, const pki::Identity&)> begins = {};
  // Does the certificate still count? Its time is checked already. Empty: it does.
  std::function<Result<void>(const pki::Identity&, const pki::Certificate&)> not_revoked = {};
  // Each call that was refused, with the answer. Empty: nobody is interested.
  std::function<void(const Error&)> on_refused;
};

// For ServerBuilder::AddListeningPort. Every service of the server is behind the checks, health and
// reflection as well. The checks must be quick. They run on many threads.
std::shared_ptr<grpc::ServerCredentials> tls_credentials(std::shared_ptr<LiveTls> tls,
                                                         const Clock& clock, CallChecks checks);
std::shared_ptr<grpc::ServerCredentials> tls_credentials(const pki::Credentials& own,
                                                         const Clock& clock, CallChecks checks);

// Who makes a call: the user who runs the controller (over its unix socket), somebody with a
// certificate, or, if both are empty, nobody who may do anything.
struct Caller {
  bool is_owner = false;
  std::optional<pki::Identity> identity;
  // Of the certificate, with an identity: SHA-256 of its public key (hex), its first moment, and
  // itself as PEM.
  std::string key = {};
  WallTime not_before{};
  std::string certificate = {};
};
Caller caller_of(const grpc::ServerContextBase& context);

// NotAllowed unless the caller may speak for this node: it has the node's certificate, or is the
// owner. `doing` begins the sentence.
Result<void> speaks_for(const Caller& caller, const NodeName& node, std::string_view doing);

// The status of such a refusal. PERMISSION_DENIED is not used: an agent takes it as the answer of
// another cluster's controller.
grpc::Status to_refusal(const Error& error);

}  // namespace muster::rpc
