// Decides whether a user gets a certificate: with a personal token, or as the one whom the kernel
// names at the enrolment socket. Pure.
//
// What is accepted becomes a CertificateIssued, and with a token by that a use of it. The answers
// to those who have no sound token say no more than that.
//
// A user whose certificates were revoked by name has to be let in again by a person: with a token
// that was made after that, or a certificate of 'muster cert issue'. The account on the machine
// alone lets nobody in again.
#pragma once

#include <string>

#include "common/base/error.h"
#include "controller/core/model/access_input.h"
#include "controller/core/model/decision.h"
#include "controller/core/model/ledger.h"

namespace muster::core {

// Whose personal token this is. NotAllowed: the token is not known, is for nodes, was revoked or
// has ended. Whether it is used up is decided with the key.
Result<std::string> user_of_token(const Ledger& ledger, const std::string& token,
                                  const std::string& secret_sha256, WallTime now);

// The same token and key again is the retry of a login whose answer was lost: it is allowed, and
// counts as no further use.
Decision decide_login(const Ledger& ledger, const LoginWithToken& input, WallTime now);
Decision decide_login(const Ledger& ledger, const LoginByUid& input, WallTime now);

}  // namespace muster::core
