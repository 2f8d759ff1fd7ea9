// A Session by OpenSSH's program `ssh`: one process in the background has the connection, and each
// command is one more process that uses it through a socket in a private directory. See session.h
// for what a session promises.
//
// Without answers `ssh` never asks (BatchMode). With answers it gets them from this process
// (askpass.h). It does not report the signal of a command, only status 255. If this process is
// killed, the process in the background ends after two minutes without a run (with answers: an
// hour).
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "deploy/ssh/askpass.h"
#include "deploy/ssh/deadline.h"
#include "deploy/ssh/openssh_args.h"
#include "deploy/ssh/session.h"

namespace muster::ssh {

// The plan without its folder and time, in values that live as long as the session.
struct OpenSshRequest {
  Route route;  // has a program
  std::string ssh_config;
  bool accept_new = false;
  std::string why;  // why it is this transport
  AskpassAnswers answers = {};
  std::string askpass_program = {};  // for them
  std::vector<bool> passwords = {};  // by hop: whether there is one among the answers
};

struct OpenSshOutcome {
  std::unique_ptr<Session> session;
  std::optional<Error> error;  // a reason without a context
  // This hop was reached, refused what it was given, and accepts keys.
  std::optional<std::size_t> needs_key = {};
  // This hop refused what it was given, and accepts a password.
  std::optional<std::size_t> needs_password = {};
};

OpenSshOutcome connect_by_openssh(OpenSshRequest request, Deadline deadline);

}  // namespace muster::ssh
