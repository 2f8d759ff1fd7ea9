// Decides about the steps of a change of the cluster's CA. Pure.
//
//   published   nodes learn to trust it; another one signs
//   signs       it signs every certificate; those of the one before still count
//   dropped     the old one, or one that was only published, is trusted no more
//
// A decision says what is true from now on. The files of the CAs follow it, also after a crash
// (common/pki/authority_files.h).
#pragma once

#include <optional>
#include <string>

#include "controller/core/model/access_input.h"
#include "controller/core/model/decision.h"
#include "controller/core/model/ledger.h"

namespace muster::core {

// Signs, and it signs already (`signing`): the first one, or one that somebody put into the place
// of the one before, whose key is gone. That is recorded, and all others are dropped. With the
// first one, tokens that were made before it (`made_at`) are revoked.
//
// Conflict: it is not the turn of this step. Whether nodes are ready for it, the caller has asked.
Decision decide_change(const Ledger& ledger, const ChangeAuthority& input);

// Why nothing of this CA may be issued: the cluster signs with another one. The files follow a
// decision, so the controller has the CA of before until then, and for as long as they cannot be
// written. What that CA issued later would not be among what the drop of it waits for. Io: it may
// be asked for again. A ledger that knows no CA yet refuses none.
[[nodiscard]] std::optional<Error> refuse_authority(const AccessRecords& records,
                                                    const std::string& sha256,
                                                    const std::string& doing);

// No certificate and no token is of the present CA, so that another one may take its place at once.
[[nodiscard]] bool nothing_issued(const AccessRecords& records);

}  // namespace muster::core
