// Texts at the edge: what a client may bring into the ledger, and how much of what is there it is
// shown. What a journal of an earlier release holds may be longer than what is taken now. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "common/base/error.h"

namespace muster::controller {

inline constexpr std::size_t kReasonBytesMax = 1'024;  // that a client may give
// of a sentence of the ledger: a reason with what stands around it
inline constexpr std::size_t kShownBytesMost = 2'048;

// InvalidArgument: longer than kReasonBytesMax, not UTF-8, or with control characters. `doing`:
// "cancelling job 'x'".
Result<void> check_reason(std::string_view reason, std::string_view doing);

// At most `most` bytes, whole characters; "..." where something was cut off.
std::string bounded(std::string_view text, std::size_t most = kShownBytesMost);

}  // namespace muster::controller
