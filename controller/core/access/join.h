// Decides whether a node gets a certificate: with a join token, or with a key that is registered
// for it. Pure.
//
// What is accepted becomes a CertificateIssued, and by that a use of the token. The answers to
// those who have no sound token say no more than that. The agent puts in front of a refusal what it
// asked for.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "common/base/error.h"
#include "controller/core/model/access_input.h"
#include "controller/core/model/decision.h"
#include "controller/core/model/ledger.h"

namespace muster::core {

// What decide_join() refuses without a look at the certificate: the token is not known, is a
// user's, was revoked, has ended, or is for other nodes. So nothing has to be signed to know it.
// Whether it is used up is decided with the key.
std::optional<Error> refuse_join_token(const Ledger& ledger, const std::string& token,
                                       const std::string& secret_sha256, const std::string& node,
                                       WallTime now);

// The same token, key and node again is the retry of a join whose answer was lost: it is allowed,
// and counts as no further use. A name that is known with another key is refused, unless the token
// may replace it: then all other keys of the name are revoked by the same decision. `connected`: an
// agent of the name is, and was heard lately; then nothing replaces it.
Decision decide_join(const Ledger& ledger, const JoinNode& input, bool connected, WallTime now);
// The certificate of the registered key may have ended, within kAccessKept.
Decision decide_renew(const Ledger& ledger, const RenewNode& input, WallTime now);

// True: the pattern, which has at most one '*', matches the whole name.
[[nodiscard]] bool matches(std::string_view pattern, std::string_view name);
// In a time that does not depend on where the texts differ.
[[nodiscard]] bool same_digest(std::string_view one, std::string_view other);

}  // namespace muster::core
