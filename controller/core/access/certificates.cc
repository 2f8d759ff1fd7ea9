#include "controller/core/access/certificates.h"

#include <fmt/format.h>

#include "common/base/names.h"
#include "controller/core/access/authorities.h"
#include "controller/core/access/bounds.h"

namespace muster::core {
namespace {

// Whoever has one could still take the place of the node. One that was used lets only the key in
// with which it was used. The fold does not end them, as it does those of a user: a join with such
// a token revokes what the name had, too, and its answer may be lost and asked for again.
void end_replacing_tokens(const AccessRecords& records, const std::string& node,
                          const std::string& actor, Decision& made) {
  for (const auto& [id, token] : records.tokens) {
    if (token.may_replace && token.nodes == node && token.joined.empty() && !token.revoked_at)
      made.events.emplace_back(TokenRevoked{.token = id, .actor = actor});
  }
}

}  // namespace

std::string text_of(const Subject& subject) {
  return fmt::format("{} '{}'", subject.role == SubjectRole::Node ? "node" : "user", subject.name);
}

std::string revoked_text(const CertificateRecord& record) {
  return fmt::format("its key was revoked at {}{}{}",
                     utc_text(record.revoked_at.value_or(WallTime())),
                     record.why.empty() ? "" : ": ", record.why);
}

std::string revoked_text(const std::string& token, const TokenRecord& record) {
  return fmt::format("token '{}' was revoked at {}{}", token,
                     utc_text(record.revoked_at.value_or(WallTime())),
                     record.of_old_authority
                         ? ", at the latest when the CA that it is of was dropped; make another one"
                         : "");
}

const std::map<std::string, CertificateRecord>& keys_of(const Ledger& ledger,
                                                        const Subject& subject) {
  static const std::map<std::string, CertificateRecord> none;
  const auto found = ledger.access.certificates.find(subject);
  return found == ledger.access.certificates.end() ? none : found->second;
}

std::optional<Error> refuse_certificate(const Ledger& ledger, const Subject& subject,
                                        const NewCertificate& made, const std::string& doing) {
  if (auto error = refuse_authority(ledger.access, made.authority, doing)) return error;
  if (const auto keys = ledger.access.certificates.find(subject);
      keys != ledger.access.certificates.end()) {
    if (const auto known = keys->second.find(made.key); known != keys->second.end()) {
      if (!known->second.revoked_at) return std::nullopt;
      return Error{ErrorCode::NotAllowed, fmt::format("{}: {}; make a new key, and ask with that",
                                                      doing, revoked_text(known->second))};
    }
  }
  if (ledger.access.certificate_count < kCertificatesMost) return std::nullopt;
  return Error{ErrorCode::ResourceExhausted,
               fmt::format("{}: the ledger has {} certificates, as many as the limit allows; they "
                           "leave it 30 days after their end",
                           doing, ledger.access.certificate_count)};
}

CertificateIssued issued(const Subject& subject, const NewCertificate& made, std::string token,
                         std::string actor) {
  return {.serial = made.serial,
          .subject = subject,
          .key = made.key,
          .not_before = made.not_before,
          .not_after = made.not_after,
          .token = std::move(token),
          .actor = std::move(actor)};
}

Decision decide_issue(const Ledger& ledger, const IssueCertificate& input) {
  const std::string doing = "issuing a certificate for " + text_of(input.subject);
  if (!is_node_name(input.subject.name))
    return refuse(ErrorCode::InvalidArgument, doing + ": not a name");
  if (auto error = refuse_certificate(ledger, input.subject, input.certificate, doing))
    return {.refusal = std::move(error)};
  return accept(issued(input.subject, input.certificate, {}, input.actor));
}

Decision decide_revoke(const Ledger& ledger, const RevokeCertificate& input, WallTime now) {
  CertificateRevoked event{
      .subject = {}, .key = {}, .serial = {}, .before = {}, .why = input.why, .actor = input.actor};
  if (input.subject) {
    if (!is_node_name(input.subject->name))
      return refuse(ErrorCode::InvalidArgument,
                    "revoking the certificates of " + text_of(*input.subject) + ": not a name");
    if (!ledger.access.revoked.contains(*input.subject) &&
        ledger.access.revoked.size() >= kSubjectsRevokedMost)
      return refuse(ErrorCode::ResourceExhausted,
                    fmt::format("revoking the certificates of {}: those of {} names are revoked, "
                                "as many as the limit allows; revoke by the serial",
                                text_of(*input.subject), ledger.access.revoked.size()));
    event.subject = *input.subject;
    event.before = now;
  } else {
    for (const auto& [subject, keys] : ledger.access.certificates) {
      for (const auto& [key, record] : keys) {
        if (record.serial != input.serial) continue;
        if (record.revoked_at) return nothing();
        event.subject = subject;
        event.key = key;
      }
    }
    if (event.key.empty())
      return refuse(ErrorCode::NotFound,
                    fmt::format("revoking certificate '{}': the controller has no record of this "
                                "serial; revoke all of a node or of a user by its name",
                                input.serial));
    event.serial = input.serial;
  }
  Decision made = accept(std::move(event));
  if (input.subject && input.subject->role == SubjectRole::Node)
    end_replacing_tokens(ledger.access, input.subject->name, input.actor, made);
  return made;
}

}  // namespace muster::core
