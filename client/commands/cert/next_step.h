// Says in words how far a change of the CA has come, and what the next step is. Pure.
#pragma once

#include <string>

#include "muster/v1/certificate_service.pb.h"

namespace muster::client {

// Lines for people, each with its line end.
[[nodiscard]] std::string next_step_text(
    const google::protobuf::RepeatedPtrField<v1::Authority>& authorities);

[[nodiscard]] std::string state_word(v1::AuthorityState state);

// Nullptr: none is in this state.
[[nodiscard]] const v1::Authority* authority_in(
    const google::protobuf::RepeatedPtrField<v1::Authority>& authorities, v1::AuthorityState state);

}  // namespace muster::client
