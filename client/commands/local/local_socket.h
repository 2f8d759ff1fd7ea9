// Chooses where the socket of a private cluster is. Stateless; reads the environment, and makes a
// directory. One thread.
//
// It is in the cluster's directory. If that path is too long for a unix socket, it is in a
// directory of this user alone: $XDG_RUNTIME_DIR, or /tmp/muster-UID.
#pragma once

#include <filesystem>

#include "common/base/error.h"

namespace muster::client {

// Errors: NotAllowed (the directory is another user's, or others may enter it), Io.
Result<std::filesystem::path> place_local_socket(const std::filesystem::path& dir);

// Removes the socket of a stopped cluster, where its endpoint file says that it is. Outside of the
// cluster's directory, its lock file goes as well.
void remove_local_socket(const std::filesystem::path& dir);

}  // namespace muster::client
