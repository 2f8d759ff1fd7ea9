// The key of a certificate that was asked for and has not come yet. It is on the disk before the
// controller sees its public half. So after a crash, the same question is asked again with the same
// key, and the controller gives the same answer: a token is not used up by a lost answer. Stateless
// functions; blocking.
//
// One file of mode 0600. It goes when the credentials are written.
#pragma once

#include <filesystem>
#include <string_view>

#include "common/base/error.h"
#include "common/pki/key.h"

namespace muster::enrol {

// What is there, or a new key, which is then there durably. `maker` ("the agent") is for the
// errors. Errors: those of a private file; a file that is damaged is replaced.
Result<pki::Key> pending_key(const std::filesystem::path& path, std::string_view maker);
void remove_pending_key(const std::filesystem::path& path);

}  // namespace muster::enrol
