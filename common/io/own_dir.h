// Whether a directory belongs to this process's user. Any thread; blocking.
#pragma once

#include <filesystem>

#include "common/base/error.h"

namespace muster::io {

// NotAllowed: it belongs to another user, who could replace what is in there.
Result<void> check_own_dir(const std::filesystem::path& dir);

}  // namespace muster::io
