// The key of a certificate that the agent has asked for and is not in the credentials file yet
// (common/enrol/pending_key.h), in the agent's state directory; and the certificate, when it has
// come. Stateless functions; blocking.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "common/enrol/client.h"
#include "common/pki/credentials.h"
#include "common/pki/key.h"

namespace muster::agent {

// What is there, or a new key, which is then there durably. Errors: those of a private file; a file
// that is damaged is replaced.
Result<pki::Key> pending_key(const std::filesystem::path& path);
void remove_pending_key(const std::filesystem::path& path);

// A certificate that has come and is not in the file yet: the clock or the disk does not allow it.
// It is kept until it is, because the controller gives only so many for one key.
struct Received {
  pki::Credentials credentials;
  WallTime controller;  // its clock, when it answered
};

// The credentials of an answer. InvalidArgument unless the certificate is for `key` and for this
// node, and one CA in it has one of these digests. The others are those to which the controller, or
// whoever it was before, changes: it has proven to be of a CA that counts.
Result<Received> received(const enrol::Issued& issued, const pki::Key& key, const std::string& node,
                          const std::vector<std::string>& ca_digests);

// An error when the new certificate is not valid by this machine's clock. The sentence has both
// clocks.
Result<void> check_clock(const Received& received, WallTime now);

}  // namespace muster::agent
