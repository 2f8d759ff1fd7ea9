// Finds in the log of OpenSSH's `ssh` (LogLevel DEBUG1) why it could not connect. Pure; any bytes.
//
// Its texts are not an interface, but they have been the same for many releases. What is not
// recognized becomes an error with the log's last lines, so nothing is lost.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"

namespace muster::ssh {

inline constexpr std::size_t kLogBytesMost = std::size_t{256} << 10U;

// A reason without a context. `entry` is the host's name in the known_hosts files `files`. `asked`:
// `ssh` had answers of a person.
Error openssh_failure(std::string_view log, const std::string& entry,
                      const std::vector<std::string>& files, bool asked = false);
// Whether the host was reached, refused everything that was tried, and accepts keys; or passwords,
// other than by keyboard-interactive.
bool openssh_needs_key(std::string_view log);
bool openssh_needs_password(std::string_view log);
// For people: the key that was recorded.
std::vector<std::string> openssh_notes(std::string_view log);

}  // namespace muster::ssh
