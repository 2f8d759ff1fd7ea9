// The place of the enrolment socket. Every user may connect there, so nobody else may be able to
// put another socket in its place: who answers there decides which controller a user calls. Both
// ends check it. Stateless; blocking; any thread.
#pragma once

#include <cstdint>
#include <filesystem>

#include "common/base/error.h"

namespace muster::enrol {

// Where the units of the packages, and `muster deploy` as root, have it.
inline constexpr const char* kLoginSocket = "/run/muster/login.sock";

// The path is absolute, and group and others may not write in its directory, nor in those above it
// unless these are sticky. Errors are reasons without a context: InvalidArgument, NotFound (there
// is no such directory), NotAllowed, Io.
Result<void> check_socket_place(const std::filesystem::path& path);

// Its directory and those above it belong to root or to the controller's user. NotAllowed,
// NotFound, Io.
Result<void> check_socket_owner(const std::filesystem::path& path, std::uint32_t controller);

}  // namespace muster::enrol
