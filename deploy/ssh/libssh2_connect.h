// Makes the session by libssh2: through the jump hosts to the target, with the check of each host's
// key and the authentication. Stateless; blocking; any thread.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "common/base/error.h"
#include "deploy/ssh/authenticate.h"
#include "deploy/ssh/prompts.h"
#include "deploy/ssh/route.h"
#include "deploy/ssh/session.h"

namespace muster::ssh {

struct Libssh2Outcome {
  std::unique_ptr<Wire> wire;  // authenticated at the target
  std::vector<std::string> notes;
  std::optional<Error> error;  // without a context
  // OpenSSH's program may be able to do what libssh2 1.10 cannot: "there is no common algorithm".
  // With it, `error` is what counts if there is no such program.
  std::string openssh_may;
  // The target refused the keys, and accepts a password.
  bool needs_password = false;
};

struct Libssh2Request {
  const Route& route;
  bool accept_new = false;
  Deadline deadline{};
  const Secret* password = nullptr;  // for the target, in place of keys
};

Libssh2Outcome connect_by_libssh2(const Libssh2Request& request, Prompts& prompts);

}  // namespace muster::ssh
