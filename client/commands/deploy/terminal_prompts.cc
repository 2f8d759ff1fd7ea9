#include "client/commands/deploy/terminal_prompts.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "client/render/style.h"
#include "common/io/file.h"
#include "common/io/unique_fd.h"

namespace muster::client {

std::optional<ssh::Secret> TerminalPrompts::ask(const ssh::Question& question) {
  constexpr std::size_t kAnswerMost = 4096;
  const io::UniqueFd tty(::open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY));
  if (!tty) return std::nullopt;
  termios before{};
  if (::tcgetattr(tty.get(), &before) != 0) return std::nullopt;
  termios quiet = before;
  quiet.c_lflag &= ~static_cast<tcflag_t>(ECHO);
  std::size_t written = 0;
  (void)io::write_all(tty.get(), render::printable(question.text) + ": ", written);
  ::tcsetattr(tty.get(), TCSAFLUSH, &quiet);
  std::string answer;
  answer.reserve(kAnswerMost);  // so that no copy of it stays behind
  bool whole = false;
  for (char c = 0; answer.size() < kAnswerMost;) {
    const ssize_t got = ::read(tty.get(), &c, 1);
    if (got < 0 && errno == EINTR) continue;
    whole = got == 1 && c == '\n';
    if (got != 1 || whole) break;
    answer += c;
  }
  ::tcsetattr(tty.get(), TCSAFLUSH, &before);
  (void)io::write_all(tty.get(), "\n", written);
  ssh::Secret secret(std::move(answer));
  if (!whole || secret.size() == 0) return std::nullopt;
  return secret;
}

}  // namespace muster::client
