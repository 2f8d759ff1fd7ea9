// Opens files of a run directory that a job may have replaced: its logs, and what its setup and its
// launchers write. Stateless functions. Any thread; blocking.
//
// No link is followed, neither in the place of the file nor of `logs` nor of the run directory, and
// only a regular file is opened. Records have functions of their own (records.h, event_log.h).
#pragma once

#include <filesystem>
#include <string>

#include "common/base/error.h"
#include "common/io/unique_fd.h"

namespace muster::rundir {

// `file` is a path of RunLayout: in the run directory, or in `logs` below it. `flags` and `mode` as
// of open(2); O_TRUNC is not allowed, because it would empty a file before it is checked. No
// descriptor, and errno: it cannot be opened. ELOOP: a link, or what is no regular file.
io::UniqueFd open_file(const std::filesystem::path& file, int flags, unsigned mode = 0);

// Reads it whole. More than `most` bytes is ErrorCode::ResourceExhausted. A link, or what is no
// regular file, is ErrorCode::DataLoss.
Result<std::string> read_file(const std::filesystem::path& file, std::size_t most);

}  // namespace muster::rundir
