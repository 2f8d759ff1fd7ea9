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

Result<Logins::Signed> Logins::sign(const std::string& user, const std::string& public_key,
                                    Duration lifetime, WallTime now) const {
  if (!is_node_name(user))
    return fail(ErrorCode::InvalidArgument, std::string(kLoggingIn) +
                                                ": the user's name is none that a certificate can "
                                                "have");
  const auto key = pki::Key::from_public_der(public_key);
  if (!key) return fail(Error(key.error()).in(kLoggingIn));
  const auto authorities = authority_.now();
  const pki::Authority& signing = authorities->set.signing;
  auto certificate = signing.issue(
      *key, {.cluster = signing.cluster(), .role = pki::Role::User, .name = user}, now, lifetime);
  if (!certificate) return fail(std::move(certificate.error()).in(kLoggingIn));
  return Signed{.record = record_of(*certificate, signing),
                .answer = {.certificate = certificate->pem(),
                           .ca = authorities->trusted,
                           .user = user,
                           .addresses = addresses_}};
}

void Logins::decide(core::Input input, Now now, EnrolmentAnswer answer, SharedDone done) {
  auto kept = std::make_unique<EnrolmentAnswer>(std::move(answer));
  const bool taken = shell_.submit(
      std::move(input), now, [done, kept = std::move(kept)](const Outcome& outcome, const View&) {
        if (outcome.refusal) return (*done)(fail(*outcome.refusal));
        (*done)(std::move(*kept));
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
    auto made = sign(*user, ask.public_key, ask.lifetime, now.wall);
    if (!made) return (*shared)(fail(std::move(made.error())));
    decide(core::LoginWithToken{.token = ask.token,
                                .secret_sha256 = digest,
                                .user = *user,
                                .certificate = std::move(made->record)},
           now, std::move(made->answer), shared);
  });
  if (!taken) (*shared)(fail(too_many_ask()));
}

void Logins::login(SocketLoginAsk ask, Enrolments::Done done) {
  if (auto ready = check_ready(); !ready) return done(fail(std::move(ready.error())));
  const Now now = clock_.now();
  auto made = sign(ask.user, ask.public_key, ask.lifetime, now.wall);
  if (!made) return done(fail(std::move(made.error())));
  decide(core::LoginByUid{.user = ask.user, .uid = ask.uid, .certificate = std::move(made->record)},
         now, std::move(made->answer), std::make_shared<Enrolments::Done>(std::move(done)));
}

}  // namespace muster::controller
