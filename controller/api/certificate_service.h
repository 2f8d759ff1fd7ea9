// CertificateService issues certificates for nodes and users, and makes the tokens by which nodes
// join and users log in; it lists both, and revokes them. Calls about the CA itself go to
// AuthorityChanges. run() in main.cc owns it. gRPC's threads call it; a signature takes a fraction
// of a millisecond, and is made there. The answers come from the shell's strand.
//
// Only callers over the unix socket get here (controller/access/call_rules.h), and admins who make
// a personal token. gRPC does not say which process is at the socket, so the actor of what they do
// is the user who runs the controller.
//
// A secret is made here, and leaves in the one answer. Only its SHA-256 is kept.
//
// While the controller pauses, nothing can be written down. A revocation of certificates counts all
// the same, in memory: streams end and calls are refused until the controller stops. Its answer is
// an error that says so. A token needs no such thing: nobody gets in with one meanwhile.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "common/base/time.h"
#include "common/rpc/tls_port.h"
#include "controller/access/authorities.h"
#include "controller/access/revocations.h"
#include "controller/api/authority_changes.h"
#include "controller/core/model/access_input.h"
#include "controller/core/model/access_records.h"
#include "controller/shell/shell.h"
#include "muster/v1/certificate_service.grpc.pb.h"

namespace muster::controller {

class CertificateService final : public v1::CertificateService::CallbackService {
 public:
  static constexpr std::size_t kPageBytes = 3 << 20;

  // All must outlive the service. Without an authority its error is the answer. `owner`: the name
  // of the user who runs the controller.
  CertificateService(Shell& shell, const Authorities& authority, const Clock& clock,
                     AuthorityChanges& changes, Revocations& revocations, std::string owner)
      : shell_(shell),
        authority_(authority),
        clock_(clock),
        changes_(changes),
        revocations_(revocations),
        owner_(std::move(owner)) {}

  grpc::ServerUnaryReactor* IssueCertificate(grpc::CallbackServerContext*,
                                             const v1::IssueCertificateRequest*,
                                             v1::IssueCertificateResponse*) override;
  grpc::ServerUnaryReactor* ListCertificates(grpc::CallbackServerContext*,
                                             const v1::ListCertificatesRequest*,
                                             v1::ListCertificatesResponse*) override;
  grpc::ServerUnaryReactor* RevokeCertificate(grpc::CallbackServerContext*,
                                              const v1::RevokeCertificateRequest*,
                                              v1::RevokeCertificateResponse*) override;
  grpc::ServerUnaryReactor* CreateToken(grpc::CallbackServerContext*, const v1::CreateTokenRequest*,
                                        v1::CreateTokenResponse*) override;
  grpc::ServerUnaryReactor* ListTokens(grpc::CallbackServerContext*, const v1::ListTokensRequest*,
                                       v1::ListTokensResponse*) override;
  grpc::ServerUnaryReactor* RevokeToken(grpc::CallbackServerContext*, const v1::RevokeTokenRequest*,
                                        v1::RevokeTokenResponse*) override;
  grpc::ServerUnaryReactor* ListAuthorities(grpc::CallbackServerContext*,
                                            const v1::ListAuthoritiesRequest*,
                                            v1::ListAuthoritiesResponse*) override;
  grpc::ServerUnaryReactor* ChangeAuthority(grpc::CallbackServerContext*,
                                            const v1::ChangeAuthorityRequest*,
                                            v1::ChangeAuthorityResponse*) override;

 private:
  // Signs it, and fills the answer, which may leave when the fact is durable.
  Result<core::IssueCertificate> issue(const v1::IssueCertificateRequest& request,
                                       v1::IssueCertificateResponse& response, WallTime now) const;
  // The same for a token.
  Result<core::CreateToken> create(const rpc::Caller& caller, const v1::CreateTokenRequest& request,
                                   v1::CreateTokenResponse& response, WallTime now) const;
  // Of an input that was refused: the error that is the answer; nothing if all is well.
  struct AsItIs {
    std::optional<Error> operator()(const Error& refusal, const View&) const { return refusal; }
  };
  // Finishes the call when the input's batch is durable. `fill(view)` completes the answer.
  template <class Fill, class Refused = AsItIs>
  void decide(core::Input input, Now now, grpc::ServerUnaryReactor* reactor, Fill fill,
              Refused refused = {});
  // While the controller pauses: what it was asked for counts in memory. Nothing: it was revoked,
  // durably, before.
  std::optional<Error> revoke_unwritten(const core::RevokeCertificate& input, const View& view);

  Shell& shell_;
  const Authorities& authority_;
  const Clock& clock_;
  AuthorityChanges& changes_;
  Revocations& revocations_;
  const std::string owner_;
  // The ledger's, with what was revoked while the controller pauses. A pause ends with the process.
  std::optional<core::AccessRecords> unwritten_ MUSTER_GUARDED_BY(shell_.strand());
};

}  // namespace muster::controller
