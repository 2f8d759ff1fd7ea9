// `muster-controller --dump DIR`: prints as text the ledger that a journal gives. main() calls it
// on the main thread. It changes nothing on the disk.
#pragma once

#include <filesystem>

#include "common/base/error.h"

namespace muster::controller {

// The text; unreadable jobs come first.
Result<std::string> dump_journal(const std::filesystem::path& state_dir);

}  // namespace muster::controller
