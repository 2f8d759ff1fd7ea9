// What can be known of a private key file without its passphrase: its type, its public half,
// whether it is encrypted. Blocking, any thread; the parser is pure. The private half is wiped.
//
// Sources of the formats: PROTOCOL.key of OpenSSH ("openssh-key-v1"), RFC 7468 (PEM).
#pragma once

#include <string>
#include <string_view>

#include "common/base/error.h"

namespace muster::ssh {

struct Identity {
  std::string path;
  std::string type;  // "ssh-ed25519"; empty: it cannot be known
  std::string blob;  // the public half; empty: it cannot be known
  bool encrypted = false;
  bool has_private = false;  // a file with only a public key names a key of the agent
};

Identity parse_identity(std::string_view text);
// NotFound: there is no such file. Where the file does not have the public half in the clear, it is
// read from PATH.pub.
Result<Identity> read_identity(const std::string& path);

// Whether libssh2 1.10 can sign with keys of this type so that today's servers accept it. It cannot
// for RSA keys (SHA-1), security keys and certificates.
bool libssh2_signs(std::string_view type);

}  // namespace muster::ssh
