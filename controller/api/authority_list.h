// The CAs as messages of the API, and for which nodes a step of a change still waits. Pure; on the
// shell's strand.
#pragma once

#include <string>
#include <vector>

#include "controller/access/authorities.h"
#include "controller/core/model/ledger.h"
#include "controller/core/model/presence.h"
#include "muster/v1/agent_service.pb.h"
#include "muster/v1/certificate_service.pb.h"

namespace muster::controller {

// Nodes that are connected and have certificates, as far as their last report says. A node that has
// reported nothing yet is among them.
//
// Those that do not trust this CA:
[[nodiscard]] std::vector<std::string> not_trusting(const core::Presence& presence,
                                                    const std::string& digest);
// Those whose present certificate this CA has signed, or an unknown one. Here nodes that are away
// are among them, but for dead ones: when this CA is dropped they would have no way back. Of a node
// that was not heard since the controller's start, the records say whether it got a certificate
// since the present CA signs.
[[nodiscard]] std::vector<std::string> signed_by(const core::Ledger& ledger,
                                                 const core::Presence& presence,
                                                 const std::string& digest);

// Certificates of users that were issued before this CA signed, and count now.
[[nodiscard]] std::uint32_t earlier_user_certificates(const core::AccessRecords& records,
                                                      WallTime now);

// The next one, the one that signs, and the old one.
[[nodiscard]] google::protobuf::RepeatedPtrField<v1::Authority> list_authorities(
    const core::Ledger& ledger, const core::Presence& presence, const AuthoritiesNow& authorities,
    WallTime now);

// What an agent is sent of them.
[[nodiscard]] v1::Authorities trusted_by_agents(const AuthoritiesNow& authorities);

}  // namespace muster::controller
