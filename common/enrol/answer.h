// Answers of the controller at the enrolment port and socket, as the client reads them. Pure; any
// thread. Internal to common/enrol.
#pragma once

#include <string>
#include <string_view>

#include "common/base/error.h"
#include "common/enrol/client.h"
#include "muster/v1/enrolment.pb.h"

namespace muster::enrol {

// Errors are reasons without a context: InvalidArgument.
Result<v1::EnrolResponse> parse_answer(std::string_view bytes);
// `doing` begins the sentence of a refusal. NotAllowed: it is final; ResourceExhausted: it is not.
Result<Issued> issued_of(const v1::EnrolResponse& response, const std::string& doing);

}  // namespace muster::enrol
