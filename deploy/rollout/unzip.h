// Inflates what a host compressed with gzip. Stateless; any thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "common/base/error.h"

namespace muster::rollout {

// Bytes that are no gzip are returned as they are: the host has no gzip. DataLoss: they are damaged
// or cut, or would have more than `most` bytes.
Result<std::string> unzipped(std::string bytes, std::size_t most);

}  // namespace muster::rollout
