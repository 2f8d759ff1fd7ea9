// Fields of a message that this version has no name for: what a newer client says and an older
// controller would lose or, worse, keep. Pure.
#pragma once

#include <google/protobuf/message.h>

#include <string>
#include <vector>

namespace muster::controller {

// "launch.field 100", "field 7": wherever in the message they are, in the order of the known
// fields. A field is named once a place.
std::vector<std::string> unknown_fields(const google::protobuf::Message& message);

}  // namespace muster::controller
