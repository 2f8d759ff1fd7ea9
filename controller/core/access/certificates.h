// Decides about certificates that the owner of the cluster issues and revokes. Pure.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "controller/core/model/access_input.h"
#include "controller/core/model/decision.h"
#include "controller/core/model/ledger.h"

namespace muster::core {

Decision decide_issue(const Ledger& ledger, const IssueCertificate& input);
// By a name, also one that the ledger has no certificate of: releases before kept none of what they
// issued. Unused tokens by which another machine could take the place of that node end with them.
// NotFound for a serial that the ledger does not know.
Decision decide_revoke(const Ledger& ledger, const RevokeCertificate& input, WallTime now);

// By the key; none: an empty map.
[[nodiscard]] const std::map<std::string, CertificateRecord>& keys_of(const Ledger& ledger,
                                                                      const Subject& subject);

// Why this certificate may not be issued to the subject: its CA signs no more, its key was revoked,
// or there are too many certificates.
std::optional<Error> refuse_certificate(const Ledger& ledger, const Subject& subject,
                                        const NewCertificate& made, const std::string& doing);

[[nodiscard]] CertificateIssued issued(const Subject& subject, const NewCertificate& made,
                                       std::string token, std::string actor);

// "node 'n1'", "user 'ann'"
[[nodiscard]] std::string text_of(const Subject& subject);
// "its key was revoked at 2026-01-02T03:04:05Z: the machine is lost"
[[nodiscard]] std::string revoked_text(const CertificateRecord& record);
// Of a token that is revoked.
std::string revoked_text(const std::string& token, const TokenRecord& record);

}  // namespace muster::core
