#include "controller/core/access/authorities.h"

#include <fmt/format.h>

namespace muster::core {
namespace {

std::string short_digest(const std::string& sha256) { return sha256.substr(0, 16); }

// The first CA, or another one that was put into the place of the CA that signs: no certificate and
// no token of before counts then. A node that learns of it may renew by its registered key.
//
// Releases before this row said nothing of a CA that was put in the place of another one. Tokens
// that are older than the first one that is recorded are of such a CA.
template <class EventOf>
Decision signs_already(const Ledger& ledger, const ChangeAuthority& input,
                       const AuthorityChanged& now, EventOf event) {
  const AuthorityRecords& known = ledger.access.authorities;
  Decision made;
  if (known.signing == now.sha256) return made;
  for (const std::string& sha256 : {known.next, known.old}) {
    if (!sha256.empty() && sha256 != now.sha256)
      made.events.emplace_back(event(AuthorityStep::Dropped, sha256, false));
  }
  made.events.emplace_back(now);
  if (!known.signing.empty()) {
    made.events.emplace_back(event(AuthorityStep::Dropped, known.signing, false));
    return made;
  }
  for (const auto& [id, token] : ledger.access.tokens) {
    if (!token.revoked_at && token.created_at < input.made_at)
      made.events.emplace_back(TokenRevoked{.token = id, .actor = input.actor});
  }
  return made;
}

}  // namespace

std::optional<Error> refuse_authority(const AccessRecords& records, const std::string& sha256,
                                      const std::string& doing) {
  const std::string& signing = records.authorities.signing;
  if (signing.empty() || signing == sha256) return std::nullopt;
  return Error{ErrorCode::Io,
               fmt::format("{}: CA {} signs since `muster cert rotate sign`, and the controller "
                           "does not have its files in place yet; try again; if that does not "
                           "help, its log says what is in the way (a full disk?): mend that, and "
                           "start the controller again",
                           doing, short_digest(signing))};
}

bool nothing_issued(const AccessRecords& records) {
  return records.certificates.empty() && records.tokens.empty() && records.revoked.empty();
}

Decision decide_change(const Ledger& ledger, const ChangeAuthority& input) {
  const AuthorityRecords& known = ledger.access.authorities;
  const auto event = [&](AuthorityStep step, const std::string& sha256, bool imported) {
    return AuthorityChanged{
        .step = step, .sha256 = sha256, .imported = imported, .actor = input.actor};
  };
  switch (input.step) {
    case AuthorityStep::Published: {
      constexpr std::string_view kDoing = "publishing a next CA";
      if (!known.next.empty() || !known.old.empty())
        return refuse(ErrorCode::Conflict,
                      fmt::format("{}: CA {} is still {}; finish that change first (`muster cert "
                                  "rotate` names the step)",
                                  kDoing, short_digest(known.next.empty() ? known.old : known.next),
                                  known.next.empty() ? "trusted" : "waiting to sign"));
      if (known.dropped.contains(input.sha256))
        return refuse(ErrorCode::Conflict,
                      fmt::format("{}: CA {} was dropped before, and is never trusted again; make "
                                  "another one",
                                  kDoing, short_digest(input.sha256)));
      if (input.sha256 == input.signing)
        return refuse(ErrorCode::Conflict,
                      fmt::format("{}: CA {} signs already", kDoing, short_digest(input.sha256)));
      if (input.at_once && !nothing_issued(ledger.access))
        return refuse(ErrorCode::Conflict,
                      fmt::format("{}: a certificate was issued meanwhile; try again", kDoing));
      Decision made;
      if (known.signing.empty())
        made.events.emplace_back(event(AuthorityStep::Signs, input.signing, false));
      made.events.emplace_back(event(AuthorityStep::Published, input.sha256, input.imported));
      if (input.at_once) {
        made.events.emplace_back(event(AuthorityStep::Signs, input.sha256, input.imported));
        made.events.emplace_back(event(AuthorityStep::Dropped, input.signing, false));
      }
      return made;
    }
    case AuthorityStep::Signs:
      if (input.sha256 == input.signing)
        return signs_already(
            ledger, input,
            event(AuthorityStep::Signs, input.sha256, known.imported.contains(input.sha256)),
            event);
      if (known.next.empty() || known.next != input.sha256)
        return refuse(ErrorCode::Conflict,
                      "changing the CA that signs: no next one is published; `muster cert rotate "
                      "start` makes one, `muster cert import` brings one");
      return accept(
          event(AuthorityStep::Signs, input.sha256, known.imported.contains(input.sha256)));
    case AuthorityStep::Dropped:
      if (input.sha256.empty() || (known.old != input.sha256 && known.next != input.sha256))
        return refuse(ErrorCode::Conflict,
                      "dropping a CA: there is only the one that signs; a change begins with "
                      "`muster cert rotate start`");
      return accept(
          event(AuthorityStep::Dropped, input.sha256, known.imported.contains(input.sha256)));
  }
  return nothing();
}

}  // namespace muster::core
