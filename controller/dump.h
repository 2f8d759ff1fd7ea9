// `muster-controller --dump DIR`: what a journal adds up to, as text on stdout. Changes nothing on
// the disk.
#pragma once

#include <filesystem>

#include "common/base/error.h"

namespace muster::controller {

// The text; unreadable jobs come first.
Result<std::string> dump_journal(const std::filesystem::path& state_dir);

}  // namespace muster::controller
