// The answers of the enrolment port and of the enrolment socket, as bytes of an EnrolResponse.
// Pure; any thread.
#pragma once

#include <string>

#include "common/base/error.h"
#include "common/base/time.h"
#include "controller/enrol/enrolments.h"

namespace muster::controller {

[[nodiscard]] std::string issued_message(EnrolmentAnswer answer, WallTime now);
[[nodiscard]] std::string refused_message(const Error& error, WallTime now);
// The bytes to send. A message that is longer than a frame becomes a refusal.
[[nodiscard]] std::string answer_in_frame(const std::string& message, WallTime now);
// The sentence of a refusal, at most 4 KiB.
[[nodiscard]] std::string sentence_of(const Error& error);

}  // namespace muster::controller
