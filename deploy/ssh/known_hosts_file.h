// Reads known_hosts files, and records the key of a new host in one of them, as OpenSSH does.
// Stateless, any thread; blocking.
//
// record_key() appends one line and never changes another one. One writer at a time: the file is
// locked (flock), read again, and the key is recorded only if the host still has none.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"
#include "deploy/ssh/known_hosts.h"

namespace muster::ssh {

// A file that does not exist is empty. ResourceExhausted: it has more than kFileBytesMost. Io: it
// cannot be read; then nobody knows whether a key is revoked, so there is no answer.
Result<KnownHosts> read_known_hosts(const std::vector<std::string>& files);

struct NewKey {
  std::string_view name;  // as for KnownHosts::check
  std::uint16_t port = kSshPort;
  std::string_view blob;
  bool hash_name = false;
};
// Creates the file (0600) and its directory (0700) if they do not exist. The line is on the disk
// when it returns. Returns the state of the key in that file before: Unknown when it was added, and
// Known, Changed or Revoked when another writer was first; then nothing is added.
Result<KeyAnswer> record_key(const std::string& file, const NewKey& key);

}  // namespace muster::ssh
