// A Session by OpenSSH's program `ssh`: one process in the background has the connection, and each
// command is one more process that uses it through a socket in a private directory. See session.h
// for what a session promises.
//
// `ssh` never asks (BatchMode), so this transport has keys and ssh-agent, but no passwords. It does
// not report the signal of a command, only status 255. If this process is killed, the process in
// the background ends after two minutes without a run.
#pragma once

#include <memory>
#include <string>

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
};

// Errors are reasons without a context.
Result<std::unique_ptr<Session>> connect_by_openssh(OpenSshRequest request, Deadline deadline);

}  // namespace muster::ssh
