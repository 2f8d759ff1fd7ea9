// Makes the session by libssh2: through the jump hosts to the target, with the check of each host's
// key and the authentication. Stateless; blocking; any thread.
#pragma once

#include <memory>
#include <optional>
#include <span>
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
  // This hop refused what it was given, and accepts a password.
  std::optional<std::size_t> needs_password;
};

struct Libssh2Request {
  const Route& route;
  bool accept_new = false;
  Deadline deadline{};
  // By hop, in place of keys; it may have fewer than there are hops.
  std::span<const std::optional<Secret>> passwords;
};

Libssh2Outcome connect_by_libssh2(const Libssh2Request& request, Prompts& prompts);

}  // namespace muster::ssh
