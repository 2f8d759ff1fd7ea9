#include "controller/api/certificate_service.h"

#include <fmt/format.h>

#include <variant>

#include "common/base/duration.h"
#include "common/base/names.h"
#include "common/base/random_hex.h"
#include "common/digest/sha256.h"
#include "common/enrol/token.h"
#include "common/pki/key.h"
#include "common/proto/proto_time.h"
#include "common/rpc/status.h"
#include "common/spec/keys/values.h"
#include "controller/access/subject.h"
#include "controller/api/access_list.h"
#include "controller/api/bounded.h"
#include "controller/api/edge.h"
#include "controller/core/access/certificates.h"
#include "controller/core/access/fold.h"
#include "controller/core/access/revoked.h"

namespace muster::controller {
namespace {

constexpr Duration kLifetimeLeast = std::chrono::hours(1);
constexpr Duration kLifetimeMost = std::chrono::hours(24 * 3'650);
constexpr std::size_t kIdBytes = 5, kSecretBytes = 20;

// One that was over long ago may leave the ledger at the very event: then its id alone is shown.
void show_token(const core::AccessRecords& records, const std::string& id, v1::Token& to) {
  to.set_id(id);
  if (const auto found = records.tokens.find(id); found != records.tokens.end())
    to = to_v1(id, found->second);
}

}  // namespace

template <class Fill, class Refused>
void CertificateService::decide(core::Input input, Now now, grpc::ServerUnaryReactor* reactor,
                                Fill fill, Refused refused) {
  const bool taken =
      shell_.submit(std::move(input), now,
                    [reactor, fill = std::move(fill), refused = std::move(refused)](
                        const Outcome& outcome, const View& view) mutable {
                      if (outcome.refusal) {
                        if (const std::optional<Error> error = refused(*outcome.refusal, view))
                          return reactor->Finish(rpc::to_status(*error));
                      }
                      fill(view);
                      reactor->Finish(grpc::Status::OK);
                    });
  if (!taken) reactor->Finish(overloaded());
}

// --- certificates --------------------------------------------------------------------------------

grpc::ServerUnaryReactor* CertificateService::IssueCertificate(
    grpc::CallbackServerContext* context, const v1::IssueCertificateRequest* request,
    v1::IssueCertificateResponse* response) {
  return serve(context, [&](grpc::ServerUnaryReactor* reactor) {
    const Now now = clock_.now();
    auto input = issue(*request, *response, now.wall);
    if (!input) return reactor->Finish(rpc::to_status(input.error()));
    decide(std::move(*input), now, reactor, [](const View&) {});
  });
}

Result<core::IssueCertificate> CertificateService::issue(const v1::IssueCertificateRequest& request,
                                                         v1::IssueCertificateResponse& response,
                                                         WallTime now) const {
  const auto authorities = authority_.now();
  if (!authorities) return fail(Error(authority_.error()).in("issuing a certificate"));
  const pki::Authority& signing = authorities->set.signing;
  const bool node = request.has_node();
  const pki::Identity subject{.cluster = signing.cluster(),
                              .role = node ? pki::Role::Node : pki::Role::User,
                              .name = node ? request.node() : request.user()};
  const std::string doing = std::string("issuing a certificate for ") +
                            (node ? "node '" : "user '") + spec::shown(subject.name) + "'";
  if (!is_node_name(subject.name))
    return fail(ErrorCode::InvalidArgument,
                doing +
                    ": not a name; letters, digits, '.', '_', '-', at most 63, the first a letter "
                    "or digit");
  const Duration lifetime = to_duration(request.lifetime());
  if (lifetime < kLifetimeLeast || lifetime > kLifetimeMost)
    return fail(ErrorCode::InvalidArgument, doing + ": its lifetime must be 1h to 3650d");
  const auto key = pki::Key::from_public_pem(request.public_key());
  if (!key) return fail(Error(key.error()).in(doing));
  const auto issued = signing.issue(*key, subject, now, lifetime);
  if (!issued) return fail(Error(issued.error()).in(doing));
  response.set_certificate(issued->pem());
  response.set_ca(authorities->trusted);
  return core::IssueCertificate{
      .subject = *subject_of(subject), .certificate = record_of(*issued, signing), .actor = owner_};
}

grpc::ServerUnaryReactor* CertificateService::ListCertificates(
    grpc::CallbackServerContext* context, const v1::ListCertificatesRequest* request,
    v1::ListCertificatesResponse* response) {
  return serve(context, [&](grpc::ServerUnaryReactor* reactor) {
    const bool taken = shell_.read([reactor, request, response](const View& view) {
      const auto listed = list_certificates(view.ledger.access, *request, kPageBytes, *response);
      reactor->Finish(listed ? grpc::Status::OK : rpc::to_status(listed.error()));
    });
    if (!taken) reactor->Finish(overloaded());
  });
}

grpc::ServerUnaryReactor* CertificateService::RevokeCertificate(
    grpc::CallbackServerContext* context, const v1::RevokeCertificateRequest* request,
    v1::RevokeCertificateResponse* response) {
  return serve(context, [&](grpc::ServerUnaryReactor* reactor) {
    core::RevokeCertificate input{.subject = {},
                                  .serial = spec::shown(request->serial()),
                                  .why = request->why(),
                                  .actor = owner_};
    if (request->has_node())
      input.subject = {.role = core::SubjectRole::Node, .name = request->node()};
    if (request->has_user())
      input.subject = {.role = core::SubjectRole::User, .name = request->user()};
    if (auto sound = check_reason(request->why(), "revoking certificates"); !sound)
      return reactor->Finish(rpc::to_status(sound.error()));
    const auto fill = [response, subject = input.subject](const View& view) {
      if (!subject) return response->set_certificates(1);
      const auto& certificates = view.ledger.access.certificates;
      const auto keys = certificates.find(*subject);
      response->set_certificates(
          keys == certificates.end() ? 0 : static_cast<std::uint32_t>(keys->second.size()));
    };
    decide(input, clock_.now(), reactor, fill,
           [this, input](const Error& refusal, const View& view) {
             return view.paused.empty() ? refusal : revoke_unwritten(input, view);
           });
  });
}

std::optional<Error> CertificateService::revoke_unwritten(const core::RevokeCertificate& input,
                                                          const View& view) {
  shell_.strand().assert_on();
  const core::Decision decision = core::decide_revoke(view.ledger, input, view.now.wall);
  if (decision.refusal) return decision.refusal;
  if (decision.events.empty()) return std::nullopt;
  if (!unwritten_) unwritten_ = view.ledger.access;
  for (const core::EventBody& event : decision.events) {
    if (const auto* revoked = std::get_if<core::CertificateRevoked>(&event))
      core::fold_access(*unwritten_, view.now.wall, *revoked);
  }
  revocations_.publish(core::Revoked(*unwritten_));
  return Error{
      ErrorCode::DataLoss,
      fmt::format("revoking {}: from now on it counts, and streams have ended, but it is not "
                  "written down, and the controller's next start forgets it: then revoke again, or "
                  "keep the port closed until you have; {}",
                  input.subject ? "the certificates of " + core::text_of(*input.subject)
                                : "certificate '" + input.serial + "'",
                  view.paused)};
}

// --- tokens --------------------------------------------------------------------------------------

grpc::ServerUnaryReactor* CertificateService::CreateToken(grpc::CallbackServerContext* context,
                                                          const v1::CreateTokenRequest* request,
                                                          v1::CreateTokenResponse* response) {
  return serve(context, [&](grpc::ServerUnaryReactor* reactor) {
    const Now now = clock_.now();
    auto input = create(rpc::caller_of(*context), *request, *response, now.wall);
    if (!input) return reactor->Finish(rpc::to_status(input.error()));
    const std::string id = input->token.token;
    decide(std::move(*input), now, reactor, [response, id](const View& view) {
      show_token(view.ledger.access, id, *response->mutable_token());
    });
  });
}

Result<core::CreateToken> CertificateService::create(const rpc::Caller& caller,
                                                     const v1::CreateTokenRequest& request,
                                                     v1::CreateTokenResponse& response,
                                                     WallTime now) const {
  const bool personal = !request.user().empty();
  const std::string doing = personal ? "making a personal token" : "making a join token";
  if (!caller.is_owner && (!personal || !caller.identity))
    return fail(ErrorCode::NotAllowed,
                doing +
                    ": only the user who runs the controller may, on its machine, over its "
                    "unix socket; admins make tokens for users (--user)");
  const auto authorities = authority_.now();
  if (!authorities) return fail(Error(authority_.error()).in(doing));
  const std::string authority = authorities->set.signing.certificate().digest();
  auto id = random_hex(kIdBytes, doing);
  if (!id) return fail(std::move(id.error()));
  auto secret = random_hex(kSecretBytes, doing);
  if (!secret) return fail(std::move(secret.error()));
  response.set_text(
      enrol::token_text({.id = *id,
                         .secret = *secret,
                         .ca_digest = authority,
                         .kind = personal ? enrol::TokenKind::Login : enrol::TokenKind::Join}));
  return core::CreateToken{.token = {.token = *id,
                                     .secret_sha256 = sha256_hex(*secret),
                                     .nodes = request.nodes(),
                                     .uses = request.uses(),
                                     .ends_at = now + to_duration(request.lifetime()),
                                     .may_replace = request.may_replace(),
                                     .actor = caller.is_owner ? owner_ : caller.identity->name,
                                     .user = request.user()},
                           .authority = authority};
}

grpc::ServerUnaryReactor* CertificateService::ListTokens(grpc::CallbackServerContext* context,
                                                         const v1::ListTokensRequest*,
                                                         v1::ListTokensResponse* response) {
  return serve(context, [&](grpc::ServerUnaryReactor* reactor) {
    const bool taken = shell_.read([reactor, response](const View& view) {
      list_tokens(view.ledger.access, *response);
      reactor->Finish(grpc::Status::OK);
    });
    if (!taken) reactor->Finish(overloaded());
  });
}

grpc::ServerUnaryReactor* CertificateService::RevokeToken(grpc::CallbackServerContext* context,
                                                          const v1::RevokeTokenRequest* request,
                                                          v1::RevokeTokenResponse* response) {
  return serve(context, [&](grpc::ServerUnaryReactor* reactor) {
    const std::string id = spec::shown(request->id());
    core::RevokeToken input{.token = id, .actor = owner_};
    decide(
        std::move(input), clock_.now(), reactor,
        [response, id](const View& view) {
          show_token(view.ledger.access, id, *response->mutable_token());
        },
        [id](const Error& refusal, const View& view) -> std::optional<Error> {
          if (view.paused.empty()) return refusal;
          return Error{ErrorCode::DataLoss,
                       fmt::format("revoking token '{}': nobody gets in with a token while the "
                                   "controller pauses; revoke it after that; {}",
                                   id, view.paused)};
        });
  });
}

// --- the CA --------------------------------------------------------------------------------------

grpc::ServerUnaryReactor* CertificateService::ListAuthorities(
    grpc::CallbackServerContext* context, const v1::ListAuthoritiesRequest*,
    v1::ListAuthoritiesResponse* response) {
  return serve(context,
               [&](grpc::ServerUnaryReactor* reactor) { changes_.list(reactor, *response); });
}

grpc::ServerUnaryReactor* CertificateService::ChangeAuthority(
    grpc::CallbackServerContext* context, const v1::ChangeAuthorityRequest* request,
    v1::ChangeAuthorityResponse* response) {
  return serve(context, [&](grpc::ServerUnaryReactor* reactor) {
    changes_.change(reactor, *request, *response, owner_);
  });
}

}  // namespace muster::controller
