// Bounds texts at the edge: those that a client may put into the ledger, and those that it is
// shown. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "common/base/error.h"

namespace muster::controller {

inline constexpr std::size_t kReasonBytesMax = 1'024;  // of a reason from a client
// Of a sentence of the ledger: a reason and the text around it.
inline constexpr std::size_t kShownBytesMost = 2'048;

// InvalidArgument: longer than kReasonBytesMax, not UTF-8, or with control characters. `doing`:
// "cancelling job 'x'".
Result<void> check_reason(std::string_view reason, std::string_view doing);

// At most `most` bytes, in whole characters. "..." at the end if something was cut off.
std::string bounded(std::string_view text, std::size_t most = kShownBytesMost);

}  // namespace muster::controller
