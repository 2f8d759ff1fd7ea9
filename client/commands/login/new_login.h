// One login: a key is made here, or at the socket that of the last login is taken, the controller
// gives a certificate for it, and both are written where the other verbs find them
// (call/login_files.h). Blocking; one thread.
//
// What is there already is replaced only at the end, when everything of the new login is sound.
#pragma once

#include <string>

#include "client/commands/call/context.h"
#include "client/commands/call/login_files.h"
#include "common/base/error.h"
#include "common/base/time.h"
#include "common/pki/credentials.h"

namespace muster::client {

struct LoginOptions {
  std::string token_file;  // empty: at the socket
  std::string enrol;       // HOST:PORT, with a token; empty: that of the last login
  std::string socket;      // empty: that of --controller FILE, or the usual path
  std::string lifetime = "24h";
  std::string dir;  // empty: the usual one
};

struct Login {
  pki::Credentials credentials;
  std::string address;  // HOST:PORT of the controller
  WallTime controller;  // its clock, when it answered
};

// Errors: NotFound (no socket, no token file), NotAllowed (refused; or the clock of one of the two
// machines is wrong), and those of the exchange (common/enrol/client.h).
Result<Login> log_in(const Context& context, const LoginOptions& options, const LoginFiles& files);

}  // namespace muster::client
