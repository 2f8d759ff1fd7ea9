// Finds what a record has of a newer version: fields without a name here, and enum values without
// one (proto3 keeps both). It covers the messages inside the record, too. Pure.
#pragma once

#include <google/protobuf/message.h>

#include <string>

namespace muster::journal {

// Names the first one by its path: "job_submitted.spec.launch.per: value 9",
// "job_submitted.spec: field 77", "field 200". Empty: there is none.
std::string first_unknown(const google::protobuf::Message& message);

// Removes all of them.
void leave_out_unknown(google::protobuf::Message& message);

}  // namespace muster::journal
