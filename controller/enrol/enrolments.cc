#include "controller/enrol/enrolments.h"

#include <memory>
#include <utility>

#include "common/base/names.h"
#include "common/digest/sha256.h"
#include "common/pki/key.h"
#include "controller/access/subject.h"
#include "controller/core/access/join.h"

namespace muster::controller {
namespace {

constexpr const char* kEnrolling = "enrolling a node";
constexpr Duration kNodeLifetime = std::chrono::hours(24 * 30);

Error too_many() {
  return {ErrorCode::ResourceExhausted,
          std::string(kEnrolling) + ": too many requests wait for the controller; try again"};
}

}  // namespace

// Signs, then decides. `input_of` makes the input that decides about the certificate.
template <class InputOf>
void Enrolments::ask(const std::string& node, const std::string& public_key, Done done,
                     InputOf input_of) {
  const std::string doing = kEnrolling;
  const auto authorities = authority_.now();
  if (!authorities) return done(fail(Error(authority_.error()).in(doing)));
  const pki::Authority& signing = authorities->set.signing;
  const auto key = pki::Key::from_public_der(public_key);
  if (!key) return done(fail(Error(key.error()).in(doing)));
  if (!is_node_name(node))
    return done(fail(ErrorCode::InvalidArgument,
                     doing + ": its name is no name; letters, digits, '.', '_', '-', at most 63, "
                             "the first a letter or digit (--name)"));
  const Now now = clock_.now();
  const auto certificate =
      signing.issue(*key, {.cluster = signing.cluster(), .role = pki::Role::Node, .name = node},
                    now.wall, kNodeLifetime);
  if (!certificate) return done(fail(Error(certificate.error()).in(doing)));
  auto answer = std::make_unique<EnrolmentAnswer>(
      EnrolmentAnswer{.certificate = certificate->pem(), .ca = trusted_by_answers(*authorities)});
  auto shared_done = std::make_shared<Done>(std::move(done));
  const bool taken =
      shell_.submit(input_of(record_of(*certificate, signing)), now,
                    [shared_done, answer = std::move(answer)](const Outcome& outcome, const View&) {
                      if (outcome.refusal) return (*shared_done)(fail(*outcome.refusal));
                      (*shared_done)(std::move(*answer));
                    });
  if (!taken) (*shared_done)(fail(too_many()));
}

void Enrolments::join(JoinAsk ask_for, Done done) {
  auto shared = std::make_shared<Done>(std::move(done));
  const std::string digest = sha256_hex(ask_for.secret);
  ask_for.secret.clear();
  const bool taken =
      shell_.read([this, shared, digest, ask_for = std::move(ask_for)](const View& view) {
        if (auto error = core::refuse_join_token(view.ledger, ask_for.token, digest, ask_for.node,
                                                 clock_.now().wall))
          return (*shared)(fail(*std::move(error)));
        ask(ask_for.node, ask_for.public_key, std::move(*shared), [&](core::NewCertificate made) {
          return core::JoinNode{.token = ask_for.token,
                                .secret_sha256 = digest,
                                .node = ask_for.node,
                                .certificate = std::move(made)};
        });
      });
  if (!taken) (*shared)(fail(too_many()));
}

void Enrolments::renew(RenewAsk ask_for, Done done) {
  ask(ask_for.node, ask_for.public_key, std::move(done), [&](core::NewCertificate made) {
    return core::RenewNode{
        .node = ask_for.node, .registered = ask_for.registered, .certificate = std::move(made)};
  });
}

}  // namespace muster::controller
