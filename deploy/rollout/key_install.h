// KeyInstall puts the operator's public key into the account of a host that was reached with a
// password, as ssh-copy-id does, so that later runs need none. Any thread; blocking. One host at a
// time: hosts may share a home directory.
//
// It appends one line to ~/.ssh/authorized_keys of the login user, and changes no other line. A key
// that is there already is not added again. The key travels on standard input.
#pragma once

#include <string>
#include <string_view>

#include "common/base/error.h"
#include "common/base/mutex.h"
#include "deploy/rollout/host.h"

namespace muster::rollout {

// The line for authorized_keys. InvalidArgument: the text is not one line with one public key.
Result<std::string> public_key_line(std::string_view text);

class KeyInstall {
 public:
  // `file`: a public key for all hosts; empty: that of the login's identity, else the first one of
  // ~/.ssh/id_ed25519.pub, id_ecdsa.pub, id_rsa.pub.
  explicit KeyInstall(std::string file) : file_(std::move(file)) {}

  // The line for a host. Errors: there is no such key, or it cannot be read.
  [[nodiscard]] Result<std::string> line_for(const hosts::Login& login) const;
  // Installs line_for(login). Returns what was done, for people.
  Result<std::string> install(Host& host, const hosts::Login& login);

 private:
  const std::string file_;
  Mutex mutex_;
};

}  // namespace muster::rollout
