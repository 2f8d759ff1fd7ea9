// A Host runs shell scripts on one host over one SSH session, as the login user or, with sudo, as
// root. open() makes one. One thread at a time; blocking.
//
// The login shell may be another one than sh (csh, fish, zsh), and may print lines by itself.
//
// Errors name the host. A password for sudo is asked only where `sudo -n` does not do, and is sent
// on standard input alone. Hosts share it only if the same user is logged in there in the same way
// (port, identity, jump, known_hosts).
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"
#include "common/base/time.h"
#include "deploy/hosts/hosts.h"
#include "deploy/ssh/prompts.h"
#include "deploy/ssh/session.h"

namespace muster::rollout {

inline constexpr Duration kScriptTimeMost = std::chrono::seconds(120);

class Host {
 public:
  static Result<Host> open(const hosts::Login& login, const ssh::Options& options,
                           ssh::Prompts& prompts);
  // The same over a session that is open already.
  static Result<Host> over(const hosts::Login& login, std::unique_ptr<ssh::Session> session,
                           ssh::Prompts& prompts);

  // The script is the text of `sh -c`, its standard input is `input`. Any status is a result.
  Result<ssh::Output> run(std::string_view script, std::string_view input = {},
                          Duration timeout = kScriptTimeMost);
  // The same; a status that is not 0 is an error: "DOING: the last line of standard error". So is
  // an output that was cut (ssh::kOutputBytesMost).
  Result<std::string> need(std::string_view doing, std::string_view script,
                           std::string_view input = {}, Duration timeout = kScriptTimeMost);
  // The same as the login user, also with sudo.
  Result<std::string> need_as_login(std::string_view doing, std::string_view script,
                                    std::string_view input);
  // What the script prints is a secret, as a private key.
  Result<ssh::Secret> need_secret(std::string_view doing, std::string_view script);
  // The script is sent on standard input, for one that is too long for a command line.
  Result<std::string> need_long(std::string_view doing, std::string_view script,
                                Duration timeout = kScriptTimeMost);

  // How it is reached, and what a person should know of that: a key that was recorded.
  [[nodiscard]] const ssh::Transport& transport() const { return session_->transport(); }
  [[nodiscard]] const std::string& name() const { return login_.host; }

 private:
  enum class Rise { None, Quiet, Password };
  Host(hosts::Login login, std::unique_ptr<ssh::Session> session)
      : login_(std::move(login)), session_(std::move(session)) {}
  Result<std::string> text_of(std::string_view doing, Result<ssh::Output> output) const;
  Result<void> find_sudo(ssh::Prompts& prompts);
  Result<void> ask_password(const std::string& user, ssh::Prompts& prompts);
  Result<ssh::Output> send(std::string_view command, std::string_view input, Duration timeout);
  Result<ssh::Output> with_password(std::string_view script, std::string_view line,
                                    Duration timeout, std::string_view input = {});

  hosts::Login login_;
  std::unique_ptr<ssh::Session> session_;
  Rise rise_ = Rise::None;
  ssh::Secret password_;
};

// "~/" at the front is the home directory of the operator.
std::string below_home(const std::string& path);
// The last line of a program's error output, for a sentence.
std::string last_line(std::string_view text);
// A failed script as an error. A full disk is ResourceExhausted.
Error script_error(std::string_view doing, const ssh::Output& output);
// Adds to the error of a full disk how much room the disk of `path` has on the host.
void add_room(Error& error, Host& host, const std::string& path);

}  // namespace muster::rollout
