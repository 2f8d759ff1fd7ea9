#include "controller/enrol/logins.h"

#include "common/base/names.h"
#include "common/digest/sha256.h"
#include "common/pki/key.h"
#include "controller/access/subject.h"
#include "controller/core/access/login.h"

namespace muster::controller {
namespace {

constexpr const char* kLoggingIn = "letting a user log in";

Error too_many_ask() {
  return {ErrorCode::ResourceExhausted,
          std::string(kLoggingIn) + ": too many requests wait for the controller; try again"};
}

}  // namespace

Result<void> Logins::check_ready() const {
  if (!authority_) return fail(Error(authority_.error()).in(kLoggingIn));
  if (addresses_.empty())
    return fail(ErrorCode::Unsupported,
                std::string(kLoggingIn) +
                    ": the controller takes no calls over TCP, so a certificate is of no use; ask "
                    "the person who runs it (--listen HOST:PORT)");
  return {};
}

Result<pki::Certificate> Logins::sign(const std::string& user, const std::string& public_key,
                                      Duration lifetime, WallTime now) const {
  if (!is_node_name(user))
    return fail(ErrorCode::InvalidArgument, std::string(kLoggingIn) +
                                                ": the user's name is none that a certificate can "
                                                "have");
  const auto key = pki::Key::from_public_der(public_key);
  if (!key) return fail(Error(key.error()).in(kLoggingIn));
  auto certificate = authority_->issue(
      *key, {.cluster = authority_->cluster(), .role = pki::Role::User, .name = user}, now,
      lifetime);
  if (!certificate) return fail(std::move(certificate.error()).in(kLoggingIn));
  return certificate;
}

void Logins::decide(core::Input input, Now now, const std::string& user,
                    const pki::Certificate& certificate, SharedDone done) {
  auto answer =
      std::make_unique<EnrolmentAnswer>(EnrolmentAnswer{.certificate = certificate.pem(),
                                                        .ca = authority_.trusted(),
                                                        .user = user,
                                                        .addresses = addresses_});
  const bool taken =
      shell_.submit(std::move(input), now,
                    [done, answer = std::move(answer)](const Outcome& outcome, const View&) {
                      if (outcome.refusal) return (*done)(fail(*outcome.refusal));
                      (*done)(std::move(*answer));
                    });
  if (!taken) (*done)(fail(too_many_ask()));
}

void Logins::login(LoginAsk ask, Enrolments::Done done) {
  if (auto ready = check_ready(); !ready) return done(fail(std::move(ready.error())));
  auto shared = std::make_shared<Enrolments::Done>(std::move(done));
  const std::string digest = sha256_hex(ask.secret);
  ask.secret.clear();
  const bool taken = shell_.read([this, shared, digest, ask = std::move(ask)](const View& view) {
    const Now now = clock_.now();
    const auto user = core::user_of_token(view.ledger, ask.token, digest, now.wall);
    if (!user) return (*shared)(fail(Error(user.error())));
    const auto certificate = sign(*user, ask.public_key, ask.lifetime, now.wall);
    if (!certificate) return (*shared)(fail(Error(certificate.error())));
    decide(core::LoginWithToken{.token = ask.token,
                                .secret_sha256 = digest,
                                .user = *user,
                                .certificate = record_of(*certificate)},
           now, *user, *certificate, shared);
  });
  if (!taken) (*shared)(fail(too_many_ask()));
}

void Logins::login(SocketLoginAsk ask, Enrolments::Done done) {
  if (auto ready = check_ready(); !ready) return done(fail(std::move(ready.error())));
  const Now now = clock_.now();
  const auto certificate = sign(ask.user, ask.public_key, ask.lifetime, now.wall);
  if (!certificate) return done(fail(Error(certificate.error())));
  decide(core::LoginByUid{.user = ask.user, .uid = ask.uid, .certificate = record_of(*certificate)},
         now, ask.user, *certificate, std::make_shared<Enrolments::Done>(std::move(done)));
}

}  // namespace muster::controller
