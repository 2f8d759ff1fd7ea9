// A password in the form in which rclone's configuration has it. The form is that of rclone's
// fs/config/obscure: base64 (RFC 4648, for URLs, no padding) of 16 random bytes and of the password
// under AES-256-CTR with a key that everybody knows. It protects nothing, and rclone takes no
// other.
#pragma once

#include <string>
#include <string_view>

#include "common/base/error.h"

namespace muster::agent {

// Io: the kernel has no random bytes. Internal: OpenSSL fails.
Result<std::string> obscured(std::string_view password);

}  // namespace muster::agent
