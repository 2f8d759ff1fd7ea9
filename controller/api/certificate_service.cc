#include "controller/api/certificate_service.h"

#include "common/base/duration.h"
#include "common/base/names.h"
#include "common/log/log.h"
#include "common/pki/key.h"
#include "common/proto/proto_time.h"
#include "common/rpc/status.h"
#include "common/spec/keys/values.h"

namespace muster::controller {
namespace {

constexpr Duration kLifetimeLeast = std::chrono::hours(1);
constexpr Duration kLifetimeMost = std::chrono::hours(24 * 3'650);

}  // namespace

grpc::ServerUnaryReactor* CertificateService::IssueCertificate(
    grpc::CallbackServerContext* context, const v1::IssueCertificateRequest* request,
    v1::IssueCertificateResponse* response) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  const auto done = issue(*request, *response);
  reactor->Finish(done ? grpc::Status::OK : rpc::to_status(done.error()));
  return reactor;
}

Result<void> CertificateService::issue(const v1::IssueCertificateRequest& request,
                                       v1::IssueCertificateResponse& response) const {
  if (!authority_) return fail(Error(authority_.error()).in("issuing a certificate"));
  const bool node = request.has_node();
  const pki::Identity subject{.cluster = authority_->cluster(),
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
  const auto issued = authority_->issue(*key, subject, clock_.now().wall, lifetime);
  if (!issued) return fail(Error(issued.error()).in(doing));
  log::info("a certificate was issued", {{"for", pki::text_of(subject)},
                                         {"serial", issued->serial()},
                                         {"key", issued->public_digest()},
                                         {"until", utc_text(issued->not_after())}});
  response.set_certificate(issued->pem());
  response.set_ca(authority_->certificate().pem());
  return {};
}

}  // namespace muster::controller
