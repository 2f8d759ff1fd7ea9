// Authenticates a session of libssh2: keys of ssh-agent, key files, a password. One thread at a
// time; every step ends by the Wire's deadline, which is moved by the time that a person took.
//
// Order of the keys: the key files as ssh_config has them, each by the agent if it has that key;
// then the agent's other keys, unless IdentitiesOnly; then files with a passphrase. A key that
// libssh2 cannot use is not offered, and is reported.
#pragma once

#include <string>
#include <vector>

#include "common/base/error.h"
#include "deploy/ssh/prompts.h"
#include "deploy/ssh/ssh_config.h"
#include "deploy/ssh/wire.h"

namespace muster::ssh {

struct AuthReport {
  std::vector<std::string> methods;   // what the host accepts, by its own answer
  std::vector<std::string> tried;     // "key '/keys/id' (ssh-ed25519)"
  std::vector<std::string> unusable;  // keys of types that libssh2 cannot use
  std::vector<std::string> notes;     // "key '/keys/id': its passphrase was not given"

  [[nodiscard]] bool accepts(std::string_view method) const;
  [[nodiscard]] bool accepts_password() const {
    return accepts("password") || accepts("keyboard-interactive");
  }
  // The sentence for a host that accepts nothing of this.
  [[nodiscard]] std::string text() const;
};

// True: the host accepted it. False: it refused everything that was tried. Errors are those of the
// Wire.
Result<bool> authenticate_by_keys(Wire& wire, const Hop& hop, Prompts& prompts, AuthReport& report);
// By "password", or by "keyboard-interactive" where it asks one question.
Result<bool> authenticate_by_password(Wire& wire, const Hop& hop, const Secret& password,
                                      AuthReport& report);

}  // namespace muster::ssh
