#include "common/rpc/tls_port.h"

#include <grpc/grpc_security_constants.h>
#include <grpcpp/security/auth_context.h>

#include <string>
#include <utility>

#include "common/pki/certificate.h"
#include "common/rpc/status.h"

namespace muster::rpc {
namespace {

// In gRPC's source, and in none of its headers.
constexpr std::string_view kInsecure = "insecure";

// Empty: the connection has none of this name, or several.
std::string_view property(const grpc::AuthContext& context, const char* name) {
  const auto values = context.FindPropertyValues(name);
  return values.size() == 1 ? std::string_view(values.front().data(), values.front().size())
                            : std::string_view();
}

Result<pki::Certificate> certificate_of(const grpc::AuthContext& context) {
  return pki::Certificate::from_pem(property(context, GRPC_X509_PEM_CERT_PROPERTY_NAME));
}

class Checker {
 public:
  Checker(std::string cluster, const Clock& clock, CallChecks checks)
      : cluster_(std::move(cluster)), clock_(clock), checks_(std::move(checks)) {}

  grpc::Status operator()(ConnectionId connection, std::string_view pem,
                          std::string_view method) const {
    const auto allowed = check(connection, pem, method);
    if (allowed) return grpc::Status::OK;
    if (checks_.on_refused) checks_.on_refused(allowed.error());
    return to_refusal(allowed.error());
  }

 private:
  Result<void> check(ConnectionId connection, std::string_view pem, std::string_view method) const {
    constexpr std::string_view kDoing = "calling the controller";
    const auto certificate = pki::Certificate::from_pem(pem);
    if (!certificate) return fail(Error(certificate.error()).in(std::string(kDoing)));
    const auto identity = certificate->identity();
    if (!identity) return fail(Error(identity.error()).in(std::string(kDoing)));
    if (identity->cluster != cluster_)
      return fail(ErrorCode::NotAllowed, std::string(kDoing) + ": the certificate is of cluster '" +
                                             identity->cluster + "', this is '" + cluster_ + "'");
    // The sentence is the same at every call, so that it is logged once.
    const std::string fault = pki::time_fault(*identity, certificate->not_before(),
                                              certificate->not_after(), clock_.now().wall);
    if (!fault.empty())
      return fail(ErrorCode::NotAllowed,
                  std::string(kDoing) + ": " + fault + ", by the controller's clock");
    if (checks_.not_revoked) {
      if (auto counts = checks_.not_revoked(*identity, *certificate); !counts)
        return fail(std::move(counts.error()).in(std::string(kDoing)));
    }
    if (auto may = checks_.may_call(*identity, method); !may) return may;
    return checks_.begins ? checks_.begins(connection, *identity) : Result<void>();
  }

  std::string cluster_;
  const Clock& clock_;
  CallChecks checks_;
};

}  // namespace

std::shared_ptr<grpc::ServerCredentials> tls_credentials(std::shared_ptr<LiveTls> tls,
                                                         const Clock& clock, CallChecks checks) {
  const std::string cluster = tls->present().own.identity.cluster;
  return live_credentials(std::move(tls), Checker(cluster, clock, std::move(checks)));
}

std::shared_ptr<grpc::ServerCredentials> tls_credentials(const pki::Credentials& own,
                                                         const Clock& clock, CallChecks checks) {
  return tls_credentials(std::make_shared<LiveTls>(own), clock, std::move(checks));
}

Caller caller_of(const grpc::ServerContextBase& context) {
  const auto auth = context.auth_context();
  if (auth == nullptr) return {};
  const std::string_view transport = property(*auth, GRPC_TRANSPORT_SECURITY_TYPE_PROPERTY_NAME);
  if (transport == kInsecure)
    return {.is_owner = true, .identity = {}, .key = {}, .not_before = {}, .certificate = {}};
  if (transport != GRPC_SSL_TRANSPORT_SECURITY_TYPE) return {};
  const auto certificate = certificate_of(*auth);
  auto identity = certificate ? certificate->identity()
                              : Result<pki::Identity>(fail(Error(certificate.error())));
  return identity ? Caller{.is_owner = false,
                           .identity = std::move(*identity),
                           .key = certificate->public_digest(),
                           .not_before = certificate->not_before(),
                           .certificate = certificate->pem()}
                  : Caller{};
}

Result<void> speaks_for(const Caller& caller, const NodeName& node, std::string_view doing) {
  if (caller.is_owner || (caller.identity && caller.identity->role == pki::Role::Node &&
                          caller.identity->name == node.str()))
    return {};
  return fail(ErrorCode::NotAllowed,
              std::string(doing) + ": the certificate is of " +
                  (caller.identity ? pki::text_of(*caller.identity) : "nobody") +
                  "; a node speaks only for itself (--name, --credentials)");
}

grpc::Status to_refusal(const Error& error) {
  const grpc::Status status = to_status(error);
  return status.error_code() == grpc::StatusCode::UNIMPLEMENTED ||
                 status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED
             ? status
             : grpc::Status(grpc::StatusCode::UNAUTHENTICATED, status.error_message());
}

}  // namespace muster::rpc
