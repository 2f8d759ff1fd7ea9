// The fold of the events about join tokens and certificates: a part of apply(). Pure; total.
//
// Records leave here, too, and at no other moment: with each of these events, at most once an hour
// of the events' times. A token leaves 30 days after it was over, a certificate 30 days after its
// end. A key that was revoked by a serial stays: the times are of a clock that may be wrong, and
// without the record the key would count again. An event more than 31 days after the last clearing
// clears nothing, so that one leap of the clock takes no records. No row of these events is ever
// removed from the journal, so a replay clears at the same events and gives the same ledger.
#pragma once

#include "controller/core/model/access_records.h"

namespace muster::core {

// Also the time for which a node whose certificate has ended may renew it.
inline constexpr Duration kAccessKept = std::chrono::hours(24 * 30);

void fold_access(AccessRecords& records, WallTime at, const TokenCreated& event);
void fold_access(AccessRecords& records, WallTime at, const TokenRevoked& event);
void fold_access(AccessRecords& records, WallTime at, const CertificateIssued& event);
void fold_access(AccessRecords& records, WallTime at, const CertificateRevoked& event);
void fold_access(AccessRecords& records, WallTime at, const AuthorityChanged& event);

}  // namespace muster::core
