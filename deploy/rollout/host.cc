#include "deploy/rollout/host.h"

#include <fmt/format.h>

#include <cstdlib>
#include <utility>

#include "common/base/controls.h"
#include "common/spec/keys/values.h"
#include "common/text/shell_word.h"

namespace muster::rollout {
namespace {

constexpr int kPasswordTries = 3;  // as sudo's passwd_tries

// The line between the password and the script's input, and the status of a script that does not
// find it.
constexpr std::string_view kPasswordRead = "muster-password-was-read";
constexpr int kPasswordLeft = 48;

// What a login shell prints by itself comes before this line, and the script's output after it.
constexpr std::string_view kBegins = "muster-output-begins\n";

// A command that sh, csh, fish and zsh read alike: one line, and in its quotes nothing that one of
// them expands. printf makes the script of it again.
std::string for_any_shell(std::string_view script) {
  std::string text;
  text.reserve(script.size() + script.size() / 4);
  for (const char c : script) {
    if (std::string_view("'\\!\n").find(c) == std::string_view::npos) {
      text += c;
    } else {
      text += fmt::format("\\0{:03o}", static_cast<unsigned>(c));
    }
  }
  return fmt::format("sh -c 'echo {}; eval \"$(printf %b \"$1\")\"' sh '{}'",
                     kBegins.substr(0, kBegins.size() - 1), text);
}

std::unexpected<Error> not_root(const hosts::Login& login, std::string_view why) {
  return fail(ErrorCode::NotAllowed, fmt::format("becoming root on '{}': {}", login.host, why));
}

ssh::Target target_of(const hosts::Login& login) {
  ssh::Target target{.host = login.host,
                     .address = login.address,
                     .port = login.port,
                     .user = login.user,
                     .identity_file = below_home(login.identity),
                     .jump = login.jump,
                     .known_hosts = {},
                     .accept_new = login.accept_new};
  if (!login.known_hosts.empty()) target.known_hosts.push_back(below_home(login.known_hosts));
  return target;
}

}  // namespace

std::string below_home(const std::string& path) {
  if (!path.starts_with("~/")) return path;
  const char* home = std::getenv("HOME");
  return std::string(home == nullptr ? "" : home) + path.substr(1);
}

std::string last_line(std::string_view text) {
  constexpr std::size_t kLineMost = 300;
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.remove_suffix(1);
  text.remove_prefix(text.rfind('\n') == std::string_view::npos ? 0 : text.rfind('\n') + 1);
  return without_controls(spec::readable(text.substr(0, kLineMost)));
}

Error script_error(std::string_view doing, const ssh::Output& output) {
  const std::string why = !output.signal.empty() ? fmt::format("ended by SIG{}", output.signal)
                          : output.err.empty()   ? fmt::format("exit status {}", output.status)
                                                 : last_line(output.err);
  const bool full = output.err.find("No space left") != std::string::npos ||
                    output.err.find("quota exceeded") != std::string::npos;
  return {.code = full ? ErrorCode::ResourceExhausted : ErrorCode::Io,
          .message = fmt::format("{}: {}{}", doing, why,
                                 full ? "; the disk is full: make room, then run it again" : "")};
}

void add_room(Error& error, Host& host, const std::string& path) {
  if (error.code != ErrorCode::ResourceExhausted) return;
  const auto shown = host.run("LC_ALL=C; export LC_ALL; d=" + shell_word(path) + R"sh(
while [ ! -d "$d" ] && [ "$d" != / ]; do d=$(dirname "$d"); done
df -Pk "$d" 2>/dev/null | awk 'END { print $4 " KiB free on the disk of " $6 }'
)sh");
  if (!shown || !shown->ok() || shown->out.empty()) return;
  error.message += fmt::format(" ('{}' on '{}': {})", path, host.name(), last_line(shown->out));
}

Result<Host> Host::open(const hosts::Login& login, const ssh::Options& options,
                        ssh::Prompts& prompts) {
  auto session = ssh::connect(target_of(login), options, prompts);
  if (!session) return fail(std::move(session.error()));
  return over(login, std::move(*session), prompts);
}

Result<Host> Host::over(const hosts::Login& login, std::unique_ptr<ssh::Session> session,
                        ssh::Prompts& prompts) {
  Host host(login, std::move(session));
  if (login.sudo) {
    if (auto found = host.find_sudo(prompts); !found) return fail(std::move(found.error()));
  }
  return host;
}

Result<void> Host::find_sudo(ssh::Prompts& prompts) {
  const auto denied = [&](std::string_view why) { return not_root(login_, why); };
  auto tried = send(
      "LC_ALL=C; export LC_ALL; if [ \"$(id -u)\" = 0 ]; then exit 0; fi; command -v sudo "
      ">/dev/null || exit "
      "47; id -un; sudo -n sh -c : >/dev/null && exit 46",
      {}, kScriptTimeMost);
  if (!tried) return fail(std::move(tried.error()));
  if (tried->status == 0) return {};  // the login user is root
  if (tried->status == 46) {
    rise_ = Rise::Quiet;
    return {};
  }
  if (tried->status == 47)
    return denied(
        "there is no sudo; log in as root, or remove sudo: true and run it as the "
        "login user");
  if (tried->err.find("password") == std::string::npos)
    return denied(fmt::format("sudo refuses: {}", last_line(tried->err)));
  return ask_password(last_line(tried->out), prompts);
}

Result<void> Host::ask_password(const std::string& user, ssh::Prompts& prompts) {
  const ssh::Question question{
      .kind = ssh::Question::Kind::Password,
      .subject = fmt::format("sudo of {} by port {}, identity '{}', jump '{}', known_hosts '{}'",
                             user, login_.port, login_.identity, login_.jump, login_.known_hosts),
      .text = fmt::format("password of {} for sudo on '{}' and the hosts with the same login", user,
                          login_.host)};
  for (int tries = 1;; ++tries) {
    auto answer = prompts.ask(question);
    if (!answer)
      return not_root(login_,
                      "sudo wants a password, and there is nobody to ask; let the login user run "
                      "sudo without one (NOPASSWD), or run this in a terminal");
    password_ = std::move(*answer);
    rise_ = Rise::Password;
    // Alone on standard input: a second line would be a second try of a wrong password.
    auto checked = with_password(fmt::format("if read -r line; then exit {}; fi", kPasswordLeft),
                                 {}, kScriptTimeMost);
    if (!checked) return fail(std::move(checked.error()));
    if (checked->ok()) return {};
    const bool wrong = checked->err.find("try again") != std::string::npos ||
                       checked->err.find("incorrect password") != std::string::npos;
    if (wrong) prompts.refused(question, password_);
    if (!wrong || tries == kPasswordTries)
      return not_root(login_, fmt::format("sudo refuses: {}", last_line(checked->err)));
  }
}

Result<ssh::Output> Host::send(std::string_view command, std::string_view input, Duration timeout) {
  auto output =
      session_->run({.text = for_any_shell(command)},
                    input.empty() ? ssh::Source::none() : ssh::Source::memory(input), timeout);
  if (!output) return output;
  const std::size_t at = output->out.find(kBegins);
  if (at == std::string::npos)
    return fail(
        ErrorCode::NotAllowed,
        fmt::format("running a command on '{}': the login shell does not run it: {}; give "
                    "the user a shell (chsh -s /bin/sh), or log in as another one",
                    login_.host, last_line(output->err.empty() ? output->out : output->err)));
  // It may be a private key. The append overwrites the end, which the erasure leaves in memory.
  const std::size_t before = at + kBegins.size();
  output->out.erase(0, before).append(before, '\0').resize(output->out.size() - before);
  return output;
}

Result<ssh::Output> Host::run(std::string_view script, std::string_view input, Duration timeout) {
  if (rise_ == Rise::None) return send(script, input, timeout);
  if (rise_ == Rise::Quiet) return send("exec sudo -n sh -c " + shell_word(script), input, timeout);
  const std::string checked =
      fmt::format("read -r line && [ \"$line\" = {} ] || exit {}\n", kPasswordRead, kPasswordLeft);
  return with_password(checked + std::string(script), std::string(kPasswordRead) + "\n", timeout,
                       input);
}

// sudo reads the password's line, and leaves the rest to the script. -k: it reads it every time.
// Where a rule lets the user run sh without a password, sudo reads nothing: then the password is
// the script's first line, and the script must not use it.
Result<ssh::Output> Host::with_password(std::string_view script, std::string_view line,
                                        Duration timeout, std::string_view input) {
  std::string bytes;
  bytes.reserve(password_.size() + 1 + line.size() + input.size());
  bytes.append(password_.c_str()).append("\n").append(line).append(input);
  auto output = send("exec sudo -k -S -p '' sh -c " + shell_word(script), bytes, timeout);
  ::explicit_bzero(bytes.data(), bytes.size());
  if (output && output->status == kPasswordLeft)
    return not_root(login_,
                    "sudo runs a command without reading the password that it asks for; let the "
                    "login user run all of sudo without one (NOPASSWD), or always with one");
  return output;
}

Result<std::string> Host::need(std::string_view doing, std::string_view script,
                               std::string_view input, Duration timeout) {
  return text_of(doing, run(script, input, timeout));
}

Result<std::string> Host::need_as_login(std::string_view doing, std::string_view script,
                                        std::string_view input) {
  return text_of(doing, send(script, input, kScriptTimeMost));
}

Result<std::string> Host::text_of(std::string_view doing, Result<ssh::Output> output) const {
  if (!output) return fail(std::move(output.error()).in(doing));
  if (!output->ok()) return fail(script_error(doing, *output));
  if (output->out_cut)
    return fail(ErrorCode::ResourceExhausted,
                fmt::format("{}: the answer of '{}' has more than 1 MiB", doing, login_.host));
  return std::move(output->out);
}

Result<ssh::Secret> Host::need_secret(std::string_view doing, std::string_view script) {
  auto text = need(doing, script);
  if (!text) return fail(std::move(text.error()));
  return ssh::Secret(std::move(*text));
}

Result<std::string> Host::need_long(std::string_view doing, std::string_view script,
                                    Duration timeout) {
  return need(doing, "exec sh -s", script, timeout);
}

}  // namespace muster::rollout
