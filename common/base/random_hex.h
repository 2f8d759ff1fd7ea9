// Random bytes of the kernel as hex digits, for ids and secrets. Thread-safe.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "common/base/error.h"

namespace muster {

// Two digits for each byte; at most 256 bytes. Io: "DOING: asking for random bytes: why".
Result<std::string> random_hex(std::size_t bytes, std::string_view doing);

}  // namespace muster
