// Finds the fields and enum values of a message that this version has no name for. Pure.
//
// A newer client may send them. An older controller would lose them or, worse, keep them.
#pragma once

#include <google/protobuf/message.h>

#include <string>
#include <vector>

namespace muster::controller {

// "launch.field 100", "field 7", "launch.per value 9": wherever they are in the message, in the
// order of the known fields. A field is named once for each message that contains it.
std::vector<std::string> unknown_fields(const google::protobuf::Message& message);

}  // namespace muster::controller
