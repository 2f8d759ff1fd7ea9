// Answers the questions of OpenSSH's `ssh`, which has no terminal here. `ssh` starts the program in
// SSH_ASKPASS for each question, with the question as its argument, and reads the answer from its
// output (ssh(1)). That program is muster itself (run_askpass). It gets the answer over a socket in
// a private directory from the process that has it (AskpassServer). So a secret is never on a
// command line, in an environment or in a file.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"
#include "deploy/ssh/secret.h"

namespace muster::ssh {

struct AskpassAnswers {
  struct Passphrase {
    std::string path;  // of the key's file, as `ssh` got it
    Secret secret;
  };
  struct Password {
    std::vector<std::string> accounts;  // USER@HOST, with each name that `ssh` may show
    Secret secret;
  };
  std::vector<Passphrase> passphrases;
  std::vector<Password> passwords;

  [[nodiscard]] bool empty() const { return passphrases.empty() && passwords.empty(); }
};

// The answer to a question of `ssh`. Null: there is none. Pure.
//
// Source: sshconnect2.c of OpenSSH 7.4 to 9.9, "Enter passphrase for key '%.100s': " and
// "%.30s@%.128s's password: " (in newer ones without the bounds), with the name in lower case.
// Questions of keyboard-interactive are the host's own text, so they have no answer here: a host
// could ask for the secret of another one.
const Secret* answer_to(std::string_view question, const AskpassAnswers& answers);

// Gives the answers to processes of this user, on a thread of its own, until it is destroyed.
class AskpassServer {
 public:
  // `socket`: a path in a private directory. `answers` must outlive the server.
  static Result<std::unique_ptr<AskpassServer>> start(const std::string& socket,
                                                      const AskpassAnswers& answers);
  ~AskpassServer();
  AskpassServer(const AskpassServer&) = delete;
  AskpassServer& operator=(const AskpassServer&) = delete;

 private:
  struct Impl;
  explicit AskpassServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// What `ssh` needs in its environment to ask the server at this socket by this program.
std::vector<std::string> askpass_environment(const std::string& program, const std::string& socket);

// Whether `ssh` has started this process to answer a question.
bool is_askpass(int argc);
// The program that `ssh` starts. Returns its exit status: 0, or 1 without an answer.
int run_askpass(const char* question);

}  // namespace muster::ssh
