#include "controller/core/access/fold.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "controller/core/access/bounds.h"

namespace muster::core {
namespace {

constexpr Duration kDay = std::chrono::hours(24);
constexpr Duration kLeapLeast = std::chrono::hours(24 * 31);

// Beyond the bound, the one that has been over for the longest time leaves.
void drop_oldest_token(AccessRecords& records, WallTime at) {
  while (records.tokens.size() > kTokensKept) {
    const auto oldest = std::ranges::min_element(
        records.tokens, {}, [](const auto& entry) { return entry.second.over_at(); });
    if (oldest->second.over_at() > at) return;  // nobody may lose a token that counts
    records.tokens.erase(oldest);
  }
}

// Without the record it would still be refused: by the revocation of its whole subject.
bool covered(const AccessRecords& records, const Subject& subject, const CertificateRecord& one) {
  const auto all = records.revoked.find(subject);
  return all != records.revoked.end() && one.issued_at <= all->second.before;
}

void clear(AccessRecords& records, WallTime at) {
  drop_oldest_token(records, at);
  // A clock that was set back begins anew.
  if (at >= records.cleared_at && at < records.cleared_at + std::chrono::hours(1)) return;
  // So far ahead, it is perhaps the clock alone.
  if (at - std::exchange(records.cleared_at, at) > kLeapLeast) return;
  std::erase_if(records.tokens,
                [&](const auto& entry) { return entry.second.over_at() < at - kAccessKept; });
  for (auto subject = records.certificates.begin(); subject != records.certificates.end();) {
    records.certificate_count -= std::erase_if(subject->second, [&](const auto& entry) {
      const CertificateRecord& one = entry.second;
      return one.last_end < at - kAccessKept &&
             (!one.revoked_at || covered(records, subject->first, one));
    });
    subject = subject->second.empty() ? records.certificates.erase(subject) : std::next(subject);
  }
}

void revoke(CertificateRecord& record, WallTime at, const std::string& why) {
  if (record.revoked_at) return;
  record.revoked_at = at;
  record.why = why;
}

template <class Which>
void revoke_tokens(AccessRecords& records, WallTime at, const Which& which) {
  for (auto& [id, token] : records.tokens) {
    if (which(token) && !token.revoked_at) token.revoked_at = at;
  }
}

}  // namespace

void fold_access(AccessRecords& records, WallTime at, const TokenCreated& event) {
  clear(records, at);
  records.tokens[event.token] = {.secret_sha256 = event.secret_sha256,
                                 .nodes = event.nodes,
                                 .uses = event.uses,
                                 .created_at = at,
                                 .ends_at = event.ends_at,
                                 .may_replace = event.may_replace,
                                 .actor = event.actor,
                                 .revoked_at = {},
                                 .joined = {},
                                 .user = event.user,
                                 .of_old_authority = false};
}

void fold_access(AccessRecords& records, WallTime at, const TokenRevoked& event) {
  clear(records, at);
  const auto token = records.tokens.find(event.token);
  if (token != records.tokens.end() && !token->second.revoked_at) token->second.revoked_at = at;
}

void fold_access(AccessRecords& records, WallTime at, const CertificateIssued& event) {
  clear(records, at);
  if (const auto token = records.tokens.find(event.token); token != records.tokens.end())
    token->second.joined.emplace(event.subject.name, event.key);
  const auto [entry, fresh] = records.certificates[event.subject].try_emplace(event.key);
  records.certificate_count += fresh ? 1 : 0;
  CertificateRecord& record = entry->second;
  const bool within_day = !fresh && at < record.issued_at + kDay;
  record = {.serial = event.serial,
            .not_before = event.not_before,
            .not_after = event.not_after,
            .issued_at = at,
            .last_end = fresh ? event.not_after : std::max(record.last_end, event.not_after),
            .issued_day = within_day ? record.issued_day + 1 : 1,
            .token = event.token,
            .actor = event.actor,
            .revoked_at = {},
            .why = {}};
}

void fold_access(AccessRecords& records, WallTime at, const CertificateRevoked& event) {
  clear(records, at);
  const auto subject = records.certificates.find(event.subject);
  if (!event.key.empty()) {
    if (subject == records.certificates.end()) return;
    if (const auto record = subject->second.find(event.key); record != subject->second.end())
      revoke(record->second, at, event.why);
    return;
  }
  // Those that there are now, the user's own and those that the user made for others. The times say
  // nothing here: the clock may have been ahead when a token was made.
  if (event.subject.role == SubjectRole::User)
    revoke_tokens(records, at, [&](const TokenRecord& token) {
      return token.user == event.subject.name || token.actor == event.subject.name;
    });
  AllRevoked& all = records.revoked[event.subject];
  all = {.before = std::max(all.before, event.before), .why = event.why};
  if (subject == records.certificates.end()) return;
  for (auto& [key, record] : subject->second) revoke(record, at, event.why);
}

void fold_access(AccessRecords& records, WallTime at, const AuthorityChanged& event) {
  clear(records, at);
  AuthorityRecords& known = records.authorities;
  if (event.imported) known.imported.insert(event.sha256);
  switch (event.step) {
    case AuthorityStep::Published: known.next = event.sha256; break;
    case AuthorityStep::Signs:
      if (known.next == event.sha256) known.next.clear();
      known.old = std::exchange(known.signing, event.sha256);
      known.signs_since = at;
      // The first row names the CA of the tokens that there are.
      if (known.old.empty()) break;
      for (auto& [id, token] : records.tokens) token.of_old_authority = true;
      break;
    case AuthorityStep::Dropped:
      if (known.next == event.sha256) known.next.clear();
      if (known.old == event.sha256) {
        known.old.clear();
        // It has the digest of the CA that is gone, which everybody can replace by the other one.
        revoke_tokens(records, at, [](const TokenRecord& token) { return token.of_old_authority; });
      }
      known.imported.erase(event.sha256);
      known.dropped.insert(event.sha256);
      break;
  }
}

}  // namespace muster::core
