#include "controller/core/access/login.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "common/base/names.h"
#include "controller/core/access/bounds.h"
#include "controller/core/access/certificates.h"
#include "controller/core/access/join.h"

namespace muster::core {
namespace {

std::string letting_in(const std::string& user) {
  return fmt::format("letting user '{}' log in", user);
}

// What bounds the certificates that users ask for by themselves.
std::optional<Error> refuse_more_of_user(const Ledger& ledger, const Subject& subject,
                                         const std::string& key, WallTime now,
                                         const std::string& doing) {
  const auto& keys = keys_of(ledger, subject);
  if (const auto known = keys.find(key); known != keys.end()) {
    const CertificateRecord& record = known->second;
    if (record.issued_day < kCertificatesOfKeyDay ||
        now >= record.issued_at + std::chrono::hours(24))
      return std::nullopt;
    return Error{ErrorCode::ResourceExhausted,
                 fmt::format("{}: its key got {} certificates within a day, as many as are issued",
                             doing, record.issued_day)};
  }
  if (keys.size() >= kKeysOfUserKept)
    return Error{ErrorCode::ResourceExhausted,
                 fmt::format("{}: the ledger has {} certificates of the user, as many as may be, "
                             "with those that have ended; they leave it 30 days after their end; "
                             "log in less often, with a longer --lifetime",
                             doing, keys.size())};
  if (ledger.access.certificate_count >= kCertificatesForUsers)
    return Error{ErrorCode::ResourceExhausted,
                 fmt::format("{}: the ledger has {} certificates, and the rest of its room is for "
                             "nodes; they leave it 30 days after their end; `muster cert issue "
                             "--user {}` on the controller's machine makes one meanwhile",
                             doing, ledger.access.certificate_count, subject.name)};
  const auto live = static_cast<std::size_t>(std::ranges::count_if(keys, [now](const auto& entry) {
    return !entry.second.revoked_at && entry.second.last_end >= now;
  }));
  if (live < kKeysOfUser) return std::nullopt;
  return Error{ErrorCode::ResourceExhausted,
               fmt::format("{}: {} certificates of the user count, as many as may; use one of them "
                           "(`muster login --status`), wait for the end of one, or ask for `muster "
                           "cert revoke --serial`",
                           doing, live)};
}

std::optional<Error> refuse_login(const Ledger& ledger, const Subject& subject,
                                  const NewCertificate& made, WallTime now,
                                  const std::string& doing) {
  if (auto error = refuse_certificate(ledger, subject, made, doing)) return error;
  return refuse_more_of_user(ledger, subject, made.key, now, doing);
}

// Somebody has let the user in again after the revocation of all certificates. It revoked every key
// that there was, so that another one was registered after it, whatever the clock said.
bool is_back(const Ledger& ledger, const Subject& subject) {
  return std::ranges::any_of(keys_of(ledger, subject),
                             [](const auto& entry) { return !entry.second.revoked_at; });
}

}  // namespace

Result<std::string> user_of_token(const Ledger& ledger, const std::string& token,
                                  const std::string& secret_sha256, WallTime now) {
  const std::string doing = "letting a user log in";
  const auto found = ledger.access.tokens.find(token);
  if (found == ledger.access.tokens.end() ||
      !same_digest(found->second.secret_sha256, secret_sha256))
    return fail(ErrorCode::NotAllowed,
                doing +
                    ": the controller does not know this token; an admin makes one with "
                    "`muster token create --user NAME`");
  const TokenRecord& known = found->second;
  if (known.user.empty())
    return fail(ErrorCode::NotAllowed,
                fmt::format("{}: token '{}' is for nodes that join; an admin makes one for a user "
                            "with `muster token create --user NAME`",
                            doing, token));
  if (known.revoked_at)
    return fail(ErrorCode::NotAllowed, doing + ": " + revoked_text(token, known));
  if (now > known.ends_at)
    return fail(ErrorCode::NotAllowed,
                fmt::format("{}: token '{}' ended at {}, by the controller's clock; ask for "
                            "another one",
                            doing, token, utc_text(known.ends_at)));
  return known.user;
}

Decision decide_login(const Ledger& ledger, const LoginWithToken& input, WallTime now) {
  const auto user = user_of_token(ledger, input.token, input.secret_sha256, now);
  if (!user) return {.refusal = user.error()};
  const std::string doing = letting_in(*user);
  if (input.user != *user)
    return refuse(ErrorCode::NotAllowed, doing + ": its token is of another user");
  const TokenRecord& token = ledger.access.tokens.at(input.token);
  const Subject subject{.role = SubjectRole::User, .name = *user};
  if (!token.joined.contains({*user, input.certificate.key}) && token.joined.size() >= token.uses)
    return refuse(ErrorCode::NotAllowed,
                  fmt::format("{}: token '{}' is used up ({} of {}); ask for another one", doing,
                              input.token, token.joined.size(), token.uses));
  if (auto error = refuse_login(ledger, subject, input.certificate, now, doing))
    return {.refusal = std::move(error)};
  return accept(
      issued(subject, input.certificate, input.token, fmt::format("token {}", input.token)));
}

Decision decide_login(const Ledger& ledger, const LoginByUid& input, WallTime now) {
  const std::string doing = letting_in(input.user);
  if (!is_node_name(input.user))
    return refuse(ErrorCode::InvalidArgument, doing + ": not a name that a certificate can have");
  const Subject subject{.role = SubjectRole::User, .name = input.user};
  if (const auto all = ledger.access.revoked.find(subject);
      all != ledger.access.revoked.end() && !is_back(ledger, subject))
    return refuse(ErrorCode::NotAllowed,
                  fmt::format("{}: all certificates of the user were revoked at {}{}{}; an admin "
                              "lets the user in again with `muster token create --user {}`",
                              doing, utc_text(all->second.before),
                              all->second.why.empty() ? "" : ": ", all->second.why, input.user));
  if (auto error = refuse_login(ledger, subject, input.certificate, now, doing))
    return {.refusal = std::move(error)};
  return accept(issued(subject, input.certificate, {}, fmt::format("uid {}", input.uid)));
}

}  // namespace muster::core
