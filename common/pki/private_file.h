// Reads a file whose bytes are a secret. Stateless, any thread; blocking.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

#include "common/base/error.h"

namespace muster::pki {

// `what` names the file ("the credentials file"), and `help` says what to do when others may read
// it. Errors: NotFound; NotAllowed when group or others may read, write or execute the file, or
// when it belongs to neither this user nor root; ResourceExhausted when it has more than `most`
// bytes; Io, also for what is no regular file.
Result<std::string> read_private_file(const std::filesystem::path& path, std::size_t most,
                                      std::string_view what, std::string_view help);

}  // namespace muster::pki
